"""A plain LangChain chain of two steps behind FastAPI, and LangChain's indexing API.

    python -m benchmarks.peers.langchain_chain serve --documents FILE --model-url URL
    python -m benchmarks.peers.langchain_chain ingest --documents FILE --model-url URL

The first step classifies the question with structured output. The second is an LCEL chain of retriever,
prompt, model and parser over an `InMemoryVectorStore`. All calls are asynchronous. As LangChain recommends
for servers other than OpenAI's, `check_embedding_ctx_length=False` sends texts instead of token ids.
`aindex` with a record manager skips unchanged documents; by default, it indexes batches of 100 documents
one after the other.
"""

from operator import itemgetter
from typing import Any

from fastapi import FastAPI
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableBranch, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import SecretStr

from benchmarks.peers.command import App, Indexing, Site, peer
from benchmarks.peers.passages import Passage
from benchmarks.peers.task import (
    ANSWER,
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

CLASSIFY_PROMPT = ChatPromptTemplate([("system", CLASSIFY), ("human", "{question}")])
ANSWER_PROMPT = ChatPromptTemplate(
    [("system", ANSWER), ("human", "{passages}\n\nQuestion: {question}")]
)


def chat_model(model_url: str) -> ChatOpenAI:
    """Return the chat model."""
    return ChatOpenAI(
        model=CHAT_MODEL, base_url=model_url, api_key=SecretStr(API_KEY), max_retries=0
    )


def embedding_model(model_url: str) -> OpenAIEmbeddings:
    """Return the embedding model."""
    return OpenAIEmbeddings(
        model=EMBEDDING_MODEL,
        openai_api_base=model_url,
        openai_api_key=SecretStr(API_KEY),
        max_retries=0,
        check_embedding_ctx_length=False,
    )


def document(passage: Passage) -> Document:
    """Return a passage as a LangChain document."""
    metadata = {"title": passage.title, "url": passage.url}
    return Document(page_content=passage.content, metadata=metadata, id=passage.id)


def chain(site: Site) -> Runnable[dict[str, Any], Reply]:
    """Index the passages, and return the chain from a question to a reply."""
    store = InMemoryVectorStore(embedding_model(site.model_url))
    store.add_documents([document(passage) for passage in site.passages])
    retriever = store.as_retriever(search_kwargs={"k": K})
    model = chat_model(site.model_url)
    classify = CLASSIFY_PROMPT | model.with_structured_output(Classification, method="json_schema")
    write = ANSWER_PROMPT | model | StrOutputParser()
    answer = (
        RunnablePassthrough.assign(documents=itemgetter("question") | retriever)
        .assign(passages=_numbered)
        .assign(answer=write)
    )
    return RunnablePassthrough.assign(classification=classify) | RunnableBranch(
        (_off_topic, lambda _: refusal()), answer | _reply
    )


def _off_topic(state: dict[str, Any]) -> bool:
    classification: Classification = state["classification"]
    return classification.type == "unknown"


def _numbered(state: dict[str, Any]) -> str:
    numbered = enumerate(state["documents"], start=1)
    return "\n\n".join(f"[{number}] {document.page_content}" for number, document in numbered)


def _reply(state: dict[str, Any]) -> Reply:
    passages = [(d.metadata["title"], d.metadata["url"]) for d in state["documents"]]
    answer = state["answer"]
    return Reply(type=state["classification"].type, answer=answer, sources=cited(answer, passages))


def app(site: Site) -> App:
    """Index the passages, and return the service."""
    answering = chain(site)
    service = FastAPI()

    @service.post("/ask")
    async def ask(asked: Question) -> Reply:
        return await answering.ainvoke({"question": asked.question})

    return service


def indexing(site: Site) -> Indexing:
    """Return the indexing function, for an empty store."""
    records = InMemoryRecordManager("peers")
    records.create_schema()
    store = InMemoryVectorStore(embedding_model(site.model_url))

    async def index() -> object:
        documents = [document(passage) for passage in site.passages]
        return await aindex(documents, records, store, cleanup="full", key_encoder="blake2b")

    return index


if __name__ == "__main__":
    peer(app, indexing)()
