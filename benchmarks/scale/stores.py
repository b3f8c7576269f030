"""Indexes documentation of each size with `apidesk ingest`, and measures the cost of a run."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process_cpu import CommandUsage, measure_command
from benchmarks.scale.corpus import change_page, write_documentation
from tests.serving_process import APIDESK


@dataclass(frozen=True)
class Store:
    """Indexed documentation, with the cost of indexing it."""

    folder: Path
    platform: Path
    chunks: int
    terms: int
    """Number of distinct terms of the full-text index."""
    snapshot_mb: float
    record_mb: float
    """Size of the Milvus Lite files."""
    first: CommandUsage
    changed: CommandUsage
    """The usage of a run after one page has changed."""
    unchanged: CommandUsage
    """The usage of a run without a change."""

    @property
    def environment(self) -> dict[str, str]:
        """The settings of commands that use the store."""
        return environment(self.folder, self.platform)


def environment(folder: Path, platform: Path) -> dict[str, str]:
    """Return the settings of commands with their data in `folder`: full text, without a model."""
    return {
        "APIDESK_MILVUS_URI": str(folder / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
        "APIDESK_SPOOL": str(folder / "spool"),
        "APIDESK_PLATFORM": str(platform),
        "LANGSMITH_TRACING": "false",
    }


def build_store(folder: Path, chunks: int) -> Store:
    """Write documentation of about `chunks` chunks to `folder` and index it.

    Raises RuntimeError if a run fails.
    """
    documents, data = folder / "documents", folder / "data"
    platform = write_documentation(documents, chunks)
    data.mkdir()
    given = environment(data, platform)
    first = _ingest(given)
    change_page(documents, 1)
    changed, unchanged = _ingest(given), _ingest(given)
    (snapshot,) = data.glob("milvus.db.*.sqlite")
    indexed, terms = _counts(snapshot)
    return Store(
        folder=data,
        platform=platform,
        chunks=indexed,
        terms=terms,
        snapshot_mb=_megabytes(snapshot),
        record_mb=_megabytes(data / "milvus.db"),
        first=first,
        changed=changed,
        unchanged=unchanged,
    )


def _ingest(given: Mapping[str, str]) -> CommandUsage:
    return measure_command([APIDESK, "ingest"], given)


def _counts(snapshot: Path) -> tuple[int, int]:
    """Return the number of chunks and of terms in a snapshot."""
    with closing(sqlite3.connect(snapshot)) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM chunk), (SELECT count(*) FROM posting)"
        ).fetchone()
    return int(row[0]), int(row[1])


def _megabytes(path: Path) -> float:
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20
