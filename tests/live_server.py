"""A desk behind a real server on loopback: for what a client in the same process cannot see."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.service.answer_service import AnswerService
from app.serving.server import server_config


@contextmanager
def live_server(answer_service: AnswerService, key: str = "") -> Iterator[str]:
    """The server's address, while it runs; `key` is the one for local commands."""
    server = uvicorn.Server(server_config(answer_service, key, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run, name="live-server")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(timeout=10)
