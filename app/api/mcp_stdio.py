"""The tools on stdin and stdout: by a desk of its own, or by the server that holds the store."""

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

from app.api.mcp_server import NAME, failed, toolbox_server
from app.api.mcp_tools import Toolbox
from app.cli.terminal.progress import ingestion_progress
from app.service.answer_service import open_answer_service
from app.serving.local_server import LocalServer, local_server
from schemas.errors import StoreLocked, StoreUnavailable
from schemas.settings import Settings

T = TypeVar("T")

CONNECT_SECONDS = 10.0

SPARE_SECONDS = 5.0
"""How much longer than a question may take its answer is waited for."""


async def serve_stdio(settings: Settings) -> None:
    """Serve until stdin ends. Raises ApideskError when there is neither a desk nor a server."""
    async with open_server(settings) as server, stdio_server() as (read, write):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Nothing is lost at once, and a tidy end would wait for a line that never comes.
            signal.signal(number, signal.SIG_DFL)
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Server[Any]]:
    """A server of the protocol. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        try:
            with ingestion_progress() as progress:
                answer_service = await stack.enter_async_context(
                    open_answer_service(settings, progress)
                )
        except StoreLocked:
            if local_server(settings) is None:
                raise
            yield await _relay(settings)
            return
        toolbox = await asyncio.to_thread(Toolbox, answer_service, answer_service)
        yield toolbox_server(toolbox, answer_service.platform.platform)


async def _relay(settings: Settings) -> Server[Any]:
    """A server that passes everything on. Raises StoreUnavailable."""

    async def list_tools(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        return await _asked(settings, lambda client: client.list_tools())

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        try:
            return await _asked(
                settings, lambda client: client.call_tool(params.name, params.arguments)
            )
        except StoreUnavailable as error:
            return failed(str(error))

    async def instructions(client: Client) -> str | None:
        return client.instructions

    return Server(
        NAME,
        version=version(NAME),
        instructions=await _asked(settings, instructions),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _asked(settings: Settings, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What the server that holds the store gives. Raises StoreUnavailable.

    Each time anew: it may have been started again, at another address.
    """
    holder = local_server(settings)
    if holder is None:
        raise StoreUnavailable("the server that held the store has ended: start it again")
    try:
        async with _connected(holder, settings) as client:
            return await ask(client)
    except (MCPError, HTTPError, ExceptionGroup) as error:  # in which the SDK raises what failed
        raise StoreUnavailable(f"the server at {holder.url} does not answer") from error


@asynccontextmanager
async def _connected(holder: LocalServer, settings: Settings) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {holder.key.get_secret_value()}"}
    timeout = Timeout(CONNECT_SECONDS, read=settings.request_timeout + SPARE_SECONDS)
    async with (
        AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(f"{holder.url}/mcp", http_client=http)) as client,
    ):
        yield client
