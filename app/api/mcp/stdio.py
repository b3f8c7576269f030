"""The MCP server on stdin and stdout: its own, or a relay to the local server that holds the store."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from httpx2 import AsyncClient, HTTPError, Timeout
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from app.api.mcp.server import SERVER_NAME, build_server, error_result
from app.api.mcp.toolbox import Toolbox
from app.cli.terminal.progress import ingestion_progress
from app.service.answer_service import open_answer_service
from app.serving.local_server import LocalServer, read_local_server
from schemas.errors import StoreLocked, StoreUnavailable
from schemas.settings import Settings

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10.0

READ_TIMEOUT_MARGIN_S = 5.0
"""Added to the request timeout, so that the server reports a timeout first."""


async def serve_stdio(settings: Settings) -> None:
    """Serve until stdin ends. Raises ApideskError if the store cannot be opened and no server runs."""
    async with open_server(settings) as server, stdio_server() as (read, write):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Exit immediately: a graceful shutdown would wait for a line on stdin.
            signal.signal(number, signal.SIG_DFL)
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Server[Any]]:
    """Yield the MCP server: over the store, or a relay if a local server holds it. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        try:
            with ingestion_progress() as progress:
                answer_service = await stack.enter_async_context(
                    open_answer_service(settings, progress)
                )
        except StoreLocked:
            if read_local_server(settings) is None:
                raise
            yield await _build_relay(settings)
            return
        toolbox = await asyncio.to_thread(Toolbox, answer_service, answer_service)
        yield build_server(toolbox, answer_service.platform.platform)


async def _build_relay(settings: Settings) -> Server[Any]:
    """Return a server that forwards every request. Raises StoreUnavailable."""

    async def list_tools(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        return await _call_local_server(settings, lambda client: client.list_tools())

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        try:
            return await _call_local_server(
                settings, lambda client: client.call_tool(params.name, params.arguments)
            )
        except StoreUnavailable as error:
            return error_result(str(error))

    async def instructions(client: Client) -> str | None:
        return client.instructions

    return Server(
        SERVER_NAME,
        version=version(SERVER_NAME),
        instructions=await _call_local_server(settings, instructions),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call_local_server(settings: Settings, call: Callable[[Client], Awaitable[T]]) -> T:
    """Call the server that holds the store. Raises StoreUnavailable.

    Connects on each call, because the server may have restarted with another address.
    """
    server = read_local_server(settings)
    if server is None:
        raise StoreUnavailable("the server that held the store has ended: start it again")
    try:
        async with _connect(server, settings) as client:
            return await call(client)
    except (MCPError, HTTPError, ExceptionGroup) as error:  # the SDK wraps errors in groups
        raise StoreUnavailable(f"the server at {server.url} does not answer") from error


@asynccontextmanager
async def _connect(server: LocalServer, settings: Settings) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {server.key.get_secret_value()}"}
    timeout = Timeout(CONNECT_TIMEOUT_S, read=settings.request_timeout + READ_TIMEOUT_MARGIN_S)
    async with (
        AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        yield client
