"""Measures servers with the stores: CPU per question, time of retrieval, throughput and memory."""

import asyncio
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.performance.rounds import in_turns
from benchmarks.performance.start import READINESS_POLL_S
from benchmarks.process_cpu import cpu_seconds
from benchmarks.process_memory import family, proportional, resident
from benchmarks.scale.corpus import questions
from benchmarks.scale.effort import Effort
from benchmarks.scale.stores import Store
from tests.serving_process import ServingProcess

CLIENTS = 64

TIMEOUT_S = 120.0
"""Seconds to wait for the answer to a question."""

MAX_REFUSED = 0.3
"""Maximum share of the questions that may be refused as off-topic, as generated questions sometimes are."""

QUESTION_PAGES = 40
"""Number of pages that questions are about: the first pages, which are in all sizes of the corpus."""


@dataclass
class Serving:
    """The results of a server."""

    store: Store
    workers: int
    ready_cpu: list[float] = field(default_factory=list)
    """CPU seconds of each start until the server is ready."""
    ask_cpu: list[float] = field(default_factory=list)
    """CPU seconds per question to `/ask` in each round."""
    retrieve: list[float] = field(default_factory=list)
    """Seconds of each question to `/retrieve`."""
    rates: list[float] = field(default_factory=list)
    """Questions to `/ask` per second from all clients in each round."""
    resident_mb: float = 0.0
    """Resident memory of all processes after the questions."""
    proportional_mb: float = 0.0
    """Proportional set size (PSS) of all processes after the questions."""


class _Response(NamedTuple):
    seconds: float
    has_sources: bool


@dataclass(frozen=True)
class Server:
    """A running server."""

    serving: Serving
    url: str
    pid: int


def measure(stores: list[Store], effort: Effort, folder: Path) -> list[Serving]:
    """Measure a server per store, and one with two workers and a copy of the last store in `folder`."""
    servings = [Serving(store, workers=1) for store in stores]
    copy = shutil.copytree(stores[-1].folder, folder / "copy")
    servings.append(Serving(replace(stores[-1], folder=copy), workers=2))
    for serving in servings:
        serving.ready_cpu += [_cpu_until_ready(serving) for _ in range(effort.starts)]
    with ExitStack() as stack:
        servers = [stack.enter_context(running(serving)) for serving in servings]
        asyncio.run(_ask_all(servers, effort))
        for server in servers:
            processes = family(server.pid)
            server.serving.resident_mb = sum(map(resident, processes))
            server.serving.proportional_mb = sum(map(proportional, processes))
    return servings


async def seconds_one_at_a_time(url: str, texts: Sequence[str]) -> list[float]:
    """Return the seconds of each of `texts`, asked one after the other at `url`.

    Raises ValueError if more than the share `MAX_REFUSED` of them is not answered with sources.
    """
    async with _client() as http:
        responses = [await _post(http, url, text) for text in texts]
    _check(url, responses)
    return [response.seconds for response in responses]


@contextmanager
def running(serving: Serving) -> Iterator[Server]:
    """Run a server with the store of `serving` within the block."""
    process = _start(serving)
    try:
        process.wait_for_workers(serving.workers)
        yield Server(serving, process.url, process.process.pid)
    finally:
        process.stop()


def _start(serving: Serving) -> ServingProcess:
    arguments = ["--workers", str(serving.workers)] if serving.workers > 1 else []
    return ServingProcess(serving.store.folder / "log", serving.store.environment, arguments)


def _cpu_until_ready(serving: Serving) -> float:
    process = _start(serving)
    try:
        process.wait_for_workers(serving.workers)
        ready = f"{process.url}/health/ready"
        while httpx.get(ready, trust_env=False).status_code != 200:
            time.sleep(READINESS_POLL_S)
        return cpu_seconds(process.process.pid)
    finally:
        process.stop()


async def _ask_all(servers: list[Server], effort: Effort) -> None:
    """Ask all servers the same questions in turns: one at a time, and then from all clients."""
    texts = islice(questions(QUESTION_PAGES), effort.rounds * effort.retrieved, None)
    warm_up = list(islice(texts, effort.warm_up))
    for server in servers:
        await seconds_one_at_a_time(f"{server.url}/ask", warm_up)
    alone = [server for server in servers if server.serving.workers == 1]
    asked = [list(islice(texts, effort.asked)) for _ in range(effort.rounds)]
    retrieved = list(islice(questions(QUESTION_PAGES), effort.rounds * effort.retrieved))
    for number, server in in_turns(alone, effort.rounds):
        before = cpu_seconds(server.pid)
        await seconds_one_at_a_time(f"{server.url}/ask", asked[number])
        server.serving.ask_cpu.append((cpu_seconds(server.pid) - before) / effort.asked)
        part = retrieved[number :: effort.rounds]
        server.serving.retrieve += await seconds_one_at_a_time(f"{server.url}/retrieve", part)
    loads = [list(islice(texts, effort.load_questions)) for _ in range(effort.load_rounds)]
    for number, server in in_turns(servers, effort.load_rounds):
        server.serving.rates.append(await _rate(f"{server.url}/ask", loads[number]))


async def _rate(url: str, texts: Sequence[str]) -> float:
    """Return the questions per second, from the first question to the last answer. Raises ValueError."""
    remaining, responses = iter(texts), list[_Response]()

    async def ask(http: httpx.AsyncClient) -> None:
        for text in remaining:
            responses.append(await _post(http, url, text))

    async with _client() as http:
        began = time.monotonic()
        await asyncio.gather(*(ask(http) for _ in range(CLIENTS)))
        seconds = time.monotonic() - began
    _check(url, responses)
    return len(responses) / seconds


async def _post(http: httpx.AsyncClient, url: str, text: str) -> _Response:
    began = time.perf_counter()
    response = await http.post(url, json={"question": text})
    seconds = time.perf_counter() - began
    response.raise_for_status()
    return _Response(seconds, bool(response.json()["sources"]))


def _check(url: str, responses: Sequence[_Response]) -> None:
    refused = sum(not response.has_sources for response in responses)
    if refused > MAX_REFUSED * len(responses):
        raise ValueError(f"{url}: {refused} of {len(responses)} questions without sources")


def _client() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    return httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S, limits=limits)
