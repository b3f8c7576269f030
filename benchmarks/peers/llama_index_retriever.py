"""LlamaIndex's BM25Retriever behind FastAPI.

    python -m benchmarks.peers.llama_index_retriever serve --documents FILE --model-url ""

The retriever has its defaults: the library bm25s over words of two or more letters, with English stemming.
"""

from llama_index.core.schema import TextNode
from llama_index.retrievers.bm25 import BM25Retriever

from benchmarks.peers.command import App, Site, peer
from benchmarks.peers.llama_index import fields
from benchmarks.peers.retrieval_api import RetrievedPassage, retrieval_api
from benchmarks.peers.task import K


def app(site: Site) -> App:
    """Index the passages, and return the service."""
    nodes = [TextNode(**fields(passage)) for passage in site.passages]
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=K)

    def retrieve(question: str) -> list[RetrievedPassage]:
        found = retriever.retrieve(question)
        return [
            RetrievedPassage(**each.node.metadata, text=each.node.get_content()) for each in found
        ]

    return retrieval_api(retrieve)


if __name__ == "__main__":
    peer(app, path="/retrieve")()
