"""A Milvus Lite server in a separate process that can be stopped and started again."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

MAX_STARTS = 3
"""Maximum number of ports to try: another process may take a free port before the server does."""


class MilvusServer:
    """Serves the store in `folder`, on the same loopback port after every start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()

    @property
    def uri(self) -> str:
        """The value for APIDESK_MILVUS_URI."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it listens."""
        program = Path(sys.executable).with_name("milvus-lite")
        address = ("--host", "127.0.0.1", "--port", str(self._port))
        command = [str(program), "server", *address, "--data-dir", str(self._folder)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=quiet, stderr=quiet, preexec_fn=_restore_sigint
        )
        while not self._listens():
            assert self._process.poll() is None, "Milvus Lite does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self._port)) == 0

    def __enter__(self) -> Self:
        for _ in range(MAX_STARTS - 1):
            try:
                self.start()
            except AssertionError:
                self._port = _free_port()
            else:
                return self
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _restore_sigint() -> None:
    """Restore the handling of SIGINT, which stops the server but is ignored by background jobs of a shell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
