"""A server on loopback that answers downloads with bytes as a test specifies them."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Serve = Callable[[socket.socket, str], None]
"""Answers one request, given the connection and the head of the request."""

LOCAL = ("127.0.0.1", "localhost")


def answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def responding(*answers: bytes) -> Serve:
    """Send one response per request; the last one is repeated."""
    left = list(answers)

    def serve(connection: socket.socket, _: str) -> None:
        connection.sendall(left.pop(0) if len(left) > 1 else left[0])

    return serve


@contextmanager
def server(serve: Serve) -> Iterator[tuple[str, list[str]]]:
    """A server on loopback: its URL, and the heads of the requests it received."""
    heads: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    def handle(connection: socket.socket) -> None:
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65_536)
                if not piece:
                    return
                head += piece
            heads.append(head.decode())
            try:
                serve(connection, head.decode())
            except OSError:
                return  # the client has disconnected

    threading.Thread(target=run, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
    finally:
        listener.close()
