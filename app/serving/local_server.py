"""The address of the server that holds an embedded store.

Milvus Lite serves one process at a time. The server writes its address and a temporary API key to a
file next to the store, so that other commands can ask the server instead of failing on the store's
lock. As long as it runs, the server holds a lock of its own: a file that a killed server has left is
recognised by its free lock. Any user that may read the store may also use the key.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
from filelock import FileLock, Timeout
from pydantic import BaseModel, SecretStr, ValidationError

from schemas.settings import Settings

LOCK_TIMEOUT_S = 1.0
"""Other commands hold the lock for an instant when they look whether the server runs."""


class LocalServer(BaseModel):
    """The content of the address file."""

    url: str
    platform: str = ""
    """The path of its platform.toml; empty if unknown."""
    key: SecretStr = SecretStr("")

    def client(self, timeout: float) -> httpx.AsyncClient:
        """Return an authorised client with a timeout in seconds."""
        headers = {"Authorization": f"Bearer {self.key.get_secret_value()}"}
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=False
        )


@contextmanager
def announce_server(settings: Settings, host: str, port: int, key: str) -> Iterator[None]:
    """Keep the address file next to the embedded store within the block.

    Without an embedded store, it does nothing.
    """
    if not settings.embedded:
        yield
        return
    path = _address_file(settings)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    content = {"url": url, "platform": str(settings.platform.resolve()), "key": key}
    with ExitStack() as stack:
        # Without the lock (some file systems have none), other commands still work, but more slowly.
        with suppress(OSError):
            stack.enter_context(_server_lock(settings, LOCK_TIMEOUT_S))
        _write_privately(path, json.dumps(content))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def find_running_server(settings: Settings) -> LocalServer | None:
    """Return the server that holds the embedded store, or None if none is running."""
    server = read_local_server(settings)
    if server is None:
        return None
    try:
        with _server_lock(settings, timeout_s=0):
            return None
    except Timeout:
        return server
    except OSError:
        return None


def read_local_server(settings: Settings) -> LocalServer | None:
    """Return the server in the address file, whether or not it is still running."""
    try:
        return LocalServer.model_validate_json(_address_file(settings).read_bytes())
    except (OSError, ValidationError):
        return None


def _write_privately(path: Path, text: str) -> None:
    """Write a new file that is never readable by other users, even if an old one was."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def _address_file(settings: Settings) -> Path:
    return Path(f"{settings.milvus_uri}.server.json")


def _server_lock(settings: Settings, timeout_s: float) -> FileLock:
    path = f"{settings.milvus_uri}.server.lock"
    return FileLock(path, timeout=timeout_s, mode=0o600, thread_local=False)
