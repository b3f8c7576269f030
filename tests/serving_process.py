"""Runs `apidesk serve` in a process, with its log in a file."""

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

TIMEOUT_S = 60.0
"""Seconds that tests wait for an expected event."""


def wait_until(condition: Callable[[], bool], description: str) -> None:
    """Wait for `condition`. Raises AssertionError with `description` after TIMEOUT_S."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {TIMEOUT_S:.0f} s: {description}"
        time.sleep(0.05)


class ServingProcess:
    """A server with its workers, on a free port of the loopback interface."""

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
        """The content of the log."""
        return self._log.read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        """The address of the server. Waits until it listens; raises AssertionError if it does not start."""
        wait_until(lambda: "Uvicorn running" in self.log or self._has_exited, "the server starts")
        match = re.search(r"Uvicorn running on (\S+)", self.log)
        assert match, self.log
        return match[1]

    @property
    def workers(self) -> list[int]:
        """The ids of all worker processes in the log; without `--workers`, the id of the server."""
        return [int(pid) for pid in re.findall(r"Started server process \[(\d+)\]", self.log)]

    def wait_for_workers(self, count: int) -> None:
        """Wait until `count` workers have started, including those that have ended."""
        ready = "Application startup complete"
        wait_until(
            lambda: self.log.count(ready) >= count or self._has_exited, f"{count} workers start"
        )
        assert self.log.count(ready) >= count, self.log

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the exit and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    @property
    def _has_exited(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def paused(pids: Sequence[int]) -> Iterator[None]:
    """Pause these processes within the block, so that the others answer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def ask(url: str, question: str) -> httpx.Response:
    """Ask a question over a new connection."""
    return httpx.post(f"{url}/ask", json={"question": question}, timeout=TIMEOUT_S, trust_env=False)
