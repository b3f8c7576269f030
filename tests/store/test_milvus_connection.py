"""Reads of a Milvus server whose connection is lost."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ingestion.store.client import milvus_errors, open_milvus
from schemas.settings import read_settings
from tests.milvus_server import MilvusServer

pytestmark = pytest.mark.acceptance


class Relay:
    """Passes connections on to the port `target`, until they are cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        while self._sockets:
            _close(self._sockets.pop())

    def close(self) -> None:
        """Accept no more connections and close all."""
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += client, server
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _close(target)


def _close(closing: socket.socket) -> None:
    with suppress(OSError):
        closing.shutdown(socket.SHUT_RDWR)
    closing.close()


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    with MilvusServer(tmp_path / "milvus") as server:
        relay = Relay(int(server.uri.rpartition(":")[2]))
        yield relay
        relay.close()


def test_read_is_repeated_over_a_new_connection(relay: Relay) -> None:
    """One lost connection is not an outage: the question is answered instead of getting 503."""
    client = open_milvus(read_settings(milvus_uri=f"http://127.0.0.1:{relay.port}"))
    for _ in range(3):
        with milvus_errors():
            assert not client.has_collection("docs")
        relay.cut()
    client.close()
