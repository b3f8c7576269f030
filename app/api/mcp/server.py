"""The MCP server, built with the official SDK, over stateless HTTP or over stdin and stdout (stdio).

Over stdio, it calls the tools itself. If a local server has the embedded store open, it forwards the calls
to that server.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar

from httpx2 import AsyncClient, HTTPError, Timeout
from langchain.tools import ToolException
from litestar.types import Receive, Scope, Send
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from app.api.mcp.toolbox import TOOL_RESULTS, Toolbox, tools_by_name
from app.security.access import Connection, count_tool_call
from app.security.api_keys import Caller
from app.security.token_meter import TokenMeter
from app.service.answer_service import open_answer_service
from app.service.container import Container
from app.serving.local_server import LocalServer, read_local_server
from app.telemetry.progress import ingestion_progress
from runnables.tools.middleware import arguments_schema
from schemas.errors import ApideskError, StoreLocked, StoreUnavailable
from schemas.platform import PlatformInfo
from schemas.settings import Settings

T = TypeVar("T")

SERVER_NAME = "apidesk"

CONNECT_TIMEOUT_S = 10.0
"""Seconds to wait for a connection to the local server."""

READ_TIMEOUT_MARGIN_S = 5.0
"""Seconds added to the request timeout, so that the local server reports a timeout first."""

READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

INTERNAL_ERROR = "an unexpected error occurred"

log = logging.getLogger(__name__)


def build_server(toolbox: Toolbox, platform_info: PlatformInfo) -> Server[Any]:
    """Return an MCP server with the tools of `toolbox`, for the documentation of the platform."""

    async def list_tools(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tool_definitions())

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        try:
            reply = await toolbox.call(params.name, params.arguments or {})
        except (ApideskError, ToolException) as error:
            return error_result(str(error))
        except Exception:
            log.exception("MCP tool %s failed", params.name)
            return error_result(INTERNAL_ERROR)
        return CallToolResult(
            content=[TextContent(text=reply.text)],
            structured_content=reply.result.model_dump(mode="json", by_alias=True),
        )

    return Server(
        SERVER_NAME,
        version=version(SERVER_NAME),
        instructions=f"The documentation of {platform_info.name}. "
        "`ask` answers a question with its sources; "
        "`search`, `outline` and `open` read the documentation itself.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@cache
def tool_definitions() -> list[Tool]:
    """Return the tool definitions that clients receive."""
    return [
        Tool(
            name=name,
            description=tool.description,
            input_schema=arguments_schema(tool).model_json_schema(),
            output_schema=TOOL_RESULTS[name].model_json_schema(mode="serialization"),
            annotations=READ_ONLY,
        )
        for name, tool in tools_by_name().items()
    ]


def error_result(message: str) -> CallToolResult:
    """Return the result of a failed call."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def open_toolbox(services: Container, connection: Connection) -> Toolbox:
    """Return the tools for the caller of `connection`. Each call counts as a request. Blocks."""
    caller: Caller = connection.user

    @asynccontextmanager
    async def meter_call() -> AsyncIterator[TokenMeter]:
        await count_tool_call(connection, services.limits)
        async with services.limits.meter_tokens(caller.account) as meter:
            yield meter

    return Toolbox(
        services.answer_service, services.answerer, caller.id, caller.account, meter_call
    )


async def handle_request(
    services: Container, toolbox: Toolbox, scope: Scope, receive: Receive, send: Send
) -> None:
    """Handle one HTTP request with a new server, so that any worker process can handle the next request.

    If the client disconnects, the call is cancelled.
    """
    answer_service = services.answer_service
    manager = StreamableHTTPSessionManager(
        build_server(toolbox, answer_service.platform.platform),
        stateless=True,
        max_request_body_size=answer_service.settings.max_body_bytes,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]  # Starlette's types


async def serve_stdio(settings: Settings) -> None:
    """Serve until stdin ends. Raises ApideskError if neither the store nor a local server can be used."""
    async with open_server(settings) as server, stdio_server() as (read, write):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Exit immediately: a graceful shutdown would wait for a line on stdin.
            signal.signal(number, signal.SIG_DFL)
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Server[Any]]:
    """Yield an MCP server that uses the store, or a relay to the local server that has it open.

    Raises ApideskError.
    """
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
    """Return a server that forwards all requests to the local server. Raises StoreUnavailable."""

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
    """Call the local server that has the store open. Raises StoreUnavailable.

    Each call opens a connection, because the server may have restarted with another address.
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
