"""A line in the log for each ingestion that nobody watches at a terminal."""

from app.telemetry.logs import structured_logger
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
