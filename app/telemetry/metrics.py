"""Defines the Prometheus metrics, and measures the lag of the event loop.

The metrics of ingestion are read from the stores at each scrape, because any process may have run an
ingestion.
"""

import asyncio
import collections
import platform
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from ingestion.job import IngestionJob
from schemas.answer import Answer
from schemas.errors import ApideskError
from schemas.ingestion import IngestionRun
from schemas.question import AnswerMode

if TYPE_CHECKING:
    from runnables.models.chat_model import ChatModel, ConcurrencyLimiter

DURATION_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)

LAG_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

CIRCUIT_VALUES = {"closed": 0, "half_open": 1, "open": 2}

LAG_INTERVAL_S = 0.1
"""Seconds between two measurements of the lag."""

LAG_WINDOW = 600
"""Number of measurements in about one minute. The longest lag among them is reported."""

DATABASE_TIMEOUT_S = 2.0
"""Seconds to wait for the database during a scrape. By default, Prometheus cancels a scrape after 10 s."""


class Metrics:
    """The metrics of one answer service, in their own registry.

    Each label has few values: they come from the program and the settings, never from callers.
    """

    def __init__(self) -> None:
        # The `_created` metrics would add one time series per set of labels.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"apidesk_{name}", help_text, labels, registry=registry)

        def histogram(
            name: str, help_text: str, *labels: str, buckets: Sequence[float] = DURATION_BUCKETS_S
        ) -> Histogram:
            return Histogram(
                f"apidesk_{name}", help_text, labels, buckets=buckets, registry=registry
            )

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(
                f"apidesk_{name}", help_text, labels, registry=registry, multiprocess_mode="livesum"
            )

        self.requests = counter("requests", "Requests", "method", "route", "status")
        self.request_seconds = histogram(
            "request_seconds", "Duration of a request, including its stream", "method", "route"
        )
        self.questions = counter(
            "questions", "Questions answered", "type", "mode", "confidence", "degraded"
        )
        self.step_seconds = histogram("step_seconds", "Duration of a pipeline step", "step")
        self.tokens = counter(
            "tokens", "Tokens, as the providers report them", "role", "model", "kind"
        )
        self.structured_outputs = counter(
            "structured_outputs", "Structured outputs of models, by the method (rung) that produced them",
            "step", "rung",
        )  # fmt: skip
        self.model_retries = counter(
            "model_retries", "Repeated calls of chat models", "role", "model"
        )
        self.model_failures = counter(
            "model_failures",
            "Calls of models that failed after all retries or whose reply was invalid",
            "role",
            "model",
            "code",
        )
        self.circuit_state = Gauge(
            "apidesk_model_circuit_state",
            "Circuit breaker: 0 closed, 1 half-open, 2 open; the maximum of all processes",
            ("role", "model"),
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.questions_under_way = gauge(
            "questions_under_way",
            "Questions that a model answers, running or waiting for a slot",
            "state",
        )
        self.model_calls_under_way = gauge(
            "model_calls_under_way", "Calls of chat models, running or waiting for a slot", "state"
        )
        self.cache_lookups = counter(
            "cache_lookups", "Questions, by the result of their cache lookup", "result"
        )
        self.refused_citations = counter(
            "refused_citations", "Citations removed from answers of models"
        )
        self.refused_links = counter("refused_links", "Links removed from answers of models")
        self.unverified_facts = counter(
            "unverified_facts",
            "Facts (paths, names, codes) in answers that neither the cited sources nor the question "
            "contain",
        )
        self.unsupported_steps = counter(
            "unsupported_steps", "Steps of answers that their cited sources do not support"
        )
        self.lost_records = counter(
            "lost_records", "Question records that could not be written to the outbox"
        )
        self.loop_lag = histogram(
            "event_loop_lag_seconds", "Delay of the event loop", buckets=LAG_BUCKETS_S
        )
        self.max_loop_lag = Gauge(
            "apidesk_event_loop_lag_max_seconds",
            "Longest delay of the event loop in the last minute, by process",
            registry=registry,
            multiprocess_mode="liveall",
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self.requests.labels(method, route, str(status)).inc()
        self.request_seconds.labels(method, route).observe(seconds)

    def count_answer(self, answer: Answer, mode: AnswerMode) -> None:
        """Count an answer and the problems that grounding found in it."""
        degraded = "true" if answer.degraded else "false"
        self.questions.labels(answer.type, mode, answer.confidence, degraded).inc()
        self.refused_citations.inc(answer.refused.citations)
        self.refused_links.inc(answer.refused.links)
        self.unverified_facts.inc(len(answer.unverified))
        self.unsupported_steps.inc(len(answer.unsupported))

    def update_circuit_gauge(self, models: Iterable["ChatModel"]) -> None:
        """Set the gauge to the state of each model's circuit breaker."""
        for model in models:
            self.circuit_state.labels(**model.role.labels).set(CIRCUIT_VALUES[model.circuit])

    def exposition(self, *scraped: Collector) -> bytes:
        """Return these metrics and those of the collectors `scraped`, in Prometheus's text format.

        With PROMETHEUS_MULTIPROC_DIR, the result contains the metrics of all processes that share this
        directory, but not prometheus_client's own metrics, such as those of garbage collection.
        """
        return b"".join(map(generate_latest, (_shared_registry(self._registry), *scraped)))


def update_limiter_gauge(gauge: Gauge, limiter: "ConcurrencyLimiter") -> None:
    """Set the labels `running` and `waiting` of `gauge` to the number of callers in each state."""
    gauge.labels("running").set(limiter.running)
    gauge.labels("waiting").set(limiter.waiting)


def remove_process_gauges(pid: int) -> None:
    """Remove the gauges of a worker that has ended, but keep its counters."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def _shared_registry(registry: CollectorRegistry) -> CollectorRegistry:
    shared = CollectorRegistry()
    try:
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
    except ValueError:  # no directory is configured: this process is the only one
        return registry
    return shared


async def measure_loop_lag(metrics: Metrics) -> None:
    """Measure the lag of the event loop until cancelled.

    The lag is how much longer a sleep takes than requested. Code that blocks the event loop delays every
    request.
    """
    loop = asyncio.get_running_loop()
    lags = deque[float](maxlen=LAG_WINDOW)
    while True:
        due = loop.time() + LAG_INTERVAL_S
        await asyncio.sleep(LAG_INTERVAL_S)
        lags.append(max(0.0, loop.time() - due))
        metrics.loop_lag.observe(lags[-1])
        metrics.max_loop_lag.set(max(lags))


@dataclass(frozen=True)
class IngestionMetrics(Collector):
    """Collects metrics of the last runs, the number of chunks and the version of apidesk.

    A field is None if it could not be read; its metrics then have no sample.
    """

    runs: Sequence[IngestionRun] | None
    chunks: int | None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        build = {"version": version("apidesk"), "python": platform.python_version()}
        yield InfoMetricFamily("apidesk_build", "Versions of apidesk and Python", build)
        yield _gauge("chunks", "Chunks in the collection", self.chunks)
        yield _gauge(
            "ingestion_last_success_timestamp_seconds",
            "Time of the last successful run",
            self._last_success,
        )
        states = GaugeMetricFamily(
            "apidesk_ingestion_runs", "The last runs, at most 50, by state", labels=["state"]
        )
        for state, count in collections.Counter(run.state for run in self.runs or ()).items():
            states.add_metric([state], count)
        yield states

    @property
    def _last_success(self) -> float | None:
        finished = (run.finished_at for run in self.runs or () if _is_successful(run))
        return max((moment.timestamp() for moment in finished if moment), default=None)


async def collect_ingestion_metrics(job: IngestionJob) -> IngestionMetrics:
    """Return the metrics of `job`, without those of a store that cannot be read."""
    runs: Sequence[IngestionRun] | None = None
    chunks: int | None = None
    with suppress(ApideskError):
        chunks = job.collection.manifest.rows
    with suppress(ApideskError):
        runs = await job.runs.latest_within(DATABASE_TIMEOUT_S)
    return IngestionMetrics(runs, chunks)


def _gauge(name: str, help_text: str, value: float | None) -> Metric:
    gauge = GaugeMetricFamily(f"apidesk_{name}", help_text)
    if value is not None:
        gauge.add_metric([], value)
    return gauge


def _is_successful(run: IngestionRun) -> bool:
    """Return whether the collection was up to date after the run, except for refused documents."""
    is_finished = run.state in ("succeeded", "partial")
    return is_finished and not run.options.dry_run and not run.unread
