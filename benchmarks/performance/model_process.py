"""The scripted model server as a separate process, and its log of calls."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from benchmarks.performance.calls import Call, Latencies
from benchmarks.performance.scripted_model import Kind


class Seen(NamedTuple):
    """The model calls since the log was last read."""

    calls: list[Call]
    bodies: dict[str, str]
    """The last request body of each kind."""

    def count(self, kind: Kind) -> int:
        """Return the number of calls of a kind."""
        return sum(call.kind == kind for call in self.calls)


class Model:
    """A running model server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base_url = f"{address}/v1"
        """The base URL for clients of OpenAI's API."""

    def seen(self) -> Seen:
        """Return the model calls since this method was last called."""
        log = httpx.get(f"{self.address}/calls", trust_env=False).json()
        return Seen([Call(*call) for call in log["calls"]], log["bodies"])

    def set_pace(self, pace: Latencies) -> None:
        """Set the latencies from the next call on."""
        httpx.post(f"{self.address}/pace", json=pace._asdict(), trust_env=False)


@contextmanager
def running_model() -> Iterator[Model]:
    """Start a model server without latency."""
    command = [sys.executable, "-m", "benchmarks.performance.model_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield Model(process.stdout.readline().strip())
        finally:
            process.kill()
