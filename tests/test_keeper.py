"""Questions are kept: in the spool at once, in the database soon, and after a kill all the same."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from langchain_core.utils.uuid import uuid7
from sqlalchemy import text
from sqlalchemy.engine import Engine

from app.service.record_writer import Outbox, RecordWriter
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.answer import Page
from schemas.question import Filters
from schemas.record import Feedback, QuestionRecord, RecordedPage
from schemas.settings import Settings, read_settings

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

KILLED = """
import os, signal, sys
from pathlib import Path
from app.service.record_writer import Outbox
from tests.test_keeper import record

spool = Outbox(Path(sys.argv[1]))
for number in range(30):
    spool.append(record(f"killed-{number}"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def record(record_id: str, **fields: object) -> QuestionRecord:
    """A question that was answered."""
    whole = QuestionRecord(
        id=record_id,
        owner="key-1",
        asked_at=datetime.now(UTC),
        session="s",
        question="怎么发货\u2028\r\n",
        understood="怎么发货",
        language="zh",
        mode="pipeline",
        k=5,
        filters=Filters(metadata={"version": "v2"}),
        type="api_call",
        confidence="high",
        answer=("先调用接口 [1]",),
        pages=(RecordedPage(title="发货", page_url="https://x/1", source="api", document_id="1"),),
        nearest=Page(title="发货", page_url="https://x/1"),
        milliseconds=12,
    )
    return whole.model_copy(update=fields)


@pytest.fixture
def settings(url: str, tmp_path: Path) -> Settings:
    return read_settings(database_url=url, spool=tmp_path / "spool")


@pytest.fixture
def engine(settings: Settings) -> Engine:
    return open_engine(settings)


def kept(engine: Engine) -> list[QuestionRecord]:
    return list(RecordStore(engine).since(LONG_AGO))


def used(keeper: RecordWriter, use: Callable[[], None]) -> None:
    async def run() -> None:
        async with keeper.running():
            use()

    asyncio.run(run())


def keep_all(keeper: RecordWriter, records: Iterable[QuestionRecord]) -> None:
    for each in records:
        keeper.keep(each)


def test_what_is_kept_comes_back_as_it_was(engine: Engine, settings: Settings) -> None:
    asked = [record("a"), record("b", failure="model_timeout", type=None, confidence=None)]
    used(keeper := RecordWriter(engine, settings), lambda: keep_all(keeper, asked))
    assert kept(engine) == asked


def test_a_record_that_comes_twice_is_kept_once(engine: Engine) -> None:
    store = RecordStore(engine)
    store.add([record("a")])
    store.add([record("a", question="another"), record("b")])
    assert [(each.id, each.question) for each in kept(engine)] == [
        ("a", record("a").question),
        ("b", record("b").question),
    ]


def test_a_killed_process_loses_nothing(engine: Engine, settings: Settings) -> None:
    keeper = RecordWriter(engine, settings)
    folder = keeper.folder
    assert folder is not None
    killed = subprocess.run([sys.executable, "-c", KILLED, folder], cwd=Path(__file__).parents[1])
    assert killed.returncode == -signal.SIGKILL
    used(keeper, lambda: keeper.keep(record("mine")))
    assert {each.id for each in kept(engine)} == {"mine", *(f"killed-{n}" for n in range(30))}
    assert list(folder.iterdir()) == []


def test_a_process_that_lives_keeps_its_own(engine: Engine, settings: Settings) -> None:
    keeper = RecordWriter(engine, settings)
    assert keeper.folder is not None
    other = Outbox(keeper.folder)
    other.append(record("other's"))
    used(keeper, lambda: keeper.keep(record("mine")))
    assert [each.id for each in kept(engine)] == ["mine"]
    other.drain(RecordStore(engine).add)
    other.close()
    assert len(kept(engine)) == 2


def test_a_torn_line_costs_nobody_else(engine: Engine, settings: Settings) -> None:
    keeper = RecordWriter(engine, settings)
    assert keeper.folder is not None
    whole = record("whole").model_dump_json()
    (keeper.folder / "gone.000000001.jsonl").write_text(f'{whole}\n{{"id": "torn", "ow')
    (keeper.folder / "gone.lock").touch()
    used(keeper, lambda: None)
    assert [each.id for each in kept(engine)] == ["whole"]


def test_while_the_database_is_away_the_spool_holds_them(
    engine: Engine, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE questions RENAME TO away"))
    used(keeper := RecordWriter(engine, settings), lambda: keeper.keep(record("a")))
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO questions"))
    assert kept(engine) == []
    used(RecordWriter(engine, settings), lambda: None)
    assert [each.id for each in kept(engine)] == ["a"]


def test_a_spool_that_cannot_be_written_breaks_no_answer(
    engine: Engine, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    keeper = RecordWriter(engine, settings.model_copy(update={"spool": tmp_path / "file"}))
    used(keeper, lambda: keeper.keep(record("a")))
    assert "questions are not kept" in caplog.text


def test_feedback_belongs_to_who_asked(engine: Engine, settings: Settings) -> None:
    keeper = RecordWriter(engine, settings)
    helped, not_ours = Feedback(score=1, comment="谢谢"), Feedback(score=-1)
    answer = uuid7()

    async def judge() -> list[bool]:
        async with keeper.running():
            keeper.keep(record(str(answer)))
            return [
                await keeper.rate("key-1", answer, helped),
                await keeper.rate("key-2", answer, not_ours),
                await keeper.rate("key-1", uuid4(), not_ours),
            ]

    assert asyncio.run(judge()) == [True, False, False]
    assert [each.feedback for each in kept(engine)] == [helped]


def test_what_is_too_old_is_forgotten(engine: Engine, settings: Settings) -> None:
    old = datetime.now(UTC) - timedelta(days=settings.keep_days, minutes=1)
    RecordStore(engine).add([record("old", asked_at=old), record("new")])
    keeper = RecordWriter(engine, settings)

    async def wait() -> None:
        async with keeper.running():
            while len(await asyncio.to_thread(kept, engine)) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    asyncio.run(wait())
    assert [each.id for each in kept(engine)] == ["new"]


def test_nothing_is_kept_where_settings_say_so(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    keeper = RecordWriter(engine, settings.model_copy(update={"keep_questions": False}))
    used(keeper, lambda: keeper.keep(record("a")))
    assert kept(engine) == []
    assert not settings.spool.exists()
    assert not asyncio.run(keeper.rate("key-1", uuid7(), Feedback(score=1)))


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    spool = Outbox(tmp_path)
    taken: list[QuestionRecord] = []

    def take(records: Sequence[QuestionRecord]) -> None:
        taken.extend(records)

    with ThreadPoolExecutor(8) as pool:
        for number in range(400):
            pool.submit(spool.append, record(str(number)))
            if number % 50 == 0:
                pool.submit(spool.drain, take)
    spool.drain(take)
    assert sorted(int(each.id) for each in taken) == list(range(400))
