"""Where the server that holds an embedded store can be reached.

Milvus Lite serves one process at a time. The server leaves its address beside the store, locked as long as
it runs, so that another command can ask it instead of waiting for its own imports to fail on the store's
lock; and a key, good for as long, since whoever may read the store may ask it.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from schemas.settings import Settings


class LocalServer(BaseModel):
    """What the server left."""

    url: str
    platform: str = ""
    """Its platform.toml; empty where that is not known."""
    key: SecretStr = SecretStr("")

    def client(self, timeout: float) -> httpx.AsyncClient:
        """A client that the server lets in."""
        headers = {"Authorization": f"Bearer {self.key.get_secret_value()}"}
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=False
        )


@contextmanager
def announced(settings: Settings, host: str, port: int, key: str) -> Iterator[None]:
    """Within the block the address stands beside the embedded store; a Milvus server needs none."""
    if not settings.embedded:
        yield
        return
    address = _address_file(settings)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    left = {"url": url, "platform": str(settings.platform.resolve()), "key": key}
    _write_privately(address, json.dumps(left))
    try:
        with address.open("rb") as announcement:
            # On a file system without locks other commands find out the slower way.
            with suppress(OSError):
                fcntl.flock(announcement, fcntl.LOCK_SH)
            yield
    finally:
        address.unlink(missing_ok=True)


def running_server(settings: Settings) -> LocalServer | None:
    """The server that holds the embedded store and still runs, as its lock on what it left shows."""
    try:
        with _address_file(settings).open("rb") as announcement:
            try:
                fcntl.flock(announcement, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return LocalServer.model_validate_json(announcement.read())
    except (OSError, ValidationError):
        pass
    return None


def local_server(settings: Settings) -> LocalServer | None:
    """The server that left its address beside the embedded store, whether or not it still runs."""
    try:
        return LocalServer.model_validate_json(_address_file(settings).read_bytes())
    except (OSError, ValidationError):
        return None


def _write_privately(path: Path, text: str) -> None:
    """Nobody else may read the file, not even before it is written; an old one may be open to all."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text, encoding="utf-8")


def _address_file(settings: Settings) -> Path:
    return Path(f"{settings.milvus_uri}.server.json")
