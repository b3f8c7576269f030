"""The MCP server, built with the official SDK: stateless streamable HTTP, without sessions."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from langchain.tools import ToolException
from litestar.types import Receive, Scope, Send
from mcp.server.lowlevel import Server
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
from app.security.keyring import Caller
from app.security.token_meter import TokenMeter
from app.service.container import Container
from runnables.tools.tool_calls import arguments_schema
from schemas.errors import ApideskError
from schemas.platform import PlatformInfo

SERVER_NAME = "apidesk"

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
    """Return the definitions of the tools that clients receive."""
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
    """Return the tools for one caller; each call counts as one of their requests. Blocks."""
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
    """Handle one HTTP request with its own server, so that any worker process can handle the next.

    A client that disconnects cancels the call.
    """
    answer_service = services.answer_service
    manager = StreamableHTTPSessionManager(
        build_server(toolbox, answer_service.platform.platform),
        stateless=True,
        max_request_body_size=answer_service.settings.max_body_bytes,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]  # Starlette's types
