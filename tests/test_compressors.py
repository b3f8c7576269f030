"""Rerankers are LangChain document compressors, and any document compressor can be the reranker."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import SecretStr

from runnables.retrieval.compressors import RERANK_DEPTH, SCORE_KEY, CompressorReranker
from runnables.retrieval.rerank import RerankStep, build_rerank
from runnables.retrieval.rerankers import EndpointReranker
from schemas.errors import ConfigurationError
from schemas.settings import read_settings
from tests.acme import PLATFORM_INFO
from tests.rerank_server import RerankServer, jina, to_json
from tests.reranking import QUESTION, ReversesWithoutScores, order, retrieved, run

HERE = "tests.test_compressors"


class KeepBest(BaseDocumentCompressor):
    """Returns the best `top_n` documents, last ones first, with scores, as langchain-cohere does."""

    model: str = "default"
    top_n: int = 3

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        assert query == QUESTION
        best = list(reversed(documents))[: self.top_n]
        return [
            Document(
                document.page_content, metadata=document.metadata | {SCORE_KEY: 1 / (rank + 1)}
            )
            for rank, document in enumerate(best)
        ]


class NeedsKey(BaseDocumentCompressor):
    key: str

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return documents


class Hangs(BaseDocumentCompressor):
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        threading.Event().wait(2)
        return documents


def by_setting(compressor: type[BaseDocumentCompressor], **settings: object) -> RerankStep:
    path = f"{compressor.__module__}.{compressor.__name__}"
    step = build_rerank(read_settings(rerank=path, **settings), None, PLATFORM_INFO)
    assert step is not None
    return step


def test_compressor_named_in_the_settings_orders_the_chunks() -> None:
    found = retrieved(5)
    reranked = run(by_setting(KeepBest, rerank_model="large"), found)
    assert order(reranked, found) == [4, 3, 2, 1, 0]
    assert [chunk.score for chunk in reranked[:2]] == [1.0, 0.5]


def test_compressor_is_created_with_the_model_and_all_passages() -> None:
    reranker = CompressorReranker.open(
        read_settings(rerank=f"{HERE}.KeepBest", rerank_model="large")
    )
    compressor = reranker._compressor
    assert isinstance(compressor, KeepBest)
    assert (compressor.model, compressor.top_n) == ("large", RERANK_DEPTH)


def test_compressor_without_scores_keeps_the_scores_of_retrieval() -> None:
    found = retrieved(3)
    reranked = run(by_setting(ReversesWithoutScores), found)
    assert [chunk.score for chunk in reranked] == [98.0, 99.0, 100.0]


def test_chunks_that_the_compressor_drops_keep_their_order_at_the_end() -> None:
    found = retrieved(4)
    step = build_rerank(read_settings(), None, PLATFORM_INFO, KeepBest(top_n=1))
    assert step is not None
    assert order(run(step, found), found) == [3, 0, 1, 2]


def test_compressor_that_hangs_keeps_the_order(caplog: pytest.LogCaptureFixture) -> None:
    found = retrieved(3)
    assert run(by_setting(Hangs, rerank_timeout=0.1), found) == found
    assert "Hangs: no answer in time" in caplog.text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tests.test_compressors.Nothing", "there is no such class"),
        ("no_such_package.Reranker", "there is no such class"),
        ("tests.test_compressors.by_setting", "not a LangChain BaseDocumentCompressor"),
        ("tests.test_compressors.NeedsKey", r"cannot be created \(ValidationError\)"),
    ],
)
def test_class_that_cannot_be_a_reranker_is_an_error(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"APIDESK_RERANK={name}: {problem}"):
        build_rerank(read_settings(rerank=name), None, PLATFORM_INFO)


def test_reranker_compresses_the_documents_of_other_chains() -> None:
    documents = [Document(f"正文 {number}", metadata={"n": number}) for number in range(3)]
    with RerankServer() as server:
        server.reply(*[to_json(jina({2: 0.9, 0: 0.5, 1: 0.1}))] * 2)
        settings = read_settings(rerank_url=server.base_url, rerank_api_key=SecretStr("key"))
        compressor: BaseDocumentCompressor = EndpointReranker(settings)
        in_a_thread = compressor.compress_documents(documents, QUESTION)
        awaited = asyncio.run(compressor.acompress_documents(documents, QUESTION))
    assert [document.metadata["n"] for document in in_a_thread] == [2, 0, 1]
    assert in_a_thread == awaited
    assert [document.metadata[SCORE_KEY] for document in awaited] == [0.9, 0.5, 0.1]
