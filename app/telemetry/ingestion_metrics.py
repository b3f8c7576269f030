"""Logs ingestion runs, and collects their metrics.

The metrics are read from the stores at each scrape, because any process may have run an ingestion.
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

DATABASE_TIMEOUT_S = 2.0
"""Seconds to wait for the database during a scrape, which Prometheus cancels after ten seconds."""

log = structured_logger(__name__)


def log_ingestion_run(run: IngestionRun) -> None:
    """Log the result of `run`, unless it has not ended."""
    if run.finished_at is None:
        return
    log_line = log.warning if run.state == "failed" else log.info
    log_line(
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


@dataclass(frozen=True)
class IngestionMetrics(Collector):
    """Collects metrics of the last runs and the number of chunks.

    A value is None if its store is not available; its metric then has no sample.
    """

    runs: Sequence[IngestionRun] | None
    chunks: int | None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield _gauge("chunks", "Chunks in the collection", self.chunks)
        yield _gauge(
            "ingestion_last_success_timestamp_seconds",
            "Time of the last successful run",
            self._last_success,
        )
        states = GaugeMetricFamily(
            "apidesk_ingestion_runs", "The last runs, at most 50, by state", labels=["state"]
        )
        for state, count in Counter(run.state for run in self.runs or ()).items():
            states.add_metric([state], count)
        yield states

    @property
    def _last_success(self) -> float | None:
        finished = (run.finished_at for run in self.runs or () if _is_successful(run))
        return max((moment.timestamp() for moment in finished if moment), default=None)


async def collect_ingestion_metrics(job: IngestionJob) -> IngestionMetrics:
    """Read the values of `job`. They are None if a store fails or exceeds DATABASE_TIMEOUT_S."""
    runs: Sequence[IngestionRun] | None = None
    chunks: int | None = None
    try:
        chunks = job.collection.manifest.rows
        async with asyncio.timeout(DATABASE_TIMEOUT_S):
            runs = await asyncio.to_thread(job.runs.latest)
    except (ApideskError, TimeoutError):
        pass
    return IngestionMetrics(runs, chunks)


def _gauge(name: str, help_text: str, value: float | None) -> Metric:
    gauge = GaugeMetricFamily(f"apidesk_{name}", help_text)
    if value is not None:
        gauge.add_metric([], value)
    return gauge


def _is_successful(run: IngestionRun) -> bool:
    """Return whether the collection was up to date after the run, except for refused documents."""
    return run.state in ("succeeded", "partial") and not run.options.dry_run
