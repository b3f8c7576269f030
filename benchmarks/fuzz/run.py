"""Runs schemathesis against a server."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from benchmarks.fuzz.model import Model
from tests.model_server import ModelServer
from tests.serving_process import ServingProcess

SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))

ServerKind = Literal["without a model", "with a scripted model"]

SERVER_KINDS: tuple[ServerKind, ...] = ("without a model", "with a scripted model")


@dataclass(frozen=True)
class FuzzResult:
    """Results of one server."""

    server_kind: ServerKind
    report: dict[str, Any]
    """The report of schemathesis."""
    stacks: int
    """Number of stack traces in the server's log."""

    @property
    def cases(self) -> int:
        """Number of generated requests."""
        return int(self.report["test_cases"]["generated"])

    @property
    def operations(self) -> int:
        """Number of tested operations."""
        return int(self.report["operations"]["tested"])

    @property
    def failures(self) -> list[str]:
        """A description of each failure."""
        failures = [
            f"{failure['title']} ({', '.join(failure['operations'])})"
            for failure in self.report["failures"]
        ]
        failures += [f"an error of schemathesis: {error}" for error in self.report["errors"]]
        if self.operations < self.report["operations"]["total"] or not self.report["complete"]:
            failures.append("not everything was tested")
        if self.stacks:
            failures.append(f"{self.stacks} stack traces in the log")
        return failures


def fuzz(server_kind: ServerKind, examples: int, seed: int | None) -> FuzzResult:
    """Run schemathesis against a server and show its output."""
    with TemporaryDirectory() as name, _environment(Path(name), server_kind) as environment:
        folder = Path(name)
        server = ServingProcess(folder / "log", environment)
        try:
            report = _run(server.url, environment["APIDESK_ADMIN_KEY"], folder, examples, seed)
        finally:
            server.stop()
        return FuzzResult(server_kind, report, server.log.count("Traceback"))


def _run(url: str, key: str, folder: Path, examples: int, seed: int | None) -> dict[str, Any]:
    """Run every check in every phase; return the report."""
    report_path = folder / "report.json"
    command = [
        SCHEMATHESIS, "run", f"{url}/schema/openapi.json",
        "--checks", "all",
        "--max-examples", str(examples),
        "--continue-on-failure",
        "--header", f"Authorization: Bearer {key}",
        "--report", "json", "--report-json-path", str(report_path),
        "--generation-database", "none",
        *(["--seed", str(seed)] if seed is not None else []),
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, env=os.environ | {"NO_PROXY": "*"}, check=False)
    report: dict[str, Any] = json.loads(report_path.read_bytes())
    return report


@contextmanager
def _environment(folder: Path, server_kind: ServerKind) -> Iterator[dict[str, str]]:
    """Yield the environment of a server with its own data, an API key and, if its kind has one, a model."""
    environment = {
        "APIDESK_MILVUS_URI": str(folder / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
        "APIDESK_SPOOL": str(folder / "spool"),
        "APIDESK_ADMIN_KEY": secrets.token_urlsafe(32),
    }
    if server_kind == "without a model":
        yield environment
        return
    with ModelServer(default=Model()) as model:
        yield environment | {
            "APIDESK_CHAT_MODEL": "openai:scripted-chat",
            "APIDESK_CHAT_BASE_URL": model.base_url,
            "APIDESK_CHAT_API_KEY": "none",
        }
        assert not model.faults, model.faults[0]
