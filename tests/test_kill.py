"""Tests that kill the ingestion job at random times: the collection answers, the next run repairs it."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.killed_job import fork_server, ingest, kill_after, repair, run
from tests.test_ingestions import PLATFORM
from tests.test_sync import write_page, write_pages

pytestmark = pytest.mark.acceptance

KILLS = 20
PAGES = 60

CASES = [(False, {}), (True, {}), (False, {"rebuild": True})]


def settings_of(folder: Path) -> dict[str, Any]:
    """Keyword arguments of `read_settings`."""
    return {
        "milvus_uri": str(folder / "milvus.db"),
        "database_url": f"sqlite:///{folder / 'apidesk.db'}",
        "platform": folder / "platform.toml",
    }


def repaired(folder: Path, in_place: bool, options: dict[str, bool]) -> dict[str, Any]:
    target = folder / "repaired.json"
    assert run(CONTEXT, repair, settings_of(folder), in_place, options, target) == 0
    found: dict[str, Any] = json.loads(target.read_text())
    return found


CONTEXT = fork_server()


@pytest.fixture(scope="module", params=CASES, ids=["beside", "in place", "rebuild"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A store whose pages have changed, the duration of the next run, and its result."""
    in_place, options = request.param
    folder = tmp_path_factory.mktemp("before")
    (folder / "platform.toml").write_text(PLATFORM)
    (folder / "guides").mkdir()
    write_pages(folder / "guides", PAGES)
    assert run(CONTEXT, ingest, settings_of(folder), in_place, {}, folder / "first") == 0
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
        target=ingest, args=(settings_of(undisturbed), in_place, options, began)
    )
    process.start()
    while not began.exists():
        time.sleep(0.002)
    started = time.monotonic()
    process.join()
    assert process.exitcode == 0
    seconds = time.monotonic() - started
    yield folder, in_place, options, seconds, repaired(undisturbed, in_place, {})["state"]
    shutil.rmtree(undisturbed)


@pytest.mark.parametrize("seed", range(KILLS // len(CASES) + 1))
def test_next_run_repairs_a_killed_run(case: Any, seed: int, tmp_path: Path) -> None:
    before, in_place, options, seconds, expected = case
    folder = tmp_path / "store"
    shutil.copytree(before, folder)
    settings, began = settings_of(folder), folder / "began"
    moment = random.Random(f"{seed} {options}").uniform(0, seconds)
    process = CONTEXT.Process(target=ingest, args=(settings, in_place, options, began))
    process.start()
    killed = kill_after(process, began, moment)

    found = repaired(folder, in_place, options)

    assert found["answers"] == 3
    assert found["state"] == expected
    (last, *earlier) = found["runs"]
    assert last == "succeeded"
    assert "running" not in earlier
    assert len(earlier) == 1
    assert killed or earlier == ["succeeded"]
