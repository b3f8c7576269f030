"""Limits the time in which a request body must arrive, and closes connections with an incomplete body."""

import asyncio
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.telemetry.request_log import CLIENT_CLOSED_REQUEST


class BodyTimeout(HTTPException):
    """The body of a request did not arrive in time."""

    status_code = HTTPStatus.REQUEST_TIMEOUT


class ClientDisconnected(Exception):
    """The client disconnected before the body of its request was complete."""


class BodyDeadline(ASGIMiddleware):
    """Limits the time in which the body of a request must arrive.

    If the body is late, reading it raises BodyTimeout. If the client disconnects before the body is
    complete, reading it raises ClientDisconnected. Messages after the body are passed on unchanged.

    If the response starts before the body is complete, the connection is closed after the response, so that
    the server does not wait for the rest of the body.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle one request."""
        reader = _BodyReader(receive, self._timeout_s)
        has_body = _has_body(scope)

        async def send_with_close_header(message: Message) -> None:
            if message["type"] == "http.response.start" and has_body and not reader.is_complete:
                MutableScopeHeaders.from_message(message)["Connection"] = "close"
            await send(message)

        await next_app(scope, reader.receive, send_with_close_header)


def _has_body(scope: Scope) -> bool:
    """Return whether the headers of a request announce a body."""
    headers = Headers.from_scope(scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip("0 ") != ""


class _BodyReader:
    """Receives the ASGI messages of one request, and limits the time for its body."""

    def __init__(self, receive: Receive, timeout_s: float) -> None:
        self._receive = receive
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self.is_complete = False
        """Whether the whole body has been read."""

    async def receive(self) -> Any:
        """Return the client's next message. Raises BodyTimeout or ClientDisconnected."""
        if self.is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            # The rest of the body may still arrive, so the connection cannot be used again.
            headers = {"Connection": "close"}
            raise BodyTimeout("the body did not arrive in time", headers=headers) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        self.is_complete = not message.get("more_body", False)
        return message


def handle_disconnect(request: Request[Any, Any, Any], error: ClientDisconnected) -> Response[None]:
    """Return a response, so that the error is not logged as unexpected.

    The client does not receive the response, because it has disconnected.
    """
    return Response(None, status_code=CLIENT_CLOSED_REQUEST)
