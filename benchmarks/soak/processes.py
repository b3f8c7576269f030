"""The processes of the soak, what they weigh, and what happens to them meanwhile."""

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

CHANGED = 6
"""Pages that a run of the ingestion finds changed."""

INGEST_EVERY = 20.0
"""Seconds between two runs."""

AWAY_SECONDS = 5.0
"""How long Milvus stays away when it is restarted."""

BACK_SECONDS = 15.0
"""How long after that questions may still find it away."""


class ModelProcess:
    """The scripted model server, in a process of its own."""

    def __init__(self, failing: float) -> None:
        command = [sys.executable, "-m", "benchmarks.soak.model", str(failing)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    def tidy(self) -> None:
        """Let it forget what it was asked."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def stop(self) -> dict[str, int]:
        """How often it was asked, and how it failed."""
        said, _ = self._process.communicate(timeout=30)
        counts: dict[str, int] = json.loads(said.splitlines()[-1])
        return counts


@dataclass
class Site:
    """Everything that runs, and where it lies."""

    folder: Path
    documents: Documents
    milvus: MilvusServer
    model: ModelProcess
    environment: dict[str, str]
    server: ServingProcess
    away: list[tuple[float, float]] = field(default_factory=list)
    """When Milvus was stopped, and when questions have to be answered again."""
    runs: list[str] = field(default_factory=list)
    """What each run of the ingestion came to."""

    def is_away(self, began: float, ended: float) -> bool:
        """Whether Milvus was away at some time between the two."""
        return any(since <= ended and began <= until for since, until in self.away)

    def turns(self) -> set[tuple[str, str]]:
        """Session and answer of every turn in the database."""
        with sqlite3.connect(self.folder / "apidesk.db") as database:
            return set(database.execute("select session, answer from turns"))

    def questions(self) -> set[str]:
        """The id of every question that was kept."""
        with sqlite3.connect(self.folder / "apidesk.db") as database:
            return {row[0] for row in database.execute("select id from questions")}


@contextmanager
def running_site(folder: Path, failing: float) -> Iterator[Site]:
    """Milvus, the model and the server, once all of them answer."""
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
    """Change some pages and index them, again and again, in a process of its own each time."""
    number = 0
    while not until():
        began = time.monotonic()
        topics = site.documents.topics
        changed = [topics[(number * CHANGED + i) % len(topics)] for i in range(CHANGED)]
        site.documents.change(changed)
        number += 1
        process = await asyncio.create_subprocess_exec(
            APIDESK, "ingest", env=os.environ | site.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, said = await process.communicate()
        site.runs.append(_outcome(site, process.returncode, said.decode(), began))
        if process.returncode == 0:
            site.documents.settle()
        await asyncio.sleep(max(0.0, INGEST_EVERY - (time.monotonic() - began)))


def _outcome(site: Site, code: int | None, said: str, began: float) -> str:
    if code == 0:
        return "succeeded"
    if site.is_away(began, time.monotonic()):
        return "store away"
    return f"failed: {said.strip().splitlines()[-1] if said.strip() else code}"


async def restart_milvus(site: Site, moments: Sequence[float]) -> None:
    """Stop it at each of `moments` (`time.monotonic`), and start it again."""
    for moment in moments:
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        began = time.monotonic()
        site.away.append((began, float("inf")))
        await asyncio.to_thread(site.milvus.stop)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(site.milvus.start)
        site.away[-1] = (began, time.monotonic() + BACK_SECONDS)


@dataclass(frozen=True)
class Weight:
    """Resident memory at one time, in MB."""

    at: float
    server: float
    """Of all processes of `apidesk serve`."""
    milvus: float


async def weigh(site: Site, weights: list[Weight], until: Callable[[], bool]) -> None:
    """Take the memory of the processes each second."""
    while not until():
        server = sum(map(resident, family(site.server.process.pid)))
        milvus = (
            0.0 if site.is_away(time.monotonic(), time.monotonic()) else resident(site.milvus.pid)
        )
        weights.append(Weight(time.monotonic(), server, milvus))
        site.model.tidy()
        await asyncio.sleep(1)
