"""POST /mcp"""

import asyncio
from types import ModuleType

from litestar import asgi
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from app.service.container import Container


def mcp_route(services: Container) -> ASGIRouteHandler:
    """The documentation as tools, behind the same guard as every route.

    Of its requests the calls of tools are limited: clients list the tools beside each of them.
    """

    @asgi("/mcp", copy_scope=True, needs="ask", limited=False)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":  # there is no session to listen in on or to end
            raise MethodNotAllowedException
        # Imported by the first request: the SDK and LangChain's agent take a moment.
        http = await asyncio.to_thread(_http)
        toolbox = await asyncio.to_thread(http.open_toolbox, services, ASGIConnection(scope))
        await http.answer_request(services, toolbox, scope, receive, send)

    return mcp


def _http() -> ModuleType:
    from app.api import mcp_server as http

    return http
