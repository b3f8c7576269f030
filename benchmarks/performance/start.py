"""Measures the start of a command and of a server."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.performance.calls import NO_LATENCY
from benchmarks.performance.model_process import Model
from benchmarks.performance.passages import Passages
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.systems import environment, running_apidesk
from tests.serving_process import APIDESK, ServingProcess

HELP = Target(0.4, unit=" s more")
READY = Target(4.0, unit=" s")

READINESS_POLL_S = 0.02
"""Seconds between two readiness checks."""


@dataclass
class Start:
    """Seconds of each measurement."""

    help: list[float] = field(default_factory=list)
    python: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        """Return the rows of the speed targets for starting."""
        mine, theirs = p50(self.help), p50(self.python)
        yield Row(
            "`apidesk --help`", f"{mine:.2f} s", f"`python -c pass` {theirs:.2f} s",
            mine - theirs, HELP,
        )  # fmt: skip
        ready = p50(self.ready)
        yield Row("start to ready, warm", f"{ready:.2f} s", "", ready, READY)


def measure(samples: Passages, model: Model, folder: Path, commands: int, starts: int) -> Start:
    """Measure two commands in turns, and the start of a server whose samples are already indexed."""
    found = Start()
    model.set_pace(NO_LATENCY)  # a server is ready after one call of its model
    ways: list[tuple[list[float], list[str]]] = [
        (found.help, [APIDESK, "--help"]),
        (found.python, [sys.executable, "-c", "pass"]),
    ]
    for _, (times, command) in in_turns(ways, commands):
        times.append(_seconds(lambda command=command: _run(command)))  # type: ignore[misc]
    with running_apidesk("apidesk", folder, samples, model):
        pass  # indexes the samples, and fills the file cache of the system
    given = environment(folder, samples.platform, model)
    found.ready += [_until_ready(folder / f"log-{number}", given) for number in range(starts)]
    return found


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)


def _seconds(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _until_ready(log: Path, given: Mapping[str, str]) -> float:
    """Return the seconds from the start of a process until it is ready."""
    began = time.monotonic()
    server = ServingProcess(log, given)
    try:
        ready = f"{server.url}/health/ready"
        while httpx.get(ready, trust_env=False).status_code != 200:
            time.sleep(READINESS_POLL_S)
        return time.monotonic() - began
    finally:
        server.stop()
