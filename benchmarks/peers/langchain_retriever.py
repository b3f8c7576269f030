"""LangChain's BM25Retriever behind FastAPI.

    python -m benchmarks.peers.langchain_retriever serve --documents FILE --model-url ""

The retriever has its defaults: BM25Okapi of rank_bm25, over words that are separated by spaces.
"""

from langchain_community.retrievers import BM25Retriever

from benchmarks.peers.command import App, Site, peer
from benchmarks.peers.langchain_chain import document
from benchmarks.peers.retrieval_api import RetrievedPassage, retrieval_api
from benchmarks.peers.task import K


def app(site: Site) -> App:
    """Index the passages, and return the service."""
    retriever = BM25Retriever.from_documents(map(document, site.passages), k=K)

    def retrieve(question: str) -> list[RetrievedPassage]:
        found = retriever.invoke(question)
        return [RetrievedPassage(**each.metadata, text=each.page_content) for each in found]

    return retrieval_api(retrieve)


if __name__ == "__main__":
    peer(app, path="/retrieve")()
