"""Measures the quality of every route on a retrieval set with a scripted embedding.

The routes are full text, dense and hybrid.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from langsmith import tracing_context

from app.analytics.evaluation.dataset import (
    DocumentIndex,
    EvaluationQuestion,
    GoldDocuments,
    qualified_id,
)
from app.analytics.evaluation.run import MODES, RetrievalProbe
from app.analytics.evaluation.scoring import Evaluation, QuestionResult, RouteResult, route_result
from app.service.answer_service import open_answer_service
from benchmarks.fresh_process import in_fresh_process
from benchmarks.retrieval_sets import RetrievalSet
from benchmarks.scripted_vectors import Embedding, NGrams, Noise, Oracle
from benchmarks.vector_server import serve_vectors
from ingestion.store.schema import searchable_text
from runnables.retrieval.retriever import RetrievalMode
from schemas.settings import Settings, read_settings

K = 5
"""Rank limit of the main measure, hit@5."""

TOLERANCE = 0.01
"""Tolerated loss of hit@5 by hybrid retrieval, compared with the better of its two routes."""

EMBEDDING_BATCH_SIZE = 256
"""Texts per embedding request."""

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Miss:
    """A question without a right document among the first five, and the first result instead."""

    question: str
    marked: str
    """Title of a right document."""
    found: str
    """Title of the first result; empty without one."""


@dataclass(frozen=True)
class Measured:
    """The results of one set with one embedding, for every route, and the misses of full text."""

    name: str
    embedding: str
    held: int
    """Number of questions in the set; all or a sample of them were asked."""
    chunks: int
    evaluation: Evaluation
    misses: tuple[Miss, ...]

    def route(self, mode: RetrievalMode) -> RouteResult:
        """Return the result of one route."""
        return next(route for route in self.evaluation.routes if route.mode == mode)

    def hit(self, mode: RetrievalMode) -> float:
        """Return hit@5 of one route."""
        return self.route(mode).hit[K - 1]

    @property
    def gain(self) -> float:
        """hit@5 of hybrid retrieval minus hit@5 of the better of its two routes."""
        return round(self.hit("hybrid") - max(self.hit("full_text"), self.hit("dense")), 4)

    @property
    def loses(self) -> bool:
        """Whether hybrid retrieval loses more than the tolerance."""
        return self.gain < -TOLERANCE


@dataclass(frozen=True)
class MeasurementInput:
    """The input of a process that measures a set; picklable."""

    name: str
    documents: int
    questions: tuple[EvaluationQuestion, ...]
    golds: tuple[GoldDocuments, ...]


def measure_sets(sets: Iterable[RetrievalSet], tell: OnLine) -> Iterator[Measured]:
    """Measure each set with each embedding in one thread per core, and yield the results in order.

    `tell` receives a line after each measurement.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = [
            pool.submit(_measure_and_tell, chosen, documents, embedding, tell)
            for chosen in sets
            for documents in [chosen.documents(chunk_tokens())]
            for embedding in embeddings(chosen, documents)
        ]
        for future in waiting:
            yield future.result()


def embeddings(chosen: RetrievalSet, documents: DocumentIndex) -> Sequence[Embedding]:
    """Return the three embeddings; the last one knows which documents answer the questions of the set."""
    texts = {qualified_id(d[0]): [searchable_text(chunk) for chunk in d] for d in documents.sample}
    golds = {
        question.question: sorted(frozenset[str]().union(*documents.gold_documents(question)))
        for question in chosen.questions
    }
    return Noise(), NGrams(), Oracle(texts, golds)


def measure(
    chosen: RetrievalSet,
    documents: DocumentIndex,
    embedding: Embedding,
    run: Callable[[Callable[[], Evaluation]], Evaluation] = in_fresh_process,
) -> Measured:
    """Measure each route with a temporary store. `run` calls a function and returns its result."""
    questions = tuple(documents.deduplicate_gold(question) for question in chosen.questions)
    golds = tuple(documents.gold_documents(question) for question in questions)
    inputs = MeasurementInput(chosen.name, documents.count, questions, golds)
    with tempfile.TemporaryDirectory() as store, serve_vectors(embedding) as url:
        settings = settings_of(Path(store), chosen.platform, embedding.name, url)
        evaluation = run(partial(evaluate, settings, inputs))
    return Measured(
        name=chosen.name,
        embedding=embedding.name,
        held=chosen.held,
        chunks=sum(map(len, documents.sample)),
        evaluation=evaluation,
        misses=tuple(_misses(evaluation, documents)),
    )


def settings_of(
    folder: Path, platform: Path, embedding: str | None = None, url: str | None = None
) -> Settings:
    """Return settings with an embedded store in `folder`, with or without a scripted embedding."""
    return read_settings(
        milvus_uri=str(folder / "milvus.db"),
        database_url=f"sqlite:///{folder / 'apidesk.db'}",
        platform=platform,
        chat_model="extractive",
        retrieval="auto",
        rerank="none",
        embedding_model=embedding and f"openai:scripted-{embedding}",
        embedding_base_url=url,
        embedding_api_key="none",
        embedding_batch=EMBEDDING_BATCH_SIZE,
    )


def chunk_tokens() -> int:
    """Return the token limit of the chunks."""
    return read_settings().chunk_tokens


def evaluate(settings: Settings, inputs: MeasurementInput) -> Evaluation:
    """Index the platform of `settings` and ask the questions by every route."""
    return asyncio.run(_evaluate(settings, inputs))


async def _evaluate(settings: Settings, inputs: MeasurementInput) -> Evaluation:
    routes = []
    with tracing_context(enabled=False):
        async with open_answer_service(settings) as answer_service:
            for mode in MODES:
                probe = RetrievalProbe(answer_service, mode)
                found = [await probe.run(question) for question in inputs.questions]
                routes.append(route_result(mode, inputs.questions, inputs.golds, found, K))
    return Evaluation(
        platform=inputs.name,
        documents=inputs.documents,
        questions=len(inputs.questions),
        with_gold=len(inputs.questions),
        k=K,
        primary_mode="hybrid",
        routes=tuple(routes),
    )


def _measure_and_tell(
    chosen: RetrievalSet, documents: DocumentIndex, embedding: Embedding, tell: OnLine
) -> Measured:
    started = time.monotonic()
    measured = measure(chosen, documents, embedding)
    tell(f"{measured.name}, {measured.embedding}: {time.monotonic() - started:.0f} s")
    return measured


def _misses(evaluation: Evaluation, documents: DocumentIndex) -> Iterator[Miss]:
    """Yield the misses of full text, in the order of the questions."""
    titles = {qualified_id(chunks[0]): chunks[0].title for chunks in documents.sample}
    full_text = next(route for route in evaluation.routes if route.mode == "full_text")
    for result in full_text.questions:
        if result.rank is None or result.rank > K:
            marked = min(documents.documents_named(result.gold[0]))
            yield Miss(result.question, titles[marked], _first_title(result))


def _first_title(result: QuestionResult) -> str:
    return result.retrieved[0].title if result.retrieved else ""
