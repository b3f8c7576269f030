"""Where the server that holds an embedded store can be reached.

Milvus Lite serves one process at a time. The server leaves its address beside the store, so that
another command can ask it instead of failing on the lock.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schemas.settings import Settings


@contextmanager
def announced(settings: Settings, host: str, port: int) -> Iterator[None]:
    """Within the block the address stands beside the embedded store; a Milvus server needs none."""
    if not settings.embedded:
        yield
        return
    address = _address_file(settings)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    left = {"url": url, "platform": str(settings.platform.resolve())}
    address.write_text(json.dumps(left), encoding="utf-8")
    try:
        yield
    finally:
        address.unlink(missing_ok=True)


def local_server(settings: Settings) -> str | None:
    """The base url of the server that holds the embedded store, if one left its address."""
    try:
        return str(json.loads(_address_file(settings).read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError):
        return None


def platform_of_local_server(settings: Settings) -> str:
    """The platform.toml of the server that holds the embedded store; empty where that is not known."""
    try:
        return str(json.loads(_address_file(settings).read_text(encoding="utf-8"))["platform"])
    except (OSError, ValueError, KeyError):
        return ""


def _address_file(settings: Settings) -> Path:
    return Path(f"{settings.milvus_uri}.server.json")
