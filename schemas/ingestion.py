"""What an ingestion run is asked to do, and what it did."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from schemas.base import ApiModel, examples

Trigger = Literal["command", "request", "schedule", "watch", "start"]
"""What began a run: `apidesk ingest`, POST /ingestions, the schedule, a change, a first start."""

RunState = Literal["running", "succeeded", "partial", "failed"]
"""`partial`: documents were refused or kept against the source; the rest is as it should be."""


class IngestionOptions(ApiModel):
    """How a run treats what it finds."""

    model_config = examples({"dryRun": True})

    rebuild: bool = False
    """Fill a new collection from the documents alone, whatever made the old one."""
    allow_deletes: bool = False
    """Delete also where much of a source has vanished."""
    dry_run: bool = False
    """Compare only: neither embed nor write."""


class SourceReport(ApiModel, frozen=False):
    """What became of one source; all counts are of documents unless they say chunks."""

    name: str
    expected: int | None = None
    """How many files there are to read, where that is known before."""
    documents: int = 0
    """Read so far."""
    chunks: int = 0
    """Chunks of the documents that were read."""
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    written: int = 0
    """Chunks that were written, and embedded where there is an embedding model."""
    kept: int = 0
    """Documents that are indexed and were not found any more, and stay all the same."""
    refused: list[str] = Field(default_factory=list)
    """A line for each document that could not be read, and for deletes that were refused."""


class IngestionRun(ApiModel, frozen=False):
    """One run of the ingestion job."""

    id: str
    trigger: Trigger
    options: IngestionOptions = IngestionOptions()
    state: RunState = "running"
    started_at: datetime
    finished_at: datetime | None = None
    seconds: float = 0.0
    host: str
    pid: int
    sources: list[SourceReport] = Field(default_factory=list)
    error: str | None = None
    """Why the run failed, in one line."""

    @property
    def refused(self) -> list[str]:
        """Every line that the sources' reports hold, with the source's name."""
        return [f"{source.name}: {line}" for source in self.sources for line in source.refused]
