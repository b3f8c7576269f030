"""A real server on loopback, for behaviour that an in-process client does not show."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.service.answer_service import AnswerService
from app.serving.server import create_uvicorn_config


@contextmanager
def live_server(answer_service: AnswerService, key: str = "") -> Iterator[str]:
    """Run a server within the block and yield its URL; `key` is the key of local commands."""
    server = uvicorn.Server(create_uvicorn_config(answer_service, key, "127.0.0.1", 0))
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
