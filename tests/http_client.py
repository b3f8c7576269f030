"""Creates an HTTP client for an application in this process, which connects from localhost."""

from typing import cast

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.testing import TestClient
from litestar.types import Receive, Scope, Send


def http_client(app: Litestar, peer: str = "127.0.0.1") -> TestClient[Litestar]:
    """Return a client with the address `peer`. Litestar's own client has the address "testclient"."""

    async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            scope["client"] = (peer, 50_000)
        await app(scope, receive, send)

    return cast(TestClient[Litestar], TestClient(with_peer, base_url="http://127.0.0.1"))
