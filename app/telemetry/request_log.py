"""Logs and counts each request. The log line, the response and the trace share an id."""

import re
import time
from http import HTTPMethod, HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from app.masking.masking import SecretScan, mask
from app.masking.text_spans import has_digit
from app.telemetry.logs import log_context, structured_logger
from app.telemetry.metrics import Metrics

REQUEST_ID_HEADER = "X-Request-ID"
_REQUEST_ID_KEY = REQUEST_ID_HEADER.lower().encode()  # as ASGI servers pass it

CLIENT_CLOSED_REQUEST = 499
"""The status in logs and metrics if the client disconnects before the response ends, as in nginx."""

QUIET_ROUTES = {"/health/live", "/health/ready", "/metrics"}
"""Routes that are logged at level DEBUG, because monitoring calls them every few seconds."""

UNMATCHED_ROUTE = "unmatched"
"""The route in logs and metrics of a request that matches no route."""

METHODS: frozenset[str] = frozenset(HTTPMethod)
OTHER_METHOD = "other"
"""Label of methods that are not in METHODS, so that callers cannot add label values to the metrics."""

MAX_PATH_CHARS = 200
"""Maximum length of a path in the log, in characters."""

MAX_SCANNED_PATH_CHARS = 2_000
"""Number of characters of a path that are scanned for secrets, before the path is shortened."""

_MIN_SECRET_WORD_CHARS = 16
"""Minimum length, in characters, of a segment without digits that is masked.

A secret that is found in a path may contain `/`, so it may have several segments. Those with a digit are
always masked. Short ones without a digit are probably ordinary words of the path.
"""

_API_KEY = re.compile(r"apidesk_[0-9a-f]{12}_[A-Za-z0-9_-]*")

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

log = structured_logger(__name__)


class RequestLog(ASGIMiddleware):
    """Gives each request an id, then logs and counts it.

    This middleware wraps the whole application, because Litestar calls no middleware if no route matches.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle one request and log it, even if `next_app` raises an exception."""
        exchange = _Exchange(_request_id(scope), receive, send)
        path = scope["path"]
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
        self._metrics.count_request(method, route, exchange.final_status, exchange.seconds)
        log_line = log.debug if route in QUIET_ROUTES else log.info
        log_line(
            "request",
            method=method,
            route=route,
            path=_loggable_path(path, route),
            status=exchange.final_status,
            milliseconds=round(exchange.seconds * 1000),
            bytes=exchange.bytes,
            **fields,
        )


def _loggable_path(path: str, route: str) -> str:
    """Return `path` for the log: percent-encoded, with labels such as ‹api_key› in place of secrets."""
    if path == route:  # contains no text of the caller
        return path
    masked = _masked_path(_API_KEY.sub("‹api_key›", path[:MAX_SCANNED_PATH_CHARS]))
    quoted = quote(masked, errors="replace")
    for mark in "‹›":
        quoted = quoted.replace(quote(mark), mark)
    return quoted[:MAX_PATH_CHARS]


def _masked_path(path: str) -> str:
    """Return `path` with each segment masked separately, so that the words around a secret are kept.

    To find the secrets, the path is scanned as a whole, because a segment such as `hooks` may show that the
    next segment is a secret.
    """
    known = {
        segment: label
        for secret, label in SecretScan(path).secrets.items()
        for segment in secret.split("/")
        if has_digit(segment) or len(segment) >= _MIN_SECRET_WORD_CHARS
    }
    return "/".join(mask(segment, known) for segment in path.split("/"))


class _Exchange:
    """One request and its response, observed at the ASGI interface."""

    def __init__(self, request_id: str, receive: Receive, send: Send) -> None:
        self.request_id = request_id
        self.status = CLIENT_CLOSED_REQUEST
        self.bytes = 0
        self._receive = receive
        self._send = send
        self._started = time.monotonic()
        self._is_complete = False
        self._has_disconnected = False

    @property
    def final_status(self) -> int:
        """The status of the response, or CLIENT_CLOSED_REQUEST if the client disconnected early."""
        return CLIENT_CLOSED_REQUEST if self._has_disconnected else int(self.status)

    @property
    def seconds(self) -> float:
        """Seconds since the request arrived."""
        return time.monotonic() - self._started

    async def receive(self) -> Any:
        """Return the client's next message, and remember whether the client disconnects early."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._is_complete:
            self._has_disconnected = True
        return message

    async def send(self, message: Message) -> None:
        """Send the response's next message. The request id is added to the headers of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableScopeHeaders.from_message(message)[REQUEST_ID_HEADER] = self.request_id
        elif message["type"] == "http.response.body":
            self.bytes += len(message.get("body", b""))
            self._is_complete = not message.get("more_body", False)
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """Return the id that the caller sent if it is short and safe in a log, or a new id."""
    request_id = dict(scope["headers"]).get(_REQUEST_ID_KEY, b"").decode("latin-1")
    return request_id if _ID.fullmatch(request_id) else uuid4().hex
