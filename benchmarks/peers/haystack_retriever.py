"""Haystack's full-text retriever for its in-memory document store, behind FastAPI.

    python -m benchmarks.peers.haystack_retriever serve --documents FILE --model-url ""

The store has its defaults: BM25L over words and, in Chinese, single characters.
"""

from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from benchmarks.peers.command import App, Site, peer
from benchmarks.peers.haystack_parts import documents
from benchmarks.peers.retrieval_api import RetrievedPassage, retrieval_api
from benchmarks.peers.task import K


def app(site: Site) -> App:
    """Index the passages, and return the service."""
    store = InMemoryDocumentStore()
    store.write_documents(documents(site.passages))
    retriever = InMemoryBM25Retriever(store, top_k=K)

    def retrieve(question: str) -> list[RetrievedPassage]:
        found = retriever.run(query=question)["documents"]
        return [RetrievedPassage(**document.meta, text=document.content) for document in found]

    return retrieval_api(retrieve)


if __name__ == "__main__":
    peer(app, path="/retrieve")()
