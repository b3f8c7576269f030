"""POST /mcp: call the MCP server. The MCP SDK is imported at the first request, so that startup is fast."""

import asyncio
from types import ModuleType

from litestar import asgi
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from app.service.container import Container


def mcp_route(services: Container) -> ASGIRouteHandler:
    """Return the route of the MCP server, which has the same guard as all other routes.

    The guard does not count requests to this route, because clients list the tools before each call.
    Instead, each tool call and each resource read counts as a request.
    """

    @asgi("/mcp", copy_scope=True, needs="ask", limited=False)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":  # GET and DELETE need MCP sessions, which are not used
            raise MethodNotAllowedException
        server = await asyncio.to_thread(_import_server)
        await server.handle_request(services, scope, receive, send)

    return mcp


def _import_server() -> ModuleType:
    """Import the server module, which also imports the MCP SDK and LangChain's agents. Slow."""
    from app.api.mcp import server

    return server
