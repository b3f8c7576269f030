"""A line in the log for each request, under an id that its response and its trace have too."""

import re
import time
from http import HTTPMethod, HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from app.telemetry.logs import log_context, structured_logger
from app.telemetry.metrics import Metrics

HEADER = "X-Request-ID"

CLIENT_LEFT = 499
"""The status, in logs and metrics, of a request whose client did not wait for the end; nginx's own."""

QUIET = {"/health/live", "/health/ready", "/metrics"}
"""Routes that machines ask every few seconds."""

NO_ROUTE = "unmatched"

METHODS: frozenset[str] = frozenset(HTTPMethod)
OTHER_METHOD = "other"

LONGEST_PATH = 200

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = structured_logger(__name__)


class RequestLog(ASGIMiddleware):
    """Gives each request its id, then tells the log and `metrics` how it went.

    It stands around the whole application: Litestar's own middleware never sees a 404.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """One request. What `next_app` raises is logged as 500, and raised."""
        exchange = _Exchange(_request_id(scope), receive, send)
        path = quote(scope["path"], errors="replace")[:LONGEST_PATH]
        with bound_contextvars(request_id=exchange.request_id), log_context() as facts:
            try:
                await next_app(scope, exchange.receive, exchange.send)
            except Exception:
                exchange.status = HTTPStatus.INTERNAL_SERVER_ERROR
                raise
            finally:
                self._tell(scope, path, exchange, facts)

    def _tell(
        self, scope: Scope, path: str, exchange: "_Exchange", facts: dict[str, object]
    ) -> None:
        asked = str(scope.get("method"))
        method = asked if asked in METHODS else OTHER_METHOD
        route = str(scope.get("path_template") or NO_ROUTE)
        self._metrics.count_request(method, route, exchange.outcome, exchange.seconds)
        tell = log.debug if route in QUIET else log.info
        tell(
            "request",
            method=method,
            route=route,
            path=path,
            status=exchange.outcome,
            milliseconds=round(exchange.seconds * 1000),
            bytes=exchange.bytes,
            **facts,
        )


class _Exchange:
    """One request and its response, as they pass by."""

    def __init__(self, request_id: str, receive: Receive, send: Send) -> None:
        self.request_id = request_id
        self.status = int(CLIENT_LEFT)
        self.bytes = 0
        self._receive = receive
        self._send = send
        self._began = time.monotonic()
        self._complete = False
        self._left = False

    @property
    def outcome(self) -> int:
        """The response's status, or CLIENT_LEFT."""
        return CLIENT_LEFT if self._left else int(self.status)

    @property
    def seconds(self) -> float:
        """How long it has taken until now."""
        return time.monotonic() - self._began

    async def receive(self) -> Any:
        """The client's next message; that it leaves before the end is noted."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._complete:
            self._left = True
        return message

    async def send(self, message: Message) -> None:
        """The response's next message, with the id in its head."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableScopeHeaders.from_message(message)[HEADER] = self.request_id
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """The caller's id if it is one that any log can hold, else a new one."""
    given = Headers.from_scope(scope).get(HEADER, "")
    return given if _ID.fullmatch(given) else uuid4().hex
