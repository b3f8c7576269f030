"""`apidesk serve` as a process of its own, its log in a file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

APIDESK = str(Path(sys.executable).with_name("apidesk"))

PATIENCE = 60.0
"""Seconds after which what should happen does not."""


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Raises AssertionError that says `what` did not happen."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not in {PATIENCE:.0f} s: {what}"
        time.sleep(0.05)


class ServingProcess:
    """A server with its workers, on a free port of loopback."""

    def __init__(
        self, log: Path, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> None:
        self._log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [APIDESK, "serve", "--port", "0", *arguments],
                stderr=stderr,
                env=os.environ | environment,
            )

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        """Its address. Raises AssertionError when it does not start."""
        wait_until(lambda: "Uvicorn running" in self.log or self._ended, "the server starts")
        found = re.search(r"Uvicorn running on (\S+)", self.log)
        assert found, self.log
        return found[1]

    @property
    def workers(self) -> list[int]:
        """The processes that answer, as the log knows them; without `--workers` the only one."""
        return [int(pid) for pid in re.findall(r"Started server process \[(\d+)\]", self.log)]

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many workers, those that have ended included, have begun to answer."""
        ready = "Application startup complete"
        wait_until(lambda: self.log.count(ready) >= count or self._ended, f"{count} workers start")
        assert self.log.count(ready) >= count, self.log

    def stop(self, number: int = signal.SIGTERM) -> int:
        """The exit code, once it has ended."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    @property
    def _ended(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def paused(pids: Sequence[int]) -> Iterator[None]:
    """Within the block these processes do nothing, so that the others answer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def ask(url: str, question: str) -> httpx.Response:
    """The response to a question, over a connection of its own."""
    return httpx.post(f"{url}/ask", json={"question": question}, timeout=PATIENCE, trust_env=False)
