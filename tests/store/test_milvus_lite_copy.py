"""Tests of the copy of an embedded collection in Milvus Lite."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ingestion.source_reading import ReadOptions
from ingestion.store.collection import Collection
from ingestion.store.lite_copy import ChildLiteCopy
from ingestion.store.manifest import expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from ingestion.store.snapshot import FORMAT_VERSION, open_snapshot, snapshot_path
from ingestion.sync import Sync
from schemas.errors import CollectionMismatch, CollectionMissing, StoreLocked, StoreUnavailable
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import MarkdownSourceConfig, SourceLimits
from schemas.settings import Settings, read_settings
from tests.chunks import embed, page
from tests.collections import (
    holding_milvus_lite,
    open_collection,
    record_rows,
    release_milvus,
    snapshot_rows,
    use_milvus,
    write,
)
from tests.serving_process import wait_until

pytestmark = pytest.mark.acceptance

SERVE_AND_WRITE = """
import sys
from ingestion.store.collection import Collection
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import write

if __name__ == "__main__":
    collection = Collection.connect(read_settings(milvus_uri=sys.argv[1]), long_lived=True)
    write(collection, page("a", "text"))
    write(collection, [*page("a", "new text"), *page("b", "text")], rebuild=False)
    print("pymilvus" in sys.modules)
"""


ROOT = Path(__file__).resolve().parents[2]


class Folder:
    """A folder of pages and the collection with their embeddings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = read_settings(
            milvus_uri=str(path / "milvus.db"), embedding_model="test:counts"
        )
        (path / "guides").mkdir()

    def write(self, name: str, text: str) -> None:
        (self.path / "guides" / f"{name}.md").write_text(text, encoding="utf-8")

    def sync(self, rebuild: bool = False) -> tuple[SourceReport, list[str]]:
        """Run once; return the report and the texts that were embedded."""
        embedder = CountingEmbedder()
        collection = Collection.connect(self.settings)
        options = IngestionOptions(rebuild=rebuild)
        sync = Sync(collection, embedder, ReadOptions(SourceLimits(), 400), options)  # type: ignore[arg-type]
        source = MarkdownSourceConfig(kind="markdown", name="guides", path=self.path / "guides")
        try:
            sync.run([source])
        finally:
            collection.close()
        return sync.reports[0], embedder.texts

    def assert_record_is_complete(self) -> None:
        rows = record_rows(self.settings)
        assert rows
        assert rows == snapshot_rows(self.settings)


class CountingEmbedder:
    """An embedder of chunks that keeps their texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, chunks):  # type: ignore[no-untyped-def]
        for chunk in chunks:
            self.texts.append(chunk.body)
            yield [chunk], embed([chunk.body])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Four pages, indexed. Search routes are not calibrated."""
    monkeypatch.setattr("ingestion.sync.is_calibration_due", lambda manifest: False)
    folder = Folder(tmp_path)
    for number in range(4):
        folder.write(str(number), f"# Page {number}\n\nwords of page {number}")
    folder.sync()
    return folder


def journal(settings: Settings) -> int:
    connection = open_snapshot(snapshot_path(settings))
    (count,) = connection.execute("SELECT count(*) FROM journal").fetchone()
    connection.close()
    return int(count)


@pytest.mark.parametrize("rebuild", [False, True])
def test_next_run_writes_what_a_locked_file_refused(folder: Folder, rebuild: bool) -> None:
    """Although nothing has changed since. Questions are already answered from the new state."""
    folder.write("new", "# New\n\na zebra")
    (folder.path / "guides" / "0.md").unlink()
    with (
        holding_milvus_lite(folder.settings),
        pytest.raises(StoreLocked, match="is in use by another process"),
    ):
        folder.sync()
    assert journal(folder.settings) == 2
    reader = Collection.connect(folder.settings)
    assert [hit.chunk.document_id for hit in reader.search("zebra", 2)] == ["new"]
    reader.close()
    assert len(record_rows(folder.settings)) == 4
    assert record_rows(folder.settings) != snapshot_rows(folder.settings)

    _, embedded = folder.sync(rebuild)

    assert rebuild or embedded == []
    assert journal(folder.settings) == 0
    folder.assert_record_is_complete()


