"""Runs commands of apidesk on a small platform, in this process and in separate ones."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from app.cli.main import main
from app.serving.local_server import find_running_server
from schemas.answer import Answer
from schemas.settings import read_settings

APIDESK = Path(sys.executable).parent / "apidesk"

QUESTION = "how do I sign a request?"
VOLATILE = {"cached", "id", "timings"}

PLATFORM = """\
[platform]
name = "Acme"
description = "An API for shops: signing and orders."
audience = "developers"
tone = "dry"
language = "en"

[platform.greeting]
en = "Hello."

[platform.refusal]
en = "Not about Acme."

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"

[sources.metadata]
category = "category"

[[sources]]
name = "reference"
kind = "api_docs"
path = "api"
"""

DOCUMENTS = {
    "guides/signing.md": "---\ntitle: Signing\n---\n## How to sign a request\n\n"
    "Sign a request with HMAC-SHA256 over its sorted parameters.\n",
    "guides/orders.md": "# Orders\n\n## States\n\nAn order is open, paid or closed.\n",
    "api/1.json": json.dumps(
        {"serviceId": "s", "apiId": "1", "name": "Search orders", "url": "/orders/search"}
        | {"language": "en", "description": "Finds orders."}
    ),
}


def write_platform(folder: Path) -> Path:
    """Write a platform with three documents; return the path of its platform.toml."""
    for name, text in {"platform.toml": PLATFORM, **DOCUMENTS}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "platform.toml"


def environment_of(store: Path) -> dict[str, str]:
    """Settings for the store and a database next to it."""
    database = f"sqlite:///{store.with_suffix('.runs')}"
    return {"APIDESK_MILVUS_URI": str(store), "APIDESK_DATABASE_URL": database}


def run(store: Path, *arguments: object, **environment: str) -> Result:
    """Run a command in this process."""
    environment = environment_of(store) | environment
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=environment)


def run_process(store: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process."""
    return subprocess.run(
        [APIDESK, *map(str, arguments)],
        env=os.environ | environment_of(store),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def url_of(store: Path) -> str | None:
    """The URL of the running server that is announced next to the store."""
    server = find_running_server(read_settings(milvus_uri=str(store)))
    return server.url if server else None


def stable_fields(body: str) -> dict[str, Any]:
    """An answer's JSON without the fields that change each time."""
    Answer.model_validate_json(body)
    return {name: value for name, value in json.loads(body).items() if name not in VOLATILE}


def answer(store: Path, *arguments: object) -> dict[str, Any]:
    """The answer to QUESTION, without the fields that change each time."""
    result = run(store, "ask", QUESTION, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return stable_fields(result.stdout)


def assert_single_error_line(result: Result, code: int, *words: str) -> None:
    """Assert that the command failed with `code` and printed one line that contains all `words`."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.fullmatch(r"apidesk: .+\n", result.stderr), result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr


def rows(result: Result) -> int:
    """Number of chunks in the table on stderr."""
    assert result.exit_code == 0, result.output
    return len(re.findall(r"^ +\d+ +\d+\.\d{3} ", result.stderr, re.MULTILINE))
