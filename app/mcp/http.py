"""One HTTP request of the protocol: streamable HTTP, without a session."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar.types import Receive, Scope, Send
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from app.mcp.protocol import toolbox_server
from app.mcp.toolbox import Toolbox
from app.security.access import count_request
from app.security.keyring import Caller
from app.security.loopback import Connection
from app.security.token_meter import TokenMeter
from app.services import Container


def open_toolbox(services: Container, connection: Connection) -> Toolbox:
    """The tools in the hands of the caller, each call counted as a request of theirs. It blocks."""
    caller: Caller = connection.user

    @asynccontextmanager
    async def counted() -> AsyncIterator[TokenMeter]:
        await count_request(connection, services.limits)
        async with services.limits.metered(caller.account) as meter:
            yield meter

    return Toolbox(services.answer_service, services.answerer, caller.id, caller.account, counted)


async def answer_request(
    services: Container, toolbox: Toolbox, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer by a server of its own: nothing outlives the request, so any process can answer the next.

    Whoever leaves ends the call.
    """
    answer_service = services.answer_service
    manager = StreamableHTTPSessionManager(
        toolbox_server(toolbox, answer_service.platform.platform),
        stateless=True,
        max_request_body_size=answer_service.settings.max_body_bytes,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]  # Starlette's types
