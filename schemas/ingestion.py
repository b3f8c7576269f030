"""Options and reports of ingestion runs."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from schemas.base import ApiModel, examples

Trigger = Literal["command", "request", "schedule", "watch", "start"]
"""What started a run.

`command`: a command such as `apidesk ingest`; `request`: POST /ingestions; `schedule`: the schedule in
platform.toml; `watch`: a file change; `start`: the start of a server, command or program that found no
collection.
"""

RunState = Literal["running", "succeeded", "partial", "failed"]
"""`partial`: the run finished, but a document could not be read or a deletion was refused."""


class IngestionOptions(ApiModel):
    """Options of an ingestion run."""

    model_config = examples({"dryRun": True})

    rebuild: bool = False
    """Build a new collection from the documents instead of updating the current one."""
    allow_deletes: bool = False
    """Delete documents even if a large part of a source is missing."""
    dry_run: bool = False
    """Only compare the documents with the collection, without embedding or writing."""


class SourceReport(ApiModel, frozen=False):
    """The result for one source. Counts are of documents unless stated otherwise."""

    name: str
    expected: int | None = None
    """Number of files to read, if known in advance."""
    documents: int = 0
    """Documents found so far, including those of unchanged files, which are not read again."""
    chunks: int = 0
    """Chunks of these documents."""
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    written: int = 0
    """Chunks written, and embedded if there is an embedding model."""
    kept: int = 0
    """Indexed documents that were not found in the source, but were not deleted either."""
    operations: int = 0
    """API operations found on pages that this run read. OpenAPI descriptions do not count."""
    empty: list[str] = Field(default_factory=list)
    """Paths, within the source, of the files that have no body."""
    refused: list[str] = Field(default_factory=list)
    """One line per unreadable document and per refused deletion."""
    warnings: list[str] = Field(default_factory=list)
    """One line per problem that does not prevent indexing.

    For example, no document has a link, although the source has a `page_url`.
    """


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
        """The `refused` lines of all sources, each with the name of its source."""
        return [f"{source.name}: {line}" for source in self.sources for line in source.refused]

    @property
    def unread(self) -> list[str]:
        """The names of the sources of which no document could be read.

        Sources that were removed from platform.toml do not count.
        """
        return [
            source.name
            for source in self.sources
            if source.refused and not source.documents and source.expected != 0
        ]

    def describe(self) -> str:
        """Return a phrase for messages that names the run's process, start time and trigger."""
        since = f"{self.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        return f"process {self.pid} on {self.host}, since {since} (trigger: {self.trigger})"
