"""POST /mcp. Its own module, so that the application starts without importing the MCP SDK."""

import asyncio
from types import ModuleType

from litestar import asgi
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from app.service.container import Container


def mcp_route(services: Container) -> ASGIRouteHandler:
    """Return the route of the MCP server, behind the same guard as every route.

    The guard does not count its requests, because clients list the tools before each call; tool calls
    are counted instead.
    """

    @asgi("/mcp", copy_scope=True, needs="ask", limited=False)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":  # GET and DELETE belong to sessions, which are not used
            raise MethodNotAllowedException
        server = await asyncio.to_thread(_import_server)
        toolbox = await asyncio.to_thread(server.open_toolbox, services, ASGIConnection(scope))
        await server.handle_request(services, toolbox, scope, receive, send)

    return mcp


def _import_server() -> ModuleType:
    """Import on the first request: the SDK and LangChain's agents take a moment to load."""
    from app.api.mcp import server

    return server
