"""Serves MCP with the official SDK, over stateless HTTP or over stdin and stdout (stdio).

The server has the tools of `toolbox`. Its resources are the documents of the collection, as Markdown.
"""

import asyncio
import inspect
import logging
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

from langchain.tools import ToolException
from litestar.connection import ASGIConnection
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR as INTERNAL_ERROR_CODE
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from app.api.mcp.toolbox import TOOL_RESULTS, Passage, Toolbox, tools_by_name
from app.container import Container
from app.security.access import Connection, count_mcp_request
from app.security.api_keys import Caller
from app.service.answer_service import open_answer_service
from app.telemetry.progress import ingestion_progress
from app.telemetry.run_observer import TokenMeter
from ingestion.store.collection import Collection
from runnables.tools.middleware import arguments_schema
from schemas.document import DOCUMENT_URI, CatalogueEntry, document_uri
from schemas.errors import ApideskError
from schemas.platform import PlatformInfo
from schemas.settings import Settings

SERVER_NAME = "apidesk"

READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

TOOL_TITLES = {
    "ask": "Ask the documentation",
    "outline": "List documents",
    "search": "Search the documentation",
    "open": "Read a section",
}

INTERNAL_ERROR = "an unexpected error occurred"

NOT_A_MESSAGE = "the body must be one JSON-RPC message; batches are not supported"

RESOURCES_PER_PAGE = 200
"""Maximum number of resources in one reply; the client asks for the next page with a cursor."""

_CURSOR = re.compile(r"\d{1,18}")

_MARKDOWN = "text/markdown"

_DOCUMENT_TEMPLATE = ResourceTemplate(
    uri_template=f"{DOCUMENT_URI}{{source}}/{{document}}",
    name="document",
    title="Document",
    description="A document, identified by its ID and the name of its source.",
    mime_type=_MARKDOWN,
)

log = logging.getLogger(__name__)


