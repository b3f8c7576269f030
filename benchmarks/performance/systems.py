"""The measured servers: apidesk, the peers, and the baseline."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from benchmarks.peers.environment import Name, start_peer
from benchmarks.performance.model_process import Model
from benchmarks.performance.passages import Passages
from benchmarks.performance.scripted_model import OFF_TOPIC
from tests.serving_process import ServingProcess

TIMEOUT_S = 300.0
"""Seconds to wait for the answer to a question."""

MAX_CONCURRENCY = 128
"""Limit on apidesk's concurrent model calls; there are fewer clients."""

OURS = {True: "apidesk, hybrid", False: "apidesk, full text"}
"""Titles of apidesk with an embedding model (True) and without one (False)."""

FLOOR = "two calls, nothing else"
"""Title of the baseline, which is not a peer."""

_TITLES = {
    "haystack_bm25": "Haystack, BM25",
    "haystack_dense": "Haystack, dense",
    "llama_index": "LlamaIndex",
    "langchain_chain": "LangChain",
}


def title(name: str) -> str:
    """Return the title of a system in tables and figures."""
    return _TITLES.get(name, name)


def is_peer(name: str) -> bool:
    """Return whether a system is a peer."""
    return name not in (*OURS.values(), FLOOR)


class System(Protocol):
    """A server that answers questions."""

    @property
    def name(self) -> str:
        """Name of the system."""

    @property
    def url(self) -> str:
        """Endpoint for questions."""

    @property
    def pid(self) -> int:
        """Id of the serving process."""

    def payload(self, question: str) -> dict[str, str]:
        """Return the JSON body of a question."""

    def answer(self, body: Any) -> dict[str, Any]:
        """Return the reply in the JSON body of a response, with `type` and `sources`."""


@dataclass(frozen=True)
class Apidesk:
    """The server of apidesk."""

    name: str
    server: str
    """The address of the server."""
    pid: int

    @property
    def url(self) -> str:
        """Endpoint for questions."""
        return f"{self.server}/ask"

    def payload(self, question: str) -> dict[str, str]:
        """Return the JSON body of a question."""
        return {"question": question}

    def answer(self, body: Any) -> dict[str, Any]:
        """Return the reply, which is the body. Raises ValueError if the answer is degraded."""
        if body["degraded"]:
            raise ValueError(body["degraded"])
        reply: dict[str, Any] = body
        return reply


@dataclass(frozen=True)
class Floor:
    """The baseline: a server that only makes the two model calls."""

    url: str
    pid: int
    name: str = FLOOR

    def payload(self, question: str) -> dict[str, str]:
        """Return the JSON body of a question."""
        return {"question": question}

    def answer(self, body: Any) -> dict[str, Any]:
        """Return the reply, which is the body."""
        reply: dict[str, Any] = body
        return reply


def environment(folder: Path, platform: Path, model: Model, dense: bool = True) -> dict[str, str]:
    """Return the environment of a server with its data in `folder`, with or without an embedding model."""
    chat = {
        "APIDESK_MILVUS_URI": str(folder / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
        "APIDESK_SPOOL": str(folder / "spool"),
        "APIDESK_PLATFORM": str(platform),
        "APIDESK_CHAT_MODEL": "openai:scripted-chat",
        "APIDESK_CHAT_BASE_URL": model.base_url,
        "APIDESK_CHAT_API_KEY": "none",
        "APIDESK_MAX_CONCURRENCY": str(MAX_CONCURRENCY),
        "LANGSMITH_TRACING": "false",
    }
    embedding = {
        "APIDESK_EMBEDDING_MODEL": "openai:scripted-embedding",
        "APIDESK_EMBEDDING_BASE_URL": model.base_url,
        "APIDESK_EMBEDDING_API_KEY": "none",
    }
    return chat | (embedding if dense else {})


@contextmanager
def running_apidesk(
    name: str,
    folder: Path,
    passages: Passages,
    model: Model,
    dense: bool = True,
    **settings: str,
) -> Iterator[Apidesk]:
    """Start `apidesk serve` with its data in `folder`; wait until it has indexed the passages."""
    folder.mkdir(parents=True, exist_ok=True)
    given = environment(folder, passages.platform, model, dense) | settings
    server = ServingProcess(folder / "log", given)
    try:
        server.wait_for_workers(1)
        yield Apidesk(name, server.url, server.process.pid)
    finally:
        server.stop()


@contextmanager
def running_floor(passages: Passages, model: Model) -> Iterator[Floor]:
    """Start `benchmarks.performance.floor`. Raises RuntimeError if it does not start."""
    module = [sys.executable, "-m", "benchmarks.performance.floor"]
    given = ["--platform", str(passages.platform), "--model-url", model.base_url]
    quiet = os.environ | {"LANGSMITH_TRACING": "false"}
    pipe = subprocess.PIPE
    with subprocess.Popen(module + given, stdout=pipe, text=True, env=quiet) as process:
        try:
            assert process.stdout is not None
            if not (url := process.stdout.readline().strip()):
                raise RuntimeError(f"{FLOOR}: it did not start")
            yield Floor(url, process.pid)
        finally:
            process.terminate()


@contextmanager
def running_systems(
    folder: Path, passages: Passages, model: Model, peers: tuple[Name, ...]
) -> Iterator[list[System]]:
    """Start apidesk with hybrid retrieval and with full text, the peers and the baseline.

    All have the same passages.
    """
    with ExitStack() as stack:
        ours = [
            running_apidesk(OURS[dense], folder / f"dense-{dense}", passages, model, dense)
            for dense in (True, False)
        ]
        others = [start_peer(name, passages.file, model.base_url) for name in peers]
        starting: list[AbstractContextManager[System]] = [
            *ours,
            *others,
            running_floor(passages, model),
        ]
        yield [stack.enter_context(each) for each in starting]


def one_thread() -> None:
    """Limit BLAS to one core in this process and its children."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


async def ask(http: httpx.AsyncClient, system: System, question: str) -> dict[str, Any]:
    """Return the reply to a question.

    Raises httpx.HTTPError. Raises ValueError for an error status or a wrong reply: a question about the
    platform must be answered with sources, any other must not.
    """
    response = await http.post(system.url, json=system.payload(question), timeout=TIMEOUT_S)
    if response.is_error:
        raise ValueError(f"{system.name}: {response.status_code} {response.text}")
    reply = system.answer(response.json())
    off_topic = question.startswith(OFF_TOPIC)
    if off_topic != (reply["type"] == "unknown") or off_topic == bool(reply["sources"]):
        raise ValueError(f"{system.name}, {question!r}: {reply}")
    return reply
