"""A connection of `ModelServer`, with HTTP/1.1 by h11 and the faults that a reply asks for."""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import h11

from tests.model_script import Recorded
from tests.openai_objects import Response, reason


def cut(pieces: Sequence[bytes], size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of `pieces`."""
    for piece in pieces:
        if size <= 0:
            return
        yield piece[:size]
        size -= len(piece)


class Connection:
    """The connection of one client, which also simulates the faults that a reply asks for."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: threading.Event
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._left = left
        self._http = h11.Connection(h11.SERVER)
        # With this limit, drain() waits until the kernel has all data.
        writer.transport.set_write_buffer_limits(high=0)
        # asyncio sets this option only if the socket states its protocol. Without it, each reply waits
        # 40 ms for the client to acknowledge the head.
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def receive(self) -> Recorded | None:
        """Return the next request, or None at the end of the connection."""
        if not self._ready():
            return None
        request, raw = await self._event(), b""
        if not isinstance(request, h11.Request):
            return None
        while isinstance(data := await self._event(), h11.Data):
            raw += data.data
        return recorded(request, raw)

    async def send(self, response: Response) -> None:
        """Send `response` with the delays and the fault of its reply."""
        reply = response.reply
        await asyncio.sleep(reply.delay)
        if reply.action is None:
            await self._send_head(response)
            await self._send_pieces(response.pieces, reply.chunk_delay)
            await self._send(h11.EndOfMessage())
            return
        if reply.reset_after is not None:
            await self._send_head(response)
            await self._send_pieces(cut(response.pieces, reply.reset_after), reply.chunk_delay)
        await self._misbehave(reply.action)

    def _ready(self) -> bool:
        """Return whether another request can follow. After an incomplete reply, it cannot."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return self._http.our_state is h11.IDLE

    async def _event(self) -> object:
        """Return the next event from the client."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(65536))
        return event

    async def _send_head(self, response: Response) -> None:
        headers = list(response.headers.items())
        status = response.reply.status
        await self._send(h11.Response(status_code=status, headers=headers, reason=reason(status)))

    async def _send_pieces(self, pieces: Sequence[bytes] | Iterator[bytes], pause: float) -> None:
        for index, piece in enumerate(pieces):
            if index:
                await asyncio.sleep(pause)
            await self._send(h11.Data(data=piece))

    async def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def _misbehave(self, action: Literal["reset", "close", "stall"]) -> None:
        """Leave the response unfinished. The connection is closed after this method returns."""
        if action == "reset":
            lingering = struct.pack("ii", 1, 0)  # closing now sends RST instead of FIN
            connection: socket.socket = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingering)
        elif action == "stall":
            while await self._reader.read(65536):
                pass
            self._left.set()


def recorded(request: h11.Request, raw: bytes) -> Recorded:
    """Return the record of a request that h11 has read."""
    return Recorded(
        path=request.target.decode().partition("?")[0],
        headers={name.decode(): value.decode("latin-1") for name, value in request.headers},
        body=parsed(raw),
        raw=raw,
        at=time.monotonic(),
        method=request.method.decode(),
        query=request.target.decode().partition("?")[2],
    )


def parsed(raw: bytes) -> Any:
    """Return the JSON value in `raw`, or None if it is invalid."""
    try:
        return json.loads(raw)
    except ValueError:
        return None
