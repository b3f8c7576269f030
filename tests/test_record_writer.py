"""Question records: written to the outbox at once, delivered to the database, never lost by a kill."""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from langchain_core.utils.uuid import uuid7
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from app.service.ask_command import AskCommand
from app.service.record_writer import UNWRITABLE, Outbox, RecordWriter
from app.service.records import MAX_TEXT_CHARS, RecordStore, build_failed_record
from ingestion.database.engine import open_engine
from schemas.errors import StoreUnavailable
from schemas.insights import Feedback, QuestionRecord
from schemas.settings import Settings, read_settings
from tests.question_records import record, run_writer, stored

KILLED_SCRIPT = """
import os, signal, sys
from pathlib import Path
from app.service.record_writer import UNWRITABLE, Outbox
from tests.question_records import record

outbox = Outbox(Path(sys.argv[1]))
for number in range(30):
    outbox.append(record(f"killed-{number}"))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def settings(url: str, tmp_path: Path) -> Settings:
    return read_settings(database_url=url, spool=tmp_path / "spool")


@pytest.fixture
def engine(settings: Settings) -> Engine:
    return open_engine(settings)


def write_all(record_writer: RecordWriter, records: Iterable[QuestionRecord]) -> None:
    for each in records:
        record_writer.write(each)


def test_records_are_read_back_unchanged(engine: Engine, settings: Settings) -> None:
    asked = [record("a"), record("b", failure="model_timeout", type=None, confidence=None)]
    run_writer(
        record_writer := RecordWriter(engine, settings), lambda: write_all(record_writer, asked)
    )
    assert stored(engine) == asked


def test_secret_at_the_end_of_the_recorded_text_is_masked() -> None:
    key = "Ab3dEf6hIj9kLm2nOp5rSt8vWx1zQy4uCg7wKe0mZs6t"
    text = "x " * ((MAX_TEXT_CHARS - 20) // 2) + key
    failed = build_failed_record(AskCommand(text), "model_timeout", 30_000)
    assert len(failed.question) <= MAX_TEXT_CHARS
    assert "Ab3d" not in failed.question


def test_record_has_the_time_of_its_question() -> None:
    answered_at = datetime.now(UTC)
    failed = build_failed_record(AskCommand("怎么发货"), "model_timeout", 30_000)
    assert (
        timedelta(0)
        <= failed.asked_at - (answered_at - timedelta(seconds=30))
        < timedelta(seconds=10)
    )


def test_records_of_a_busy_server_share_transactions(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings)
    commits: list[object] = []
    event.listen(engine, "commit", commits.append)
    asked = [record(f"r{number}") for number in range(20)]

    async def write_slowly() -> None:
        async with record_writer.running():
            for each in asked:
                record_writer.write(each)
                await asyncio.sleep(0.005)

    asyncio.run(write_slowly())
    assert [each.id for each in stored(engine)] == [each.id for each in asked]
    assert len(commits) < len(asked) / 2


def test_record_with_known_id_is_skipped(engine: Engine) -> None:
    store = RecordStore(engine)
    store.add([record("a")])
    store.add([record("a", question="another"), record("b")])
    assert [(each.id, each.question) for each in stored(engine)] == [
        ("a", record("a").question),
        ("b", record("b").question),
    ]


@pytest.mark.acceptance
def test_records_of_killed_process_are_delivered(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings)
    folder = record_writer.folder
    assert folder is not None
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_SCRIPT, folder], cwd=Path(__file__).parents[1]
    )
    assert killed.returncode == -signal.SIGKILL
    run_writer(record_writer, lambda: record_writer.write(record("mine")))
    assert {each.id for each in stored(engine)} == {"mine", *(f"killed-{n}" for n in range(30))}
    assert list(folder.iterdir()) == []


def test_records_of_live_process_are_left_to_it(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings)
    assert record_writer.folder is not None
    other = Outbox(record_writer.folder)
    other.append(record("other's"))
    run_writer(record_writer, lambda: record_writer.write(record("mine")))
    assert [each.id for each in stored(engine)] == ["mine"]
    other.drain(RecordStore(engine).add)
    other.close()
    assert len(stored(engine)) == 2


def test_truncated_line_is_skipped(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings)
    assert record_writer.folder is not None
    whole = record("whole").model_dump_json()
    (record_writer.folder / "gone.000000001.jsonl").write_text(f'{whole}\n{{"id": "torn", "ow')
    (record_writer.folder / "gone.lock").touch()
    run_writer(record_writer, lambda: None)
    assert [each.id for each in stored(engine)] == ["whole"]


def test_outbox_holds_records_while_database_is_down(engine: Engine, settings: Settings) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE questions RENAME TO away"))
    run_writer(
        record_writer := RecordWriter(engine, settings), lambda: record_writer.write(record("a"))
    )
    assert record_writer.problem == (
        "records wait in the outbox, because the database cannot be used"
    )
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO questions"))
    assert stored(engine) == []
    run_writer(RecordWriter(engine, settings), lambda: None)
    assert [each.id for each in stored(engine)] == ["a"]


def test_unwritable_outbox_is_logged(
    engine: Engine, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    settings = settings.model_copy(update={"spool": tmp_path / "file"})
    losses: list[None] = []
    record_writer = RecordWriter(engine, settings, lambda: losses.append(None))
    assert record_writer.problem == UNWRITABLE
    run_writer(record_writer, lambda: write_all(record_writer, [record("a"), record("b")]))
    assert len(losses) == 2
    assert "questions cannot be recorded" in caplog.text
    assert str(record_writer.folder) not in (record_writer.problem or "")


def test_full_disk_loses_only_the_record_that_does_not_fit(
    engine: Engine, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def write() -> None:
        record_writer.write(record("a"))
        assert record_writer.folder is not None
        (path,) = record_writer.folder.glob("*.jsonl")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, limits[1]))
        try:
            record_writer.write(record("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert record_writer.problem == UNWRITABLE
        record_writer.write(record("c"))
        assert record_writer.problem is None

    record_writer = RecordWriter(engine, settings)
    run_writer(record_writer, write)
    assert [each.id for each in stored(engine)] == ["a", "c"]
    assert "question not recorded: no space is left" in caplog.text


def test_damaged_database_is_named(tmp_path: Path) -> None:
    settings = read_settings(database_url=f"sqlite:///{tmp_path / 'x.db'}")
    (tmp_path / "x.db").write_bytes(b"damaged" * 1_000)
    with pytest.raises(StoreUnavailable, match=r"\(it is damaged\): see APIDESK_DATABASE_URL"):
        open_engine(settings)


def test_only_the_owner_can_rate_an_answer(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings)
    helpful, foreign = Feedback(score=1, comment="谢谢"), Feedback(score=-1)
    answer = uuid7()

    async def rate() -> list[bool]:
        async with record_writer.running():
            record_writer.write(record(str(answer)))
            return [
                await record_writer.rate("key-1", answer, helpful),
                await record_writer.rate("key-2", answer, foreign),
                await record_writer.rate("key-1", uuid4(), foreign),
            ]

    assert asyncio.run(rate()) == [True, False, False]
    assert [each.feedback for each in stored(engine)] == [helpful]


def test_expired_records_are_deleted(engine: Engine, settings: Settings) -> None:
    old = datetime.now(UTC) - timedelta(days=settings.keep_days, minutes=1)
    RecordStore(engine).add([record("old", asked_at=old), record("new")])
    record_writer = RecordWriter(engine, settings)

    async def wait() -> None:
        async with record_writer.running():
            while len(await asyncio.to_thread(stored, engine)) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    asyncio.run(wait())
    assert [each.id for each in stored(engine)] == ["new"]


def test_keep_questions_false_writes_nothing(engine: Engine, settings: Settings) -> None:
    record_writer = RecordWriter(engine, settings.model_copy(update={"keep_questions": False}))
    run_writer(record_writer, lambda: record_writer.write(record("a")))
    assert stored(engine) == []
    assert not settings.spool.exists()
    assert not asyncio.run(record_writer.rate("key-1", uuid7(), Feedback(score=1)))


def test_threads_append_complete_lines(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    drained: list[QuestionRecord] = []

    def write_batch(records: Sequence[QuestionRecord]) -> None:
        drained.extend(records)

    with ThreadPoolExecutor(8) as pool:
        for number in range(400):
            pool.submit(outbox.append, record(str(number)))
            if number % 4 == 0:
                pool.submit(outbox.drain, write_batch)
    outbox.drain(write_batch)
    assert sorted(int(each.id) for each in drained) == list(range(400))


def test_full_outbox_keeps_its_records_and_takes_new_ones_after_delivery(tmp_path: Path) -> None:
    one = len(record("a").model_dump_json()) + 1
    outbox = Outbox(tmp_path, max_bytes=2 * one + one // 2)
    drained: list[str] = []

    def fail(records: Sequence[QuestionRecord]) -> None:
        raise StoreUnavailable("the database is down")

    for name in "abcd":
        outbox.append(record(name))
        with pytest.raises(StoreUnavailable):
            outbox.drain(fail)
    outbox.drain(lambda records: drained.extend(each.id for each in records))
    outbox.append(record("e"))
    outbox.drain(lambda records: drained.extend(each.id for each in records))
    assert drained == ["a", "b", "e"]
