"""The toolbox as a server of the protocol, by its official SDK.
One HTTP request of the protocol: streamable HTTP, without a session.
"""

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

from app.api.mcp_tools import RESULTS, Toolbox, described_tools
from app.security.access import Connection, count_request
from app.security.keyring import Caller
from app.security.token_meter import TokenMeter
from app.service.container import Container
from runnables.tools.middleware import arguments_schema
from schemas.errors import ApideskError
from schemas.platform import PlatformInfo

NAME = "apidesk"

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

FAILED = "something went wrong here"

log = logging.getLogger(__name__)


def toolbox_server(toolbox: Toolbox, platform_info: PlatformInfo) -> Server[Any]:
    """A server whose tools are those of `toolbox`, with `voice` saying whose documentation it is."""

    async def list_tools(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=described())

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        try:
            given = await toolbox.call(params.name, params.arguments or {})
        except (ApideskError, ToolException) as error:
            return failed(str(error))
        except Exception:
            log.exception("the tool %s failed", params.name)
            return failed(FAILED)
        return CallToolResult(
            content=[TextContent(text=given.text)],
            structured_content=given.result.model_dump(mode="json", by_alias=True),
        )

    return Server(
        NAME,
        version=version(NAME),
        instructions=f"The documentation of {platform_info.name}. "
        "`ask` answers a question with its sources; "
        "`search`, `outline` and `open` read the documentation itself.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@cache
def described() -> list[Tool]:
    """The tools as clients see them."""
    return [
        Tool(
            name=name,
            description=tool.description,
            input_schema=arguments_schema(tool).model_json_schema(),
            output_schema=RESULTS[name].model_json_schema(mode="serialization"),
            annotations=READS,
        )
        for name, tool in described_tools().items()
    ]


def failed(sentence: str) -> CallToolResult:
    """A call that gave nothing, and why."""
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


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
