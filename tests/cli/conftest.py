"""A small platform, and a store that is indexed from it."""

import re
from pathlib import Path

import pytest

from tests.cli.commands import run, write_platform


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A valid platform.toml for the test to modify."""
    return write_platform(tmp_path / "platform")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed store without a server."""
    folder = tmp_path_factory.mktemp("cli")
    result = run(folder / "milvus.db", "ingest", "--platform", write_platform(folder))
    assert result.exit_code == 0, result.output
    assert re.search(r"guides +2 +2 +0 +0 +0 +0 +2 +2\n", result.stdout)
    assert re.search(r"reference +1 +1 ", result.stdout)
    return folder / "milvus.db"
