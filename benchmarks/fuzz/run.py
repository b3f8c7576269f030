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

Desk = Literal["without a model", "with a scripted model"]

DESKS: tuple[Desk, ...] = ("without a model", "with a scripted model")


@dataclass(frozen=True)
class FuzzResult:
    """Results of one server."""

    answer_service: Desk
    told: dict[str, Any]
    """The report of schemathesis."""
    stacks: int
    """Stack traces in the server's log."""

    @property
    def cases(self) -> int:
        """Number of generated requests."""
        return int(self.told["test_cases"]["generated"])

    @property
    def operations(self) -> int:
        """Number of tested operations."""
        return int(self.told["operations"]["tested"])

    @property
    def failures(self) -> list[str]:
        """Return a description of each failure."""
        said = [
            f"{failure['title']} ({', '.join(failure['operations'])})"
            for failure in self.told["failures"]
        ]
        said += [f"an error of schemathesis: {error}" for error in self.told["errors"]]
        if self.operations < self.told["operations"]["total"] or not self.told["complete"]:
            said.append("not everything was tested")
        if self.stacks:
            said.append(f"{self.stacks} stacks in the log")
        return said


def fuzz(answer_service: Desk, examples: int, seed: int | None) -> FuzzResult:
    """Run schemathesis against a server and show its output."""
    with TemporaryDirectory() as name, _environment(Path(name), answer_service) as environment:
        folder = Path(name)
        server = ServingProcess(folder / "log", environment)
        try:
            told = _run(server.url, environment["APIDESK_ADMIN_KEY"], folder, examples, seed)
        finally:
            server.stop()
        return FuzzResult(answer_service, told, server.log.count("Traceback"))


def _run(url: str, key: str, folder: Path, examples: int, seed: int | None) -> dict[str, Any]:
    """Run every check in every phase; return the report."""
    report = folder / "report.json"
    command = [
        SCHEMATHESIS, "run", f"{url}/schema/openapi.json",
        "--checks", "all",
        "--max-examples", str(examples),
        "--continue-on-failure",
        "--header", f"Authorization: Bearer {key}",
        "--report", "json", "--report-json-path", str(report),
        "--generation-database", "none",
        *(["--seed", str(seed)] if seed is not None else []),
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, env=os.environ | {"NO_PROXY": "*"}, check=False)
    told: dict[str, Any] = json.loads(report.read_bytes())
    return told


@contextmanager
def _environment(folder: Path, answer_service: Desk) -> Iterator[dict[str, str]]:
    """The settings of `desk`: everything of its own, a key, and a model where it has one."""
    environment = {
        "APIDESK_MILVUS_URI": str(folder / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
        "APIDESK_SPOOL": str(folder / "spool"),
        "APIDESK_ADMIN_KEY": secrets.token_urlsafe(32),
    }
    if answer_service == "without a model":
        yield environment
        return
    with ModelServer(default=Model()) as model:
        yield environment | {
            "APIDESK_CHAT_MODEL": "openai:scripted-chat",
            "APIDESK_CHAT_BASE_URL": model.base_url,
            "APIDESK_CHAT_API_KEY": "none",
        }
        assert not model.faults, model.faults[0]
