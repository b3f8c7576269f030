"""A real Redis server for tests, on a Unix socket in a temporary folder, without persistence."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import redis


class RedisServer:
    """A server that can be stopped and restarted, each time empty."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the server for APIDESK_REDIS_URL."""
        return f"unix://{self._socket}?db=0"

    def names(self) -> list[str]:
        """Return all keys."""
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return sorted(client.keys())

    def start(self) -> Self:
        """Start the server and wait until it responds."""
        options = ["--port", "0", "--unixsocket", str(self._socket), "--dir", str(self._folder)]
        self._process = subprocess.Popen(
            ["redis-server", *options, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )
        for _ in range(500):
            assert self._process.poll() is None, "redis-server ended"
            try:
                self.names()
                return self
            except redis.ConnectionError:
                time.sleep(0.01)
        raise AssertionError("redis-server does not answer")

    def stop(self) -> None:
        """Stop the server and disconnect its clients."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


def missing_redis() -> str | None:
    """Return why no server can be started, or an empty string."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """Run a server within the block."""
    # Not in pytest's folder, because the path of a socket may have at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="redis-") as name:
        server = RedisServer(Path(name)).start()
        try:
            yield server
        finally:
            server.stop()