def build_server(toolbox: Toolbox, platform_info: PlatformInfo) -> Server[Any]:
    """Return an MCP server with the tools and documents of `toolbox`.

    `platform_info` provides the name of the platform, for the title and the instructions of the server.
    Both are in English.
    """
    platform_name = platform_info.name_in("en")

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

    async def list_resources_in_thread(
        _: object, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = params.cursor if params else None
        with mcp_errors():
            async with toolbox.meter_tokens():
                return await asyncio.to_thread(list_resources, toolbox.collection, cursor)

    async def read_resource_in_thread(
        _: object, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        with mcp_errors():
            async with toolbox.meter_tokens():
                return await asyncio.to_thread(read_resource, toolbox.collection, params.uri)

    return Server(
        SERVER_NAME,
        title=f"{platform_name} · {SERVER_NAME}",
        version=version(SERVER_NAME),
        instructions=f"The documentation of {platform_name}. "
        "`ask` answers a question and names the sources; "
        "`search`, `outline` and `open` read the documentation itself; "
        "each document is a resource.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources_in_thread,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource_in_thread,
    )


@contextmanager
def mcp_errors() -> Iterator[None]:
    """Convert an ApideskError within the block to an MCPError with the same message."""
    try:
        yield
    except ApideskError as error:
        raise MCPError(INTERNAL_ERROR_CODE, str(error)) from None


@cache
def tool_definitions() -> list[Tool]:
    """Return the tool definitions that clients receive."""
    return [
        Tool(
            name=name,
            title=TOOL_TITLES[name],
            description=inspect.cleandoc(tool.description),
            input_schema=arguments_schema(tool).model_json_schema(),
            output_schema=TOOL_RESULTS[name].model_json_schema(mode="serialization"),
            annotations=READ_ONLY,
        )
        for name, tool in tools_by_name().items()
    ]


def error_result(message: str) -> CallToolResult:
    """Return the result of a failed call."""
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def list_resources(collection: Collection, cursor: str | None) -> ListResourcesResult:
    """Return a page of the list of documents.

    `cursor` is the number of documents before this page, as a string; None means 0.

    This function blocks. Raises MCPError for an invalid cursor, and ApideskError if the documents cannot be
    read.
    """
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise MCPError(INVALID_PARAMS, "cursor: not issued by this server")
    start = int(cursor or 0)
    entries = collection.catalogue()
    end = start + RESOURCES_PER_PAGE
    return ListResourcesResult(
        resources=list(map(_resource, entries[start:end])),
        next_cursor=str(end) if end < len(entries) else None,
    )


async def list_templates(
    _: object, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """Return the URI template for documents."""
    return ListResourceTemplatesResult(resource_templates=[_DOCUMENT_TEMPLATE])


def read_resource(collection: Collection, uri: str) -> ReadResourceResult:
    """Return a document as Markdown.

    This function blocks. Raises MCPError if there is no such document, and ApideskError if the documents
    cannot be read.
    """
    source, _, document_id = uri.removeprefix(DOCUMENT_URI).partition("/")
    chunks = collection.chunks_of_document(unquote(document_id), unquote(source))
    if not uri.startswith(DOCUMENT_URI) or not chunks:
        raise MCPError(INVALID_PARAMS, f"no document has the URI {uri[:200]}")
    text = "\n\n".join(Passage.of(chunk).markdown for chunk in chunks)
    return ReadResourceResult(
        contents=[TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)]
    )


def _resource(entry: CatalogueEntry) -> Resource:
    return Resource(
        uri=document_uri(entry.source, entry.document_id),
        name=entry.document_id,
        title=entry.title,
        description=" · ".join(filter(None, [entry.api_url, entry.page_url])) or None,
        mime_type=_MARKDOWN,
    )


def open_toolbox(services: Container, connection: Connection) -> Toolbox:
    """Return the tools for the caller of `connection`.

    Each tool call, and each list or read of resources, counts as a request towards the rate limits.

    This function is slow the first time that a process calls it: run it in a worker thread.
    """
    caller: Caller = connection.user

    @asynccontextmanager
    async def meter_call() -> AsyncIterator[TokenMeter]:
        await count_mcp_request(connection, services.limits)
        async with services.limits.meter_tokens(caller.account) as meter:
            yield meter

    return Toolbox(
        services.answer_service, services.answerer, caller.id, caller.account, meter_call
    )


async def read_body(receive: Receive, max_bytes: int) -> bytes:
    """Return the body of a request. Raises RequestEntityTooLarge if it has more than `max_bytes`."""
    body = bytearray()
    is_complete = False
    while not is_complete:
        event: Any = await receive()
        body += event.get("body", b"")
        if len(body) > max_bytes:
            raise RequestEntityTooLarge
        is_complete = not event.get("more_body", False)
    return bytes(body)


def is_jsonrpc_message(body: bytes) -> bool:
    """Return False if `body` is JSON but not one JSON-RPC message, for example a batch.

    For invalid JSON, returns True, because the SDK rejects it.
    """
    try:
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError as error:
        return error.errors()[0]["type"] == "json_invalid"
    return True


async def handle_request(services: Container, scope: Scope, receive: Receive, send: Send) -> None:
    """Handle one HTTP request with a new MCP server, so that any process can handle the next request.

    If the client disconnects, the request is cancelled. Raises RequestEntityTooLarge.
    """
    answer_service = services.answer_service
    body = await read_body(receive, answer_service.settings.max_body_bytes)
    if not is_jsonrpc_message(body):
        error = ErrorData(code=INVALID_REQUEST, message=NOT_A_MESSAGE)
        reply = JSONRPCError(jsonrpc="2.0", id=None, error=error)
        response = ASGIResponse(
            body=reply.model_dump_json(exclude_unset=True),
            status_code=400,
            media_type="application/json",
        )
        await response(scope, receive, send)
        return
    body_events = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Any:
        return next(body_events, None) or await receive()

    toolbox = await asyncio.to_thread(open_toolbox, services, ASGIConnection(scope))
    manager = StreamableHTTPSessionManager(
        build_server(toolbox, answer_service.platform.platform),
        stateless=True,
        max_request_body_size=answer_service.settings.max_body_bytes,
    )
    async with manager.run():
        await manager.handle_request(scope, replay, send)  # type: ignore[arg-type]  # Starlette's types


async def serve_stdio(settings: Settings) -> None:
    """Serve MCP over stdio until stdin ends. Raises ApideskError if the answer service cannot be opened."""
    async with open_server(settings) as server, stdio_server() as (read, write):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Exit immediately: a graceful shutdown would wait for a line on stdin.
            signal.signal(number, signal.SIG_DFL)
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Server[Any]]:
    """Open an answer service, and yield an MCP server for it. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        with ingestion_progress() as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress)
            )
        toolbox = await asyncio.to_thread(Toolbox, answer_service, answer_service)
        yield build_server(toolbox, answer_service.platform.platform)
