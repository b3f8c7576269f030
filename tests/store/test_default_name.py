"""The default name of the collection, and the collections with the former default name `open_rag`."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingestion.job import IngestionJob
from schemas.settings import Settings
from tests.milvus_server import MilvusServer
from tests.small_platform import PLATFORM, settings_of
from tests.sync_harness import write_pages


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.acceptance)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """A platform of three pages whose settings do not name the collection."""
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    write_pages(tmp_path / "guides", 3)
    settings = settings_of(tmp_path)
    if request.param == "embedded":
        yield settings
        return
    with MilvusServer(tmp_path / "server") as server:
        yield settings.model_copy(update={"milvus_uri": server.uri})


def index(settings: Settings, name: str | None = None) -> str:
    """Run an ingestion, into the collection `name` if it is given; return the collection's name."""
    if name:
        settings = settings.model_copy(update={"collection": name})
    with closing(IngestionJob.connect(settings)) as job:
        job.run(job.new_run("command"))
        return job.collection.alias


def used(settings: Settings) -> tuple[str, bool]:
    """Return the name of the collection that is used, and whether it exists."""
    with closing(IngestionJob.connect(settings)) as job:
        return job.collection.alias, job.collection.exists()


def test_new_collection_is_named_apidesk(settings: Settings) -> None:
    assert used(settings) == ("apidesk", False)
    assert index(settings) == "apidesk"
    assert used(settings) == ("apidesk", True)


def test_collection_with_the_former_name_is_read_and_updated(settings: Settings) -> None:
    index(settings, "open_rag")
    assert used(settings) == ("open_rag", True)
    assert index(settings) == "open_rag"


def test_collection_apidesk_takes_precedence(settings: Settings) -> None:
    index(settings, "apidesk")
    index(settings, "open_rag")
    assert used(settings) == ("apidesk", True)


def test_setting_takes_precedence_over_the_former_name(settings: Settings) -> None:
    index(settings, "open_rag")
    named = settings.model_copy(update={"collection": "apidesk"})
    assert used(named) == ("apidesk", False)
