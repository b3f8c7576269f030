"""One ingestion run at a time, also across processes."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.errors import IngestionRunning
from schemas.ingestion import IngestionRun
from schemas.settings import Settings


@contextmanager
def run_lock(settings: Settings, run: IngestionRun) -> Iterator[None]:
    """Hold the lock of the collection in Settings; the system frees it when the process dies.

    Raises IngestionRunning that says who holds it.
    """
    path = _lock_file(settings)
    holder = path.with_suffix(".json")
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise _running(path) from None
    try:
        holder.write_text(run.model_dump_json(by_alias=False), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def check_free(settings: Settings) -> None:
    """Raises IngestionRunning that says who holds the lock, when somebody does."""
    path = _lock_file(settings)
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        raise _running(path) from None


def _running(path: Path) -> IngestionRunning:
    return IngestionRunning(f"another ingestion is under way: {_holder(path)}")


def _lock_file(settings: Settings) -> Path:
    """A file that every process on this machine finds for the same collection."""
    name = hashlib.sha256(settings.collection_id.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"apidesk-{name}.lock"


def _holder(path: Path) -> str:
    try:
        run = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        since = run["started_at"][:19].replace("T", " ")
        return f"process {run['pid']} on {run['host']}, begun by {run['trigger']} at {since} UTC"
    except (OSError, ValueError, KeyError):
        return "a process that has just begun"
