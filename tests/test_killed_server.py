"""A killed `apidesk serve` loses no record of an answered question. Other commands can use its store."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from app.cli.main import main
from app.service.record_writer import RecordWriter
from ingestion.database.engine import open_engine
from schemas.settings import read_settings
from tests.acme import PLATFORM, QUOTAS
from tests.question_records import run_writer, stored
from tests.serving_process import ServingProcess, ask, wait_until

pytestmark = pytest.mark.acceptance

QUESTIONS = [f"how many tokens may workspace {number} create?" for number in range(12)]


class KilledServer(NamedTuple):
    """The results of a server that was killed."""

    answered: dict[str, str]
    """Questions by the ids of the answers that were received."""
    recorded: dict[str, str]
    """Questions by the ids of the records that the next process wrote to the database."""
    replay: Result
    """The result of `apidesk replay --json` while the server was running."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> KilledServer:
    """A server that is killed right after its last answer."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "guides").mkdir()
    (folder / "guides" / "quotas.md").write_text(QUOTAS.format(number=20))
    (folder / "platform.toml").write_text(PLATFORM)
    environment = {
        "APIDESK_PLATFORM": str(folder / "platform.toml"),
        "APIDESK_MILVUS_URI": str(folder / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
        "APIDESK_SPOOL": str(folder / "spool"),
    }
    settings = read_settings(
        database_url=environment["APIDESK_DATABASE_URL"], spool=folder / "spool"
    )
    server = ServingProcess(folder / "log", environment)
    try:
        url, engine = server.url, open_engine(settings)
        first = ask(url, QUESTIONS[0])
        wait_until(lambda: bool(stored(engine)), "the first record is in the database")
        replay = CliRunner().invoke(main, ["replay", "--json"], env=environment)
        with ThreadPoolExecutor(4) as pool:
            responses = [first, *pool.map(partial(ask, url), QUESTIONS[1:])]
    finally:
        server.process.kill()
    assert server.process.wait() == -signal.SIGKILL
    answered = {response.json()["id"]: response.json()["question"] for response in responses}
    run_writer(RecordWriter(engine, settings), lambda: None)
    recorded = {record.id: record.question for record in stored(engine)}
    engine.dispose()
    return KilledServer(answered, recorded, replay)


def test_every_answered_question_is_recorded(killed: KilledServer) -> None:
    assert sorted(killed.answered.values()) == sorted(QUESTIONS)
    assert killed.recorded == killed.answered


def test_replay_uses_the_store_of_a_running_server(killed: KilledServer) -> None:
    assert (killed.replay.exit_code, killed.replay.stderr) == (0, "")
    (replayed,) = json.loads(killed.replay.stdout)["questions"]
    assert (replayed["question"], replayed["change"]) == (QUESTIONS[0], "same")