def test_missing_snapshot_is_restored_without_embedding(folder: Folder) -> None:
    before = snapshot_rows(folder.settings)
    remove_snapshot(folder.settings)
    folder.write("3", "# Page 3\n\nother words of page 3")
    report, embedded = folder.sync()
    assert embedded == ["other words of page 3"]
    assert (report.unchanged, report.changed, report.added) == (3, 1, 0)
    after = snapshot_rows(folder.settings)
    assert len(before.keys() & after.keys()) >= 3
    folder.assert_record_is_complete()


def remove_snapshot(settings: Settings) -> None:
    path = snapshot_path(settings)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def test_restored_snapshot_is_equal_to_the_lost_one(folder: Folder) -> None:
    lost = contents(folder.settings)
    remove_snapshot(folder.settings)
    folder.sync()
    assert contents(folder.settings) == lost


def test_index_file_that_a_killed_run_left_unfinished_is_built_again(folder: Folder) -> None:
    lost = contents(folder.settings)
    remove_snapshot(folder.settings)
    release_milvus(folder.settings)
    indexes = list(Path(folder.settings.milvus_uri).rglob("*.idx"))
    assert indexes
    for path in indexes:
        path.write_bytes(path.read_bytes()[:100])
    folder.sync()
    assert contents(folder.settings) == lost


def contents(settings: Settings) -> dict[str, object]:
    """What a collection answers with, without chunk numbers, which depend on the order of writing."""
    collection = Collection.connect(settings)
    collection.load()
    found = {
        "rows": snapshot_rows(settings),
        "catalogue": collection.catalogue(),
        "manifest": collection.manifest,
        "words": collection.word_counts(["words", "page", "0", "1"]),
        "search": collection.search_hits("words of page 2", 4),
        "dense": collection.search_hits("", 4, embed(["words of page 2"])[0]),
    }
    collection.close()
    return found


def test_missing_milvus_lite_is_written_again_by_the_next_change(folder: Folder) -> None:
    release_milvus(folder.settings)
    path = Path(folder.settings.milvus_uri)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    folder.write("new", "# New\n\na zebra")
    folder.sync()
    folder.assert_record_is_complete()


def test_damaged_milvus_lite_is_named_and_written_again(folder: Folder) -> None:
    for path in Path(folder.settings.milvus_uri).rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    folder.write("0", "# Page 0\n\nother words")
    with pytest.raises(
        StoreUnavailable, match=r"milvus\.db .*delete it: the next run that changes any"
    ):
        folder.sync()
    shutil.rmtree(folder.settings.milvus_uri)
    folder.sync()
    folder.assert_record_is_complete()


def test_snapshot_of_another_format_is_restored(folder: Folder) -> None:
    lost = contents(folder.settings)
    connection = open_snapshot(snapshot_path(folder.settings))
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    connection.close()
    collection = Collection.connect(folder.settings)
    with pytest.raises(CollectionMissing):
        collection.load()
    collection.close()
    _, embedded = folder.sync()
    assert embedded == []
    assert contents(folder.settings) == lost


