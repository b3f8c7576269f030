"""A line in the log for each ingestion that nobody watches at a terminal.
What a scrape sees of ingestion: read from the stores then, since any process may have indexed.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.telemetry.logs import structured_logger
from ingestion.job import IngestionJob
from schemas.errors import ApideskError
from schemas.ingestion import IngestionRun

log = structured_logger(__name__)


def log_run(run: IngestionRun) -> None:
    """Say how `run` ended; nothing of one that goes on, or never began."""
    if run.finished_at is None:
        return
    tell = log.warning if run.state == "failed" else log.info
    tell(
        "ingestion",
        ingestion=run.id,
        trigger=run.trigger,
        state=run.state,
        seconds=run.seconds,
        added=sum(source.added for source in run.sources),
        changed=sum(source.changed for source in run.sources),
        deleted=sum(source.deleted for source in run.sources),
        refused=len(run.refused),
        error=run.error,
    )


PATIENCE = 2.0
"""Seconds that the database has; Prometheus itself gives up after ten."""


@dataclass(frozen=True)
class IngestionMetrics(Collector):
    """The last runs and the chunks; what a store did not tell is None, and has no metric."""

    runs: Sequence[IngestionRun] | None
    chunks: int | None

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        yield _gauge("chunks", "Chunks in the collection", self.chunks)
        yield _gauge(
            "ingestion_last_success_timestamp_seconds",
            "When the last run that indexed ended well",
            self._last_success,
        )
        states = GaugeMetricFamily(
            "apidesk_ingestion_runs", "The last runs, 50 at most, by state", labels=["state"]
        )
        for state, count in Counter(run.state for run in self.runs or ()).items():
            states.add_metric([state], count)
        yield states

    @property
    def _last_success(self) -> float | None:
        ended = (run.finished_at for run in self.runs or () if _indexed(run))
        return max((moment.timestamp() for moment in ended if moment), default=None)


async def ingestion_metrics(job: IngestionJob) -> IngestionMetrics:
    """What is known of `job` within PATIENCE. It raises nothing that stores do."""
    runs: Sequence[IngestionRun] | None = None
    chunks: int | None = None
    try:
        chunks = job.collection.contract.rows
        async with asyncio.timeout(PATIENCE):
            runs = await asyncio.to_thread(job.runs.latest)
    except (ApideskError, TimeoutError):
        pass
    return IngestionMetrics(runs, chunks)


def _gauge(name: str, help_text: str, value: float | None) -> Metric:
    gauge = GaugeMetricFamily(f"apidesk_{name}", help_text)
    if value is not None:
        gauge.add_metric([], value)
    return gauge


def _indexed(run: IngestionRun) -> bool:
    """Whether the collection was in step with the documents after it, but for what was refused."""
    return run.state in ("succeeded", "partial") and not run.options.dry_run
