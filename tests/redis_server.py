"""A real Redis for tests: on a socket in a folder of its own, and nothing kept."""

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
    """A server that can be stopped and started again, with nothing in it."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "redis.sock"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What APIDESK_REDIS_URL takes."""
        return f"unix://{self._socket}?db=0"

    def names(self) -> list[str]:
        """The names of everything in it."""
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return sorted(client.keys())

    def start(self) -> Self:
        """Start it, and wait until it answers."""
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
        """Stop it; whoever is connected is cut off."""
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


def missing_redis() -> str | None:
    """Why there can be no server here, if so."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """A server, while the block lasts."""
    # Not pytest's own folder: the path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="redis-") as name:
        server = RedisServer(Path(name)).start()
        try:
            yield server
        finally:
            server.stop()
