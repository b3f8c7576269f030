"""Measures the time of `retrieve` over many chunks, right after the start and later."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

from langsmith import tracing_context

from app.analytics.evaluation.scoring import percentile
from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.corpus import write_corpus
from benchmarks.fresh_process import in_fresh_process
from benchmarks.performance.ingestion import job
from benchmarks.performance.questions import distinct_questions
from benchmarks.retrieval_quality import settings_of
from benchmarks.scripted_vectors import Embedding, NGrams
from benchmarks.vector_server import serve_vectors
from schemas.settings import Settings

SECTIONS = 7_500
"""Number of sections to index. Some become two chunks, so there are about 10,000 chunks."""

FIRST = 10
"""Number of questions that are asked after each start, to time the first and the tenth."""

STARTS = FIRST
"""Number of processes that ask these questions. Each process starts with another question, so that every
question is the first one once and the last one once.
"""


@dataclass(frozen=True)
class Speed:
    """Milliseconds per question by one route; questions are asked one after the other."""

    route: str
    chunks: int
    questions: int
    p50: float
    p95: float
    first: float
    """The first question after a start; median over the processes."""
    tenth: float

    @property
    def ratio(self) -> float:
        """Ratio of the first question's time to the tenth's."""
        return self.first / self.tenth


def measure_speed(folder: Path, sections: int = SECTIONS) -> list[Speed]:
    """Write `sections` sections to `folder`, and measure full text and hybrid retrieval over them."""
    platform = write_corpus(folder / "corpus", sections)
    embedding: Embedding = NGrams()
    with serve_vectors(embedding) as url:
        return [
            speed_of("full text", settings_of(folder / "full_text", platform)),
            speed_of("hybrid", settings_of(folder / "hybrid", platform, embedding.name, url)),
        ]


def speed_of(route: str, settings: Settings, starts: int = STARTS) -> Speed:
    """Index the platform of `settings` and time questions, each series in a new process."""
    texts = distinct_questions()
    chunks = in_fresh_process(partial(job, settings))
    times = in_fresh_process(partial(times_of, settings, texts))
    series = [
        in_fresh_process(partial(times_of, settings, _rotated(texts[:FIRST], start)))
        for start in range(starts)
    ]
    return Speed(
        route=route,
        chunks=chunks,
        questions=len(texts),
        p50=percentile(times, 0.5),
        p95=percentile(times, 0.95),
        first=median(each[0] for each in series),
        tenth=median(each[-1] for each in series),
    )


def times_of(settings: Settings, texts: Sequence[str]) -> list[float]:
    """Return the milliseconds of each of `texts`, asked one after the other once the service is ready."""
    with tracing_context(enabled=False):
        return asyncio.run(_times(settings, texts))


async def _times(settings: Settings, texts: Sequence[str]) -> list[float]:
    times = []
    async with open_answer_service(settings) as answer_service:
        for text in texts:
            started = time.perf_counter()
            await answer_service.retrieve(AskCommand(text))
            times.append((time.perf_counter() - started) * 1000)
    return times


def _rotated(texts: Sequence[str], start: int) -> list[str]:
    """Return `texts` rotated so that the text with the index `start` is the first one."""
    return [*islice(texts, start, None), *islice(texts, start)]
