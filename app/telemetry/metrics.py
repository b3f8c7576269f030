"""What an operator counts, for Prometheus.
How late the event loop is: what blocks it delays every request at once.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from schemas.answer import Answer
from schemas.question import AnswerMode

if TYPE_CHECKING:
    from runnables.models.chat_model import ChatModel
    from runnables.models.concurrency import ConcurrencyLimiter

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)

LAGS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

CIRCUIT = {"closed": 0, "half_open": 1, "open": 2}


class Metrics:
    """The metrics of one desk, in a registry of their own: a process may hold several desks.

    Labels take few values: those of the code and of Settings, never what callers send.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"apidesk_{name}", help_text, labels, registry=registry)

        def histogram(name: str, help_text: str, *labels: str) -> Histogram:
            return Histogram(
                f"apidesk_{name}", help_text, labels, buckets=SECONDS, registry=registry
            )

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(
                f"apidesk_{name}", help_text, labels, registry=registry, multiprocess_mode="livesum"
            )

        self.requests = counter("requests", "Requests", "method", "route", "status")
        self.request_seconds = histogram(
            "request_seconds", "Seconds a request, a stream's to its end", "method", "route"
        )
        self.questions = counter(
            "questions", "Questions answered", "type", "mode", "confidence", "degraded"
        )
        self.step_seconds = histogram("step_seconds", "Seconds a step of a question", "step")
        self.tokens = counter("tokens", "Tokens, as models count them", "role", "model", "kind")
        self.structured_outputs = counter(
            "structured_outputs", "Objects that models wrote, by the rung that gave them",
            "step", "rung",
        )  # fmt: skip
        self.model_retries = counter("model_retries", "Calls made once more", "role", "model")
        self.model_failures = counter(
            "model_failures", "Replies that failed, retries and all", "role", "model", "code"
        )
        self.circuit_state = Gauge(
            "apidesk_model_circuit_state",
            "0 closed, 1 half-open, 2 open; the worst of all processes",
            ("role", "model"),
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.questions_under_way = gauge(
            "questions_under_way", "Questions that a model answers, or that wait for it", "state"
        )
        self.model_calls_under_way = gauge(
            "model_calls_under_way", "Calls of chat models, or that wait for a slot", "state"
        )
        self.cache_lookups = counter(
            "cache_lookups", "Questions, by where their answer came from", "result"
        )
        self.refused_citations = counter(
            "refused_citations", "Citations taken out of what models wrote"
        )
        self.refused_links = counter("refused_links", "Links taken out of what models wrote")
        self.unverified_facts = counter(
            "unverified_facts", "Facts in answers that nothing cited holds"
        )
        self.unsupported_steps = counter(
            "unsupported_steps", "Steps that what they cite does not bear out"
        )

        self.loop_lag = Histogram(
            "apidesk_event_loop_lag_seconds",
            "Seconds that the event loop wakes up late",
            buckets=LAGS,
            registry=registry,
        )
        self.longest_loop_lag = Gauge(
            "apidesk_event_loop_lag_max_seconds",
            "The longest of the last minute, of each process",
            registry=registry,
            multiprocess_mode="liveall",
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request that has ended."""
        self.requests.labels(method, route, str(status)).inc()
        self.request_seconds.labels(method, route).observe(seconds)

    def count_answer(self, answer: Answer, mode: AnswerMode) -> None:
        """An answer that goes out, and what grounding found wrong with it."""
        degraded = "true" if answer.degraded else "false"
        self.questions.labels(answer.type, mode, answer.confidence, degraded).inc()
        self.refused_citations.inc(answer.refused.citations)
        self.refused_links.inc(answer.refused.links)
        self.unverified_facts.inc(len(answer.unverified))
        self.unsupported_steps.inc(len(answer.unsupported))

    def update_circuit_gauge(self, models: Iterable["ChatModel"]) -> None:
        """The circuits of `models`, as they are now."""
        for model in models:
            self.circuit_state.labels(**model.role.labels).set(CIRCUIT[model.circuit])

    def update_question_gauge(self, slots: "ConcurrencyLimiter") -> None:
        """The questions under way, as they are now."""
        _see(self.questions_under_way, slots)

    def update_call_gauge(self, slots: "ConcurrencyLimiter") -> None:
        """The calls of chat models under way, as they are now."""
        _see(self.model_calls_under_way, slots)

    def update_loop_lag(self, seconds: float, longest: float) -> None:
        """How late the event loop was just now, and at most during the last minute."""
        self.loop_lag.observe(seconds)
        self.longest_loop_lag.set(longest)

    def exposition(self, *scraped: Collector) -> bytes:
        """All metrics in Prometheus's text format, with what `scraped` collects now.

        Where PROMETHEUS_MULTIPROC_DIR was set before this was imported, they are those of all the
        processes that share it; what describes one process alone is left out then.
        """
        return b"".join(map(generate_latest, (_of_all_processes(self._registry), *scraped)))


def _see(gauge: Gauge, slots: "ConcurrencyLimiter") -> None:
    gauge.labels("running").set(slots.running)
    gauge.labels("waiting").set(slots.waiting)


def forget_process(pid: int) -> None:
    """Drop the gauges of a worker that has ended, for whoever started it; what it counted stays."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def _of_all_processes(registry: CollectorRegistry) -> CollectorRegistry:
    together = CollectorRegistry()
    try:
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    except ValueError:  # it knows of no directory: this process is the only one
        return registry
    return together


SLEEP_SECONDS = 0.1
"""Between two looks; a block that is longer is seen whole, a shorter one in proportion."""

REMEMBERED = 600
"""Looks of which the longest lag is told: those of a minute."""


async def watch_loop(metrics: Metrics) -> None:
    """Tell `metrics` how late each sleep wakes up, until it is cancelled."""
    loop = asyncio.get_running_loop()
    lags = deque[float](maxlen=REMEMBERED)
    while True:
        due = loop.time() + SLEEP_SECONDS
        await asyncio.sleep(SLEEP_SECONDS)
        lags.append(max(0.0, loop.time() - due))
        metrics.update_loop_lag(lags[-1], max(lags))
