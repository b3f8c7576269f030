"""Writes and reads the address file of a server whose index is a local file (Milvus Lite).

While a server runs, a file next to the index file contains the server's address and a temporary API key.
`apidesk ask` and `apidesk chat` send their questions to the server, which has already loaded everything.
Only the user who started the server can read the file.

The server also locks a second file as long as it runs. If the address file exists but this lock is free,
the server was killed, and the address is out of date. If several servers use the same index file, only the
first one writes its address.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from filelock import FileLock, Timeout
from pydantic import BaseModel, SecretStr, ValidationError

from schemas.settings import Settings

LOCK_TIMEOUT_S = 1.0
"""Seconds that the server waits for its lock. Commands hold the lock briefly to find a running server."""


class LocalServer(BaseModel):
    """The content of the address file."""

    url: str
    platform: str
    """The absolute path of the server's platform.toml."""
    key: SecretStr

    def client(self, timeout: float) -> httpx.AsyncClient:
        """Return an HTTP client that sends the key; `timeout` is in seconds."""
        headers = {"Authorization": f"Bearer {self.key.get_secret_value()}"}
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=False
        )


@contextmanager
def announce_server(settings: Settings, host: str, port: int, key: str) -> Iterator[None]:
    """Write the address file, and delete it at the end of the block.

    Do nothing if the index is on a Milvus server, or if the lock cannot be acquired.
    """
    lock = _server_lock(settings, LOCK_TIMEOUT_S)
    if settings.embedded:
        with suppress(OSError):  # includes Timeout: another server holds the lock
            lock.acquire()
    if not lock.is_locked:
        yield
        return
    path = _address_file(settings)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    content = {"url": url, "platform": str(settings.platform.resolve()), "key": key}
    try:
        _write_privately(path, json.dumps(content))
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def find_running_server(settings: Settings) -> LocalServer | None:
    """Return the running server that is announced next to the index file, or None.

    A server is running if its lock is held. If this cannot be determined, return None.
    """
    try:
        server = LocalServer.model_validate_json(_address_file(settings).read_bytes())
        with _server_lock(settings, timeout_s=0):
            return None
    except Timeout:
        return server
    except (OSError, ValidationError):
        return None


def _write_privately(path: Path, text: str) -> None:
    """Replace the file at `path` with a new file that only this user can read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def _address_file(settings: Settings) -> Path:
    return Path(f"{settings.milvus_uri}.server.json")


def _server_lock(settings: Settings, timeout_s: float) -> FileLock:
    path = f"{settings.milvus_uri}.server.lock"
    return FileLock(path, timeout=timeout_s, mode=0o600, thread_local=False)
