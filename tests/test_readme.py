"""Run the commands of the READMEs and tutorials and compare their output; `...` matches anything, as in doctest."""

import doctest
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SERVER = "make run"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not (ROOT / ".venv/bin/apidesk").exists() or not shutil.which("curl"),
        reason="needs the checkout's own .venv (make setup) and curl",
    ),
]


def read_blocks(document: str) -> list[tuple[str, str]]:
    """The fenced commands of a document, as (kind, text)."""
    return FENCE.findall((ROOT / document).read_text(encoding="utf-8"))


def split_session(text: str) -> list[tuple[str, str]]:
    """A console block as (command, expected output) pairs."""
    parts = re.split(r"^\$ (.*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], (output.lstrip("\n") for output in parts[1::2]), strict=True))


class Terminal:
    """A folder that looks like a fresh checkout, with a shell and a server."""

    def __init__(self, folder: Path) -> None:
        for entry in ROOT.iterdir():
            if entry.name not in {"data", ".git"}:
                (folder / entry.name).symlink_to(entry)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.log = folder / "server.log"
        # With these variables, a nested make prints the directory it enters.
        make_variables = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        inherited = {
            name: value for name, value in os.environ.items() if name not in make_variables
        }
        self.environment = inherited | {
            "PORT": str(self.port),
            "COLUMNS": "80",
            "APIDESK_LOG_FORMAT": "console",
        }
        self.server: subprocess.Popen[bytes] | None = None

    def run(self, command: str) -> str:
        """Run `command` and return what it prints. `export` lasts, and the server stays up."""
        if command == SERVER:
            return self._serve()
        if command.startswith("export "):
            pairs = (pair.split("=", 1) for pair in command.removeprefix("export ").split())
            self.environment |= dict(pairs)
            return ""
        done = subprocess.run(
            ["bash", "-ec", command.replace(":8000", f":{self.port}")],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()

    def _serve(self) -> str:
        with self.log.open("wb") as log:
            self.server = subprocess.Popen(
                ["make", "run"], cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        return self.log.read_text(encoding="utf-8").replace(str(self.port), "8000")

    def close(self) -> None:
        if self.server:
            os.killpg(self.server.pid, signal.SIGTERM)
            self.server.wait(timeout=20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "README.zh.md",
        "docs/tutorials/first-answers.md",
        "docs/tutorials/own-documents.md",
    ],
)
def test_commands_print_what_the_document_shows(terminal: Terminal, document: str) -> None:
    checker = doctest.OutputChecker()
    for kind, text in read_blocks(document):
        pairs = [(text, "")] if kind == "sh" else split_session(text)
        for command, expected in pairs:
            printed = terminal.run(command)
            if not checker.check_output(expected or "\n", printed or "\n", FLAGS):
                pytest.fail(f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}")
