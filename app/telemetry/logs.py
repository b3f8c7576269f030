"""The log: its levels and format, and one line per request under an id that response and trace share."""

import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPMethod, HTTPStatus
from typing import Any, Literal, TextIO
from urllib.parse import quote
from uuid import uuid4

import structlog
from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars
from structlog.dev import (
    Column,
    ConsoleRenderer,
    KeyValueColumnFormatter,
    LogLevelColumnFormatter,
    plain_traceback,
)
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.types import Processor

from app.telemetry.metrics import Metrics

LogFormat = Literal["auto", "json", "console"]

APPLICATION_LOGGERS = ("app", "runnables", "ingestion", "uvicorn")

NOISY_LOGGERS = ("grpc._server", "milvus_lite.server_manager", "langsmith", "opentelemetry")
"""Loggers whose errors are not worth reading. Milvus Lite logs an unknown call of its own client, and a
store that another process holds, which the user sees as StoreLocked. LangSmith's client and
OpenTelemetry's log each lost batch of traces; app.telemetry.tracing logs the first loss."""

_fields: ContextVar[dict[str, object] | None] = ContextVar("request_fields", default=None)


def configure_logging(level: str, log_format: LogFormat = "auto") -> None:
    """Log to stderr: the application's loggers at `level`, libraries at WARNING.

    Handlers that the process has already installed for other outputs are not changed.
    """
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
            handler.setFormatter(log_formatter(log_format, handler.stream))
    for name in APPLICATION_LOGGERS:
        logging.getLogger(name).setLevel(level)
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def is_json(log_format: LogFormat, stream: TextIO) -> bool:
    """Whether the log on `stream` is written as JSON."""
    return log_format == "json" or (log_format == "auto" and not stream.isatty())


def log_formatter(log_format: LogFormat, stream: TextIO) -> logging.Formatter:
    """Return a formatter for the records of all loggers: JSON lines, or text, coloured on a terminal.

    Each line includes what is bound to structlog's context, such as the request id.
    """
    rendered = _json() if is_json(log_format, stream) else _text(colours=stream.isatty())
    return ProcessorFormatter(
        processors=[
            ProcessorFormatter.remove_processors_meta,
            structlog.contextvars.merge_contextvars,
            *rendered,
        ],
        foreign_pre_chain=_PRE_CHAIN,
    )


def structured_logger(name: str) -> BoundLogger:
    """Return the standard library's logger `name`, wrapped so that lines can have fields."""
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[*_PRE_CHAIN, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=BoundLogger,
    )
    return logger


@contextmanager
def log_context() -> Iterator[dict[str, object]]:
    """Collect the fields that are bound within the block, also in tasks and threads that it starts."""
    fields: dict[str, object] = {}
    token = _fields.set(fields)
    try:
        yield fields
    finally:
        _fields.reset(token)


def bind_log_context(**fields: object) -> None:
    """Add fields to the log line of the current request, if there is one."""
    bound = _fields.get()
    if bound is not None:
        bound.update(fields)


_PRE_CHAIN: list[Processor] = [
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
]


def _json() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


def _text(*, colours: bool) -> list[Processor]:
    """Tracebacks are plain: rich ones would show the values of variables, such as keys."""
    style = ConsoleRenderer.get_default_column_styles(colours)
    levels = ConsoleRenderer.get_default_level_styles(colours)

    def value_column(key: str, value_style: str) -> Column:
        return Column(key, KeyValueColumnFormatter(None, value_style, style.reset, str))

    columns = [
        value_column("timestamp", style.timestamp),
        Column("level", LogLevelColumnFormatter(levels, reset_style=style.reset)),
        value_column("logger", style.logger_name),
        value_column("event", style.bright),
        Column("", KeyValueColumnFormatter(style.kv_key, style.kv_value, style.reset, repr)),
    ]
    return [ConsoleRenderer(columns=columns, sort_keys=False, exception_formatter=plain_traceback)]


REQUEST_ID_HEADER = "X-Request-ID"

CLIENT_CLOSED_REQUEST = 499
"""The status, in logs and metrics, of a request whose client disconnected early; as in nginx."""

QUIET_ROUTES = {"/health/live", "/health/ready", "/metrics"}
"""Routes that monitoring calls every few seconds; they are logged at level DEBUG."""

UNMATCHED_ROUTE = "unmatched"

METHODS: frozenset[str] = frozenset(HTTPMethod)
OTHER_METHOD = "other"

MAX_PATH_CHARS = 200

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = structured_logger(__name__)


class RequestLog(ASGIMiddleware):
    """Gives each request an id, then logs and counts it.

    It wraps the whole application: Litestar's own middleware never sees a 404.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle one request. An exception of `next_app` is logged as status 500 and raised again."""
        exchange = _Exchange(_request_id(scope), receive, send)
        path = quote(scope["path"], errors="replace")[:MAX_PATH_CHARS]
        with bound_contextvars(request_id=exchange.request_id), log_context() as fields:
            try:
                await next_app(scope, exchange.receive, exchange.send)
            except Exception:
                exchange.status = HTTPStatus.INTERNAL_SERVER_ERROR
                raise
            finally:
                self._log(scope, path, exchange, fields)

    def _log(
        self, scope: Scope, path: str, exchange: "_Exchange", fields: dict[str, object]
    ) -> None:
        method = str(scope.get("method"))
        if method not in METHODS:
            method = OTHER_METHOD
        route = str(scope.get("path_template") or UNMATCHED_ROUTE)
        self._metrics.count_request(method, route, exchange.outcome, exchange.seconds)
        log_line = log.debug if route in QUIET_ROUTES else log.info
        log_line(
            "request",
            method=method,
            route=route,
            path=path,
            status=exchange.outcome,
            milliseconds=round(exchange.seconds * 1000),
            bytes=exchange.bytes,
            **fields,
        )


class _Exchange:
    """One request and its response, observed at the ASGI interface."""

    def __init__(self, request_id: str, receive: Receive, send: Send) -> None:
        self.request_id = request_id
        self.status = int(CLIENT_CLOSED_REQUEST)
        self.bytes = 0
        self._receive = receive
        self._send = send
        self._started = time.monotonic()
        self._is_complete = False
        self._has_disconnected = False

    @property
    def outcome(self) -> int:
        """The response's status, or CLIENT_CLOSED_REQUEST."""
        return CLIENT_CLOSED_REQUEST if self._has_disconnected else int(self.status)

    @property
    def seconds(self) -> float:
        """The time since the request arrived."""
        return time.monotonic() - self._started

    async def receive(self) -> Any:
        """Return the client's next message, and note an early disconnect."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._is_complete:
            self._has_disconnected = True
        return message

    async def send(self, message: Message) -> None:
        """Send the response's next message, with the request id among its headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableScopeHeaders.from_message(message)[REQUEST_ID_HEADER] = self.request_id
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
            self._is_complete = not message.get("more_body", False)
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """The caller's id if its characters are safe in a log, else a new one."""
    request_id = Headers.from_scope(scope).get(REQUEST_ID_HEADER, "")
    return request_id if _ID.fullmatch(request_id) else uuid4().hex
