"""A collection of every kind of store with the folders of its sources."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sync_harness import EMBEDDED, MILVUS, SyncHarness, open_harness


@pytest.fixture(scope="module")
def milvus_uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "milvus.db"


@pytest.fixture(params=[EMBEDDED, *MILVUS])
def harness(
    request: pytest.FixtureRequest, milvus_uri: Path, tmp_path: Path
) -> Iterator[SyncHarness]:
    harness = open_harness(tmp_path, request.param, milvus_uri)
    yield harness
    harness.collection.close()