def test_collection_of_an_earlier_version_must_be_rebuilt(folder: Folder) -> None:
    """Earlier versions searched in Milvus Lite, and had no snapshot."""
    remove_snapshot(folder.settings)
    settings = folder.settings.model_copy(update={"embedding_model": None})
    use_milvus(settings, lambda client: client.drop_alias(settings.collection))
    earlier = open_collection(settings, "next collection")
    assert isinstance(earlier, MilvusCollection)
    write(earlier, page("old", "旧的"))
    earlier.close()
    release_milvus(settings)
    before = record_rows(settings)
    expected = expected_manifest(settings, "standard").analyzer

    collection = Collection.connect(settings)
    with pytest.raises(CollectionMismatch) as raised:
        collection.recover(rebuild=False)
    assert str(raised.value).startswith(
        f"the collection {settings.collection} was made with analyzer {expected} instead of apidesk/"
    )
    assert str(raised.value).endswith(": run `apidesk ingest --rebuild` to rebuild it")
    assert record_rows(settings) == before

    collection.recover(rebuild=True)
    write(collection, page("new", "新的"))
    collection.close()
    assert [row["document_id"] for row in record_rows(settings).values()] == ["new"]
    assert record_rows(settings) == snapshot_rows(settings)


def test_replay_that_fails_half_way_is_repeated(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        folder.write(str(number), f"# Page {number}\n\nnew words of page {number}")

    def fail(*args: object) -> None:
        raise StoreUnavailable("Milvus failed")

    with monkeypatch.context() as patched:
        patched.setattr("ingestion.store.lite_copy.write_manifest", fail)
        with pytest.raises(StoreUnavailable):
            folder.sync()
    assert journal(folder.settings) > 0
    folder.sync()
    assert journal(folder.settings) == 0
    folder.assert_record_is_complete()


def test_server_writes_the_record_without_loading_milvus(folder: Folder) -> None:
    program = folder.path / "serve.py"
    program.write_text(SERVE_AND_WRITE)
    settings = read_settings(milvus_uri=folder.settings.milvus_uri)
    ended = subprocess.run(
        [sys.executable, str(program), settings.milvus_uri],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("False\n", "")
    assert record_rows(settings) == snapshot_rows(settings)
    assert len(record_rows(settings)) == 2


def test_server_reports_a_locked_record_and_copies_it_in_the_next_run(folder: Folder) -> None:
    settings = read_settings(milvus_uri=folder.settings.milvus_uri)
    collection = Collection.connect(settings, long_lived=True)
    try:
        write(collection, page("a", "text"))
        with (
            holding_milvus_lite(settings),
            pytest.raises(StoreLocked, match="is in use by another"),
        ):
            write(collection, page("b", "text"), rebuild=False)
        assert len(collection.sample(9)) == 2
        collection.recover(rebuild=False)
    finally:
        collection.close()
    assert record_rows(settings) == snapshot_rows(settings)


KILLED_SERVER = """
import sys
from ingestion.store.collection import Collection
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import write

if __name__ == "__main__":
    collection = Collection.connect(read_settings(milvus_uri=sys.argv[1]), long_lived=True)
    write(collection, [chunk for n in range(400) for chunk in page(f"p{n}", "text", "more text")])
"""


def test_record_of_a_killed_server_is_completed(folder: Folder) -> None:
    """The server is killed after its commit, while its child process starts or copies."""
    program = folder.path / "serve.py"
    program.write_text(KILLED_SERVER)
    settings = read_settings(milvus_uri=folder.settings.milvus_uri)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), settings.milvus_uri]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as server:
        wait_until(lambda: snapshot_path(settings).exists(), "there is a snapshot")
        wait_until(lambda: journal(settings) == 800, "the server commits")
        server.kill()
    collection = Collection.connect(settings)
    try:
        wait_until(lambda: _recovers(collection), "the child process has ended")
    finally:
        collection.close()
    assert journal(settings) == 0
    assert record_rows(settings) == snapshot_rows(settings)
    assert len(record_rows(settings)) == 800


def _recovers(collection: Collection) -> bool:
    try:
        collection.recover(rebuild=False)
    except StoreLocked:
        return False
    return True


def test_killed_child_process_is_an_error_of_the_store(folder: Folder) -> None:
    copy = ChildLiteCopy(folder.settings)
    with pytest.raises(StoreUnavailable, match="has ended unexpectedly"):
        copy._run_in_child(signal.raise_signal, signal.SIGKILL)
