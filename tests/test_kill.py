"""Kills the ingestion job at random times: the collection still answers, and the next run repairs it."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.snapshot import open_snapshot, snapshot_path
from schemas.settings import Settings, read_settings
from tests.collections import StoreKind
from tests.killed_job import fork_server, ingest, kill_after, repair, run
from tests.small_platform import PLATFORM
from tests.sync_harness import write_page, write_pages

pytestmark = pytest.mark.acceptance

KILLS = 7
"""Number of kills of each case, at random times of the run."""

REPLAY_KILLS = 10
"""Number of kills of each embedded case while the changes are written to Milvus Lite."""

PAGES = 60

Case = tuple[StoreKind, dict[str, bool]]

EMBEDDED_CASES: list[Case] = [("embedded", {}), ("embedded", {"rebuild": True})]
CASES: list[Case] = [
    *EMBEDDED_CASES,
    ("next collection", {}),
    ("in place", {}),
    ("next collection", {"rebuild": True}),
]


def settings_of(folder: Path, kind: StoreKind) -> dict[str, Any]:
    """Keyword arguments of `read_settings`. Embedded collections have vectors."""
    return {
        "milvus_uri": str(folder / "milvus.db"),
        "database_url": f"sqlite:///{folder / 'apidesk.db'}",
        "platform": folder / "platform.toml",
        "embedding_model": "test:counts" if kind == "embedded" else None,
    }


def repaired(folder: Path, kind: StoreKind, options: dict[str, bool]) -> dict[str, Any]:
    target = folder / "repaired.json"
    assert run(CONTEXT, repair, settings_of(folder, kind), kind, options, target) == 0
    found: dict[str, Any] = json.loads(target.read_text())
    return found


CONTEXT = fork_server()


@pytest.fixture(scope="module", params=CASES, ids=lambda case: " ".join((case[0], *case[1])))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A store whose pages have changed, the duration of the next run, and its result."""
    kind, options = request.param
    folder = tmp_path_factory.mktemp("before")
    (folder / "platform.toml").write_text(PLATFORM)
    (folder / "guides").mkdir()
    write_pages(folder / "guides", PAGES)
    assert run(CONTEXT, ingest, settings_of(folder, kind), kind, {}, folder / "first") == 0
    for number in range(0, PAGES, 3):
        write_page(
            folder / "guides", number, f"# Changed {number}\n\nNew.\n\n## More\n\nWords {number}."
        )
    for number in range(1, PAGES, 10):
        (folder / "guides" / f"{number:03}.md").unlink()
    write_pages(folder / "guides", 10, first=PAGES)

    undisturbed = folder.with_name("undisturbed")
    shutil.copytree(folder, undisturbed)
    began = undisturbed / "began"
    process = CONTEXT.Process(
        target=ingest, args=(settings_of(undisturbed, kind), kind, options, began)
    )
    process.start()
    while not began.exists():
        time.sleep(0.002)
    started = time.monotonic()
    process.join()
    assert process.exitcode == 0
    seconds = time.monotonic() - started
    yield folder, kind, options, seconds, repaired(undisturbed, kind, {})["state"]
    shutil.rmtree(undisturbed)


@pytest.mark.parametrize("seed", range(KILLS))
def test_next_run_repairs_a_killed_run(case: Any, seed: int, tmp_path: Path) -> None:
    before, kind, options, seconds, expected = case
    folder = tmp_path / "store"
    shutil.copytree(before, folder)
    settings, began = settings_of(folder, kind), folder / "began"
    moment = random.Random(f"{seed} {options}").uniform(0, seconds)
    process = CONTEXT.Process(target=ingest, args=(settings, kind, options, began))
    process.start()
    killed = kill_after(process, began, moment)

    check_repaired(repaired(folder, kind, options), expected, killed)


@pytest.mark.parametrize("case", EMBEDDED_CASES, indirect=True, ids=["changes", "rebuild"])
@pytest.mark.parametrize("seed", range(REPLAY_KILLS))
def test_reads_answer_around_a_kill_during_the_replay(case: Any, seed: int, tmp_path: Path) -> None:
    """Readers see the old state, then the new one, and keep seeing it after the kill."""
    before, kind, options, seconds, expected = case
    folder = tmp_path / "store"
    shutil.copytree(before, folder)
    settings, began = settings_of(folder, kind), folder / "began"
    collection = Collection.connect(read_settings(**settings))
    old = state_of(collection)
    new = (expected["manifest"]["rows"], expected["words"]["twice"])
    process = CONTEXT.Process(target=ingest, args=(settings, kind, options, began))
    process.start()
    seen = [old]
    while process.is_alive() and not has_journal(read_settings(**settings)):
        seen.append(state_of(collection))
    time.sleep(random.Random(seed).uniform(0, seconds / 4))
    killed = kill_after(process, began, 0)
    seen.append(state_of(collection))
    collection.close()
    assert seen == sorted(seen, key=[old, new].index)
    assert seen[-1] == new

    check_repaired(repaired(folder, kind, options), expected, killed)


def state_of(collection: Collection) -> tuple[int, int]:
    """The number of chunks and of occurrences of a word, read in one transaction."""
    assert isinstance(collection, EmbeddedCollection)
    with collection._reading():
        assert len(collection.search("how is `do_5` called", 3)) == 3
        return collection.manifest.rows, collection.word_counts(["twice"])["twice"]


def has_journal(settings: Settings) -> bool:
    """Whether the new state is committed, and not yet written to Milvus Lite."""
    connection = open_snapshot(snapshot_path(settings))
    try:
        return connection.execute("SELECT 1 FROM journal LIMIT 1").fetchone() is not None
    finally:
        connection.close()


def check_repaired(found: dict[str, Any], expected: object, killed: bool) -> None:
    assert found["answers"] == 3
    assert found["state"] == expected
    (last, *earlier) = found["runs"]
    assert last == "succeeded"
    assert "running" not in earlier
    # A run that is killed at once has not been recorded.
    assert len(earlier) <= 1
    assert killed or earlier == ["succeeded"]
