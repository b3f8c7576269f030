"""The scripted model server as a process of its own, and what it has seen."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from benchmarks.performance.calls import Call, Pace
from benchmarks.performance.scripted_model import Kind


class Seen(NamedTuple):
    """What a model was asked since somebody looked last."""

    calls: list[Call]
    bodies: dict[str, str]
    """The last request of each kind, whenever it came."""

    def count(self, kind: Kind) -> int:
        """How many calls were of that kind."""
        return sum(call.kind == kind for call in self.calls)


class Model:
    """The model server that runs at an address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base_url = f"{address}/v1"
        """What a client of OpenAI's takes."""

    def seen(self) -> Seen:
        """What it was asked since the last time."""
        said = httpx.get(f"{self.address}/calls", trust_env=False).json()
        return Seen([Call(*call) for call in said["calls"]], said["bodies"])

    def set_pace(self, pace: Pace) -> None:
        """From the next call on."""
        httpx.post(f"{self.address}/pace", json=pace._asdict(), trust_env=False)


@contextmanager
def running_model() -> Iterator[Model]:
    """A model that answers at once until it is given another pace."""
    command = [sys.executable, "-m", "benchmarks.performance.model_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield Model(process.stdout.readline().strip())
        finally:
            process.kill()
