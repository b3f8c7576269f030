"""LlamaIndex's CitationQueryEngine behind FastAPI, and LlamaIndex's IngestionPipeline.

    python -m benchmarks.peers.llama_index serve --documents FILE --model-url URL
    python -m benchmarks.peers.llama_index ingest --documents FILE --model-url URL

A structured prediction classifies the question. Then the engine retrieves from a `VectorStoreIndex` with
its default vector store, and answers with its own citation prompt. Both steps use asynchronous methods.
The ingestion pipeline has a document store, which skips unchanged documents (upserts), and its default
cache. `arun` embeds with the defaults of `OpenAIEmbedding`: 100 texts per request, all requests at once.
`num_workers` is not set, because starting processes would take longer than they save here.
"""

from typing import Any

from fastapi import FastAPI
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai_like import OpenAILike

from benchmarks.peers.command import App, Indexing, Site, peer
from benchmarks.peers.passages import Passage
from benchmarks.peers.task import (
    API_KEY,
    CHAT_MODEL,
    CLASSIFY,
    EMBEDDING_MODEL,
    Classification,
    K,
    Question,
    Reply,
    cited,
    refusal,
)

CLASSIFY_PROMPT = ChatPromptTemplate(
    [ChatMessage(CLASSIFY, role="system"), ChatMessage("{question}", role="user")]
)


def chat_model(model_url: str) -> OpenAILike:
    """Return the chat model, which accepts a JSON schema as response format."""
    return OpenAILike(
        model=CHAT_MODEL,
        api_base=model_url,
        api_key=API_KEY,
        is_chat_model=True,
        should_use_structured_outputs=True,
        context_window=32_768,
        max_retries=0,
    )


def embedding_model(model_url: str) -> OpenAIEmbedding:
    """Return the embedding model, with 100 texts per request."""
    return OpenAIEmbedding(
        model_name=EMBEDDING_MODEL, api_base=model_url, api_key=API_KEY, max_retries=0
    )


def fields(passage: Passage) -> dict[str, Any]:
    """Return the arguments of a node or document for a passage; its text already contains the title."""
    metadata = {"title": passage.title, "url": passage.url}
    hidden = list(metadata)
    return {
        "id_": passage.id,
        "text": passage.content,
        "metadata": metadata,
        "excluded_embed_metadata_keys": hidden,
        "excluded_llm_metadata_keys": hidden,
    }


def app(site: Site) -> App:
    """Index the passages, and return the service."""
    llm = chat_model(site.model_url)
    index = VectorStoreIndex(
        [TextNode(**fields(passage)) for passage in site.passages],
        embed_model=embedding_model(site.model_url),
    )
    engine = CitationQueryEngine.from_args(index, llm=llm, similarity_top_k=K)
    service = FastAPI()

    @service.post("/ask")
    async def ask(asked: Question) -> Reply:
        classification = await llm.astructured_predict(
            Classification, CLASSIFY_PROMPT, question=asked.question
        )
        if classification.type == "unknown":
            return refusal()
        response = await engine.aquery(asked.question)
        passages = [(n.metadata["title"], n.metadata["url"]) for n in response.source_nodes]
        answer = str(response)
        return Reply(type=classification.type, answer=answer, sources=cited(answer, passages))

    return service


def indexing(site: Site) -> Indexing:
    """Return the indexing function of the ingestion pipeline, for empty stores."""
    pipeline = IngestionPipeline(
        transformations=[embedding_model(site.model_url)],
        docstore=SimpleDocumentStore(),
        vector_store=SimpleVectorStore(),
    )

    async def index() -> object:
        documents = [Document(**fields(passage)) for passage in site.passages]
        return await pipeline.arun(documents=documents)

    return index


if __name__ == "__main__":
    peer(app, indexing)()
