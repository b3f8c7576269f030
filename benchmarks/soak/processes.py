"""The processes of the soak test: starting, measuring and disturbing them."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.process_memory import family, resident
from benchmarks.soak.documents import Documents
from tests.milvus_server import MilvusServer
from tests.serving_process import APIDESK, ServingProcess

WORKERS = 2

CHANGED_PAGES = 6
"""Number of pages that change before each ingestion run."""

INGESTION_INTERVAL_S = 20.0
"""Seconds between the starts of two ingestion runs, unless a run takes longer."""

DOWNTIME_S = 5.0
"""Seconds between stop and start of Milvus in a restart."""

RECOVERY_TIME_S = 15.0
"""Seconds after a restart within which questions may still fail."""


class ModelProcess:
    """The scripted model server in a separate process."""

    def __init__(self, failing: float) -> None:
        command = [sys.executable, "-m", "benchmarks.soak.model", str(failing)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    def tidy(self) -> None:
        """Clear the log of calls."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def stop(self) -> dict[str, int]:
        """Stop the model; return the numbers of calls and failures."""
        output, _ = self._process.communicate(timeout=30)
        counts: dict[str, int] = json.loads(output.splitlines()[-1])
        return counts


@dataclass
class Site:
    """The running processes and their folders."""

    folder: Path
    documents: Documents
    milvus: MilvusServer
    model: ModelProcess
    environment: dict[str, str]
    server: ServingProcess
    outages: list[tuple[float, float]] = field(default_factory=list)
    """Intervals from a stop of Milvus until questions must be answered again."""
    runs: list[str] = field(default_factory=list)
    """Outcome of each ingestion run."""

    def is_milvus_down(self, began: float, ended: float) -> bool:
        """Return whether Milvus was down or recovering at any time between `began` and `ended`."""
        return any(since <= ended and began <= until for since, until in self.outages)

    def turns(self) -> set[tuple[str, str]]:
        """Return the session and answer of every turn in the database."""
        with sqlite3.connect(self.folder / "apidesk.db") as database:
            return set(database.execute("select session, answer from turns"))

    def questions(self) -> set[str]:
        """Return the ids of the recorded questions."""
        with sqlite3.connect(self.folder / "apidesk.db") as database:
            return {row[0] for row in database.execute("select id from questions")}


@contextmanager
def running_site(folder: Path, failing: float) -> Iterator[Site]:
    """Start Milvus, the model and the server; wait until the server has started its workers."""
    documents = Documents(folder)
    model = ModelProcess(failing)
    with MilvusServer(folder / "milvus") as milvus:
        environment = {
            "APIDESK_MILVUS_URI": milvus.uri,
            "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
            "APIDESK_PLATFORM": str(documents.platform),
            "APIDESK_SPOOL": str(folder / "spool"),
            "APIDESK_CHAT_MODEL": "openai:scripted-chat",
            "APIDESK_CHAT_BASE_URL": model.base_url,
            "APIDESK_CHAT_API_KEY": "none",
            "APIDESK_LOG_LEVEL": "WARNING",
            "TMPDIR": str(folder),
        }
        server = ServingProcess(
            folder / "log", environment | {"APIDESK_LOG_LEVEL": "INFO"}, ["--workers", str(WORKERS)]
        )
        try:
            server.wait_for_workers(WORKERS)
            documents.settle()
            yield Site(folder, documents, milvus, model, environment, server)
        finally:
            server.stop()


async def keep_indexing(site: Site, until: Callable[[], bool]) -> None:
    """Change some pages and index them repeatedly, each time in a new process."""
    number = 0
    while not until():
        began = time.monotonic()
        topics = site.documents.topics
        changed = [topics[(number * CHANGED_PAGES + i) % len(topics)] for i in range(CHANGED_PAGES)]
        site.documents.change(changed)
        number += 1
        process = await asyncio.create_subprocess_exec(
            APIDESK, "ingest", env=os.environ | site.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, stderr = await process.communicate()
        site.runs.append(_outcome(site, process.returncode, stderr.decode(), began))
        if process.returncode == 0:
            site.documents.settle()
        await asyncio.sleep(max(0.0, INGESTION_INTERVAL_S - (time.monotonic() - began)))


def _outcome(site: Site, code: int | None, stderr: str, began: float) -> str:
    if code == 0:
        return "succeeded"
    if site.is_milvus_down(began, time.monotonic()):
        return "store unavailable"
    return f"failed: {stderr.strip().splitlines()[-1] if stderr.strip() else code}"


async def restart_milvus(site: Site, moments: Sequence[float]) -> None:
    """Restart Milvus at each of `moments` (`time.monotonic`)."""
    for moment in moments:
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        began = time.monotonic()
        site.outages.append((began, float("inf")))
        await asyncio.to_thread(site.milvus.stop)
        await asyncio.sleep(DOWNTIME_S)
        await asyncio.to_thread(site.milvus.start)
        site.outages[-1] = (began, time.monotonic() + RECOVERY_TIME_S)


@dataclass(frozen=True)
class MemorySample:
    """Resident memory at one time, in MB."""

    at: float
    server: float
    """Memory of all processes of `apidesk serve`."""
    milvus: float


async def record_memory(site: Site, samples: list[MemorySample], until: Callable[[], bool]) -> None:
    """Append the memory of the processes to `samples` every second, and clear the model's log of calls."""
    while not until():
        server = sum(map(resident, family(site.server.process.pid)))
        milvus = (
            0.0
            if site.is_milvus_down(time.monotonic(), time.monotonic())
            else resident(site.milvus.pid)
        )
        samples.append(MemorySample(time.monotonic(), server, milvus))
        site.model.tidy()
        await asyncio.sleep(1)
