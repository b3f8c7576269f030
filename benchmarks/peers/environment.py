"""Creates the peers' virtual environment and starts peers in it.

Runs in apidesk's own environment, where Haystack and LlamaIndex are not installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FOLDER = ROOT / "build" / "peers"

Name = Literal[
    "haystack_bm25",
    "haystack_dense",
    "llama_index",
    "langchain_chain",
    "haystack_retriever",
    "langchain_retriever",
    "llama_index_retriever",
]

PEERS: tuple[Name, ...] = ("haystack_bm25", "haystack_dense", "llama_index", "langchain_chain")
INGESTING: tuple[Name, ...] = ("haystack_dense", "llama_index", "langchain_chain")
"""Peers with an ingestion benchmark."""

RETRIEVERS: tuple[Name, ...] = (
    "haystack_retriever",
    "langchain_retriever",
    "llama_index_retriever",
)
"""Full-text retrievers without a model; `--model-url` is ignored."""

STOP_SECONDS = 10.0

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
}
"""Limits BLAS to one core."""

SILENT = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HAYHOOKS_LOG_LEVEL": "WARNING",
    "HAYHOOKS_TRACING_ENABLED": "false",
    "HAYHOOKS_MONITORING_ENABLED": "false",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "PYTHON_DOTENV_DISABLED": "1",
}
"""Disables telemetry, tracing, most logging, and reading of apidesk's .env file."""


@dataclass(frozen=True)
class Peer:
    """A peer that answers questions."""

    name: Name
    url: str
    """Endpoint for POST requests with a `payload`."""
    pid: int

    def payload(self, question: str) -> dict[str, str]:
        """Return the JSON body of a question."""
        return {"question": question}

    def answer(self, body: Any) -> dict[str, Any]:
        """Return the reply in a response: `type`, `answer`, and `sources` with number, title and url."""
        reply: dict[str, Any] = body.get("result", body)  # Hayhooks wraps the reply
        return reply


@dataclass(frozen=True)
class Ingested:
    """Seconds in which a peer indexed `chunks` passages, and then indexed them again without changes."""

    chunks: int
    first: float
    second: float


class PeerFailed(Exception):
    """A peer did not start or failed; the message ends with the peer's output."""


def make_environment(folder: Path, requirements: Path) -> None:
    """Create a virtual environment in `folder` with the hashed `requirements`."""
    interpreter = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    hashed = ["--quiet", "--require-hashes", "-r", str(requirements)]
    uv = Path(sys.executable).with_name("uv")
    # LlamaIndex splits sentences with nltk, which does not open files with the hard links that uv creates.
    how = ["--compile-bytecode", "--link-mode=copy", "--python", str(interpreter)]
    faster = [str(uv), "pip", "install", *how]
    if not uv.exists() or subprocess.run(faster + hashed, check=False).returncode != 0:
        subprocess.run([interpreter, "-m", "pip", "install", *hashed], check=True)


def python(
    folder: Path = FOLDER,
    requirements: Path = REQUIREMENTS,
    make: Callable[[Path, Path], None] = make_environment,
) -> Path:
    """Return the peers' interpreter; create their environment if it is missing or outdated.

    Raises subprocess.CalledProcessError if a package cannot be installed.
    """
    interpreter, ready = folder / "bin" / "python", folder / ".ready"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if ready.exists() and ready.read_text() == wanted:
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    make(folder, requirements)
    ready.write_text(wanted)
    return interpreter


def environ(home: Path) -> dict[str, str]:
    """Return the environment variables of a peer.

    Of the variables of this process, only the path and the locale are kept.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | ONE_THREAD | SILENT | {"HOME": str(home), "PYTHONUNBUFFERED": "1"}


@contextmanager
def start_peer(name: Name, documents: Path, model_url: str = "") -> Iterator[Peer]:
    """Start a peer with the indexed `documents` (see `write_passages`), and stop it at the end.

    `model_url` is the base URL of a server that speaks OpenAI's protocol. Raises PeerFailed.
    """
    with tempfile.TemporaryDirectory() as home, (Path(home) / "log").open("w+") as log:
        process = subprocess.Popen(
            _command(name, "serve", documents, model_url),
            cwd=ROOT, env=environ(Path(home)), stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url.startswith("http"):
                raise PeerFailed(f"{name} did not start: {_written(log.name)}")
            yield Peer(name, url, process.pid)
        finally:
            _stop(process)


def ingest(name: Name, documents: Path, model_url: str) -> Ingested:
    """Index `documents` twice with a peer in a separate process. Raises PeerFailed."""
    with tempfile.TemporaryDirectory() as home:
        ended = subprocess.run(
            _command(name, "ingest", documents, model_url),
            cwd=ROOT, env=environ(Path(home)), capture_output=True, text=True, check=False,
        )  # fmt: skip
    if ended.returncode != 0:
        raise PeerFailed(f"{name} did not ingest: {ended.stderr[-2_000:]}")
    return Ingested(**json.loads(ended.stdout.splitlines()[-1]))


def _command(name: Name, work: str, documents: Path, model_url: str) -> list[str]:
    module = f"benchmarks.peers.{name}"
    given = ["--documents", str(documents.resolve()), "--model-url", model_url]
    return [str(python()), "-m", module, work, *given]


def _written(log: str) -> str:
    return Path(log).read_text(errors="replace")[-2_000:]


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
