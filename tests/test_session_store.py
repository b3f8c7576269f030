"""The session store, and the store of ingestion runs, with SQLite and with PostgreSQL."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.testing import TestClient
from pydantic import BaseModel, ValidationError

from app.api.ask import delete_session
from app.api.fields import SessionId
from app.api.problems import apidesk_problem, http_problem
from app.security.api_keys import anonymous
from app.service.session_store import MAX_NAME_CHARS, SessionStore
from ingestion.database.engine import open_engine
from ingestion.runs import IngestionRunStore
from schemas.errors import ApideskError, ConfigurationError, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.question import Turn
from schemas.settings import Settings, read_settings
from tests.postgres import Postgres

pytestmark = pytest.mark.acceptance

T = TypeVar("T")

NOW = datetime.now(UTC)


def make_settings(url: str, **overrides: int) -> Settings:
    return read_settings(database_url=url, **overrides)


@asynccontextmanager
async def open_store(url: str, **overrides: int) -> AsyncIterator[SessionStore]:
    settings = make_settings(url, **overrides)
    engine = await asyncio.to_thread(open_engine, settings)
    store = SessionStore(engine, settings)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)
        await asyncio.to_thread(engine.dispose)


def with_store(url: str, use: Callable[[SessionStore], Awaitable[T]], **overrides: int) -> T:
    """Return the result of `use` with a store that is opened for it."""

    async def run() -> T:
        async with open_store(url, **overrides) as store:
            return await use(store)

    return asyncio.run(run())


def turn(number: int = 0, **fields: Any) -> Turn:
    asked = {"question": f"问题 {number}?", "answer": f"第一步 {number} [1]\n第二步 [2]"}
    return Turn(**({**asked, "asked_at": NOW + timedelta(seconds=number)} | fields))


def append_and_read(url: str, *turns: Turn, **overrides: int) -> tuple[Turn, ...]:
    """Append the turns to a session, then read it."""

    async def use(store: SessionStore) -> tuple[Turn, ...]:
        for each in turns:
            await store.append("", "s", each)
        return await store.read("", "s")

    return with_store(url, use, **overrides)


def count_turns(url: str) -> int:
    """The number of turns of all owners."""
    runs = IngestionRunStore.open(make_settings(url))
    with closing(runs), runs.engine.connect() as connection:
        count: int = connection.exec_driver_sql("SELECT count(*) FROM turns").scalar_one()
    return count


# --- reading and appending


def test_turns_are_read_oldest_first_after_restart(url: str) -> None:
    """Also if the clock was set back between two turns."""
    turns = [turn(n, api_name="订单发货", api_url="/order/ship") for n in (2, 1, 3)]
    assert append_and_read(url, *turns) == tuple(turns)
    assert append_and_read(url) == append_and_read(url)
    assert len(append_and_read(url)) == 3


def test_turns_with_equal_times_keep_their_order(url: str) -> None:
    turns = tuple(turn(n, asked_at=NOW) for n in range(8))
    assert append_and_read(url, *turns) == turns


@pytest.mark.parametrize("hours", [-11, 0, 8])
def test_time_is_read_back_with_a_time_zone(url: str, hours: int) -> None:
    asked_at = NOW.astimezone(timezone(timedelta(hours=hours)))
    (found,) = append_and_read(url, turn(asked_at=asked_at))
    assert found.asked_at == asked_at
    assert found.asked_at.utcoffset() is not None


def test_unstorable_characters_are_replaced(url: str) -> None:
    (found,) = append_and_read(
        url, turn(question="a\0b \ud83d", answer="🚚 \udfff\0", api_name="\0")
    )
    assert (found.question, found.answer, found.api_name) == ("a�b �", "🚚 ��", "�")


def test_turn_stored_after_the_clock_was_set_back_is_kept(url: str) -> None:
    turns = [turn(n) for n in (5, 6, 2)]
    assert append_and_read(url, *turns, history_turns=2) == tuple(turns[1:])


def test_unknown_session_is_empty(url: str) -> None:
    assert append_and_read(url) == ()


# --- limits


def test_only_latest_turns_are_stored(url: str) -> None:
    assert append_and_read(url, *(turn(n) for n in range(7)), history_turns=3) == tuple(
        turn(n) for n in (4, 5, 6)
    )
    assert count_turns(url) == 3


def test_lowered_limit_applies_to_stored_turns(url: str) -> None:
    turns = [turn(n, answer="a" * 1_500) for n in range(4)]
    append_and_read(url, *turns)
    assert append_and_read(url, history_turns=2) == tuple(turns[2:])
    assert append_and_read(url, history_chars=3_100) == tuple(turns[2:])
    (cut,) = append_and_read(url, history_chars=1_000)
    assert (cut.question, len(cut.question + cut.answer)) == (turns[3].question, 1_000)


def test_limit_of_zero_stores_nothing(url: str) -> None:
    assert append_and_read(url, turn(), history_turns=0) == ()
    assert count_turns(url) == 0


def test_oldest_turns_are_deleted_beyond_character_limit(url: str) -> None:
    turns = [turn(n, question="q", answer="答" * 399) for n in range(4)]
    assert append_and_read(url, *turns, history_chars=1_000) == tuple(turns[2:])
    assert count_turns(url) == 2


@pytest.mark.parametrize(
    ("question", "answer"), [(10, 5_000), (5_000, 10), (5_000, 5_000), (400, 600)]
)
def test_long_turn_is_truncated(url: str, question: int, answer: int) -> None:
    long_turn = turn(1, question="问" * question, answer="答" * answer, api_url="/" * 50)
    found = append_and_read(url, long_turn, history_chars=1_000)[-1]
    assert len(found.question + found.answer + (found.api_url or "")) <= 1_000
    assert found.answer.startswith("答" * 10)
    assert found.question.startswith("问" * 10)
    assert (len(found.question) == question) or found.question.endswith("…")
    assert (len(found.answer) == answer) or found.answer.endswith("…")


def test_long_api_name_is_dropped(url: str) -> None:
    (found,) = append_and_read(url, turn(api_name="n" * MAX_NAME_CHARS, api_url="u" * 100_000))
    assert (found.api_name, found.api_url) == ("n" * MAX_NAME_CHARS, None)


def test_expired_turns_are_not_read_and_then_deleted(url: str) -> None:
    old = turn(0, asked_at=NOW - timedelta(days=8))
    young = turn(1, asked_at=NOW - timedelta(days=6))
    append_and_read(url, old, young)
    assert append_and_read(url, history_days=7) == (young,)
    assert count_turns(url) == 2
    assert append_and_read(url, turn(2), history_days=7) == (young, turn(2))
    assert count_turns(url) == 2


def test_expired_turns_of_all_owners_are_deleted(url: str) -> None:
    async def leave(store: SessionStore) -> None:
        for owner in ("a", "b"):
            await store.append(owner, "left", turn(asked_at=NOW - timedelta(days=20)))
            await store.append(owner, "left", turn(asked_at=NOW))

    with_store(url, leave)
    assert count_turns(url) == 4
    append_and_read(url, turn(), history_days=7)
    assert count_turns(url) == 3


# --- owners


def test_owners_cannot_access_each_others_sessions(url: str) -> None:
    owners = ["", "key-a", "key-A", "key-a ", "' OR 1=1 --", "%"]

    async def use(store: SessionStore) -> None:
        for number, owner in enumerate(owners):
            assert await store.read(owner, "s") == ()
            assert not await store.delete(owner, "s")
            await store.append(owner, "s", turn(number))
        for number, owner in enumerate(owners):
            assert await store.read(owner, "s") == (turn(number),)
        assert await store.delete("key-a", "s")
        for number, owner in enumerate(owners):
            expected = () if owner == "key-a" else (turn(number),)
            assert await store.read(owner, "s") == expected

    with_store(url, use)


def test_delete_removes_exactly_one_session(url: str) -> None:
    async def use(store: SessionStore) -> None:
        for number in range(3):
            await store.append("a", "one", turn(number))
        await store.append("a", "two", turn(9))
        assert await store.delete("a", "one")
        assert not await store.delete("a", "one")
        assert await store.read("a", "one") == ()
        assert await store.read("a", "two") == (turn(9),)

    with_store(url, use)


# --- concurrency


def test_concurrent_sessions_are_not_mixed_up(url: str) -> None:
    """With two stores, as in two processes of a server."""
    names = [(f"owner-{n % 7}", f"session-{n}") for n in range(50)]

    async def talk(number: int, store: SessionStore) -> tuple[Turn, ...]:
        owner, session = names[number]
        for count in range(4):
            await store.append(owner, session, turn(count, question=f"{number}/{count}"))
        return await store.read(owner, session)

    async def use(store: SessionStore) -> list[tuple[Turn, ...]]:
        async with open_store(url, history_turns=3) as other:
            return await asyncio.gather(*(talk(n, (store, other)[n % 2]) for n in range(50)))

    found = with_store(url, use, history_turns=3)
    assert [[each.question for each in turns] for turns in found] == [
        [f"{number}/{count}" for count in (1, 2, 3)] for number in range(50)
    ]


def test_concurrent_append_delete_and_read_keep_session_consistent(url: str) -> None:
    async def use(store: SessionStore) -> tuple[Turn, ...]:
        async with open_store(url, history_turns=3) as other:
            work: list[Awaitable[Any]] = []
            for number in range(40):
                mine = (store, other)[number % 2]
                work += [mine.append("", "s", turn(number)), mine.read("", "s")]
                work += [mine.delete("", "s")] if number % 8 == 0 else []
            await asyncio.gather(*work)
        await store.append("", "s", turn(50))
        return await store.read("", "s")

    found = with_store(url, use, history_turns=3)
    assert found[-1] == turn(50)
    assert len(found) <= 3
    assert count_turns(url) <= 3


def test_reader_does_not_block_append(tmp_path: Path) -> None:
    async def use(store: SessionStore) -> None:
        await store.append("", "s", turn(1))
        with closing(sqlite3.connect(tmp_path / "x.db")) as reader:
            rows = reader.execute("SELECT id FROM turns")
            await store.append("", "s", turn(2))
            assert len(rows.fetchall()) == 1

    with_store(f"sqlite:///{tmp_path / 'x.db'}?timeout=0.1", use)


def test_locked_rows_are_skipped_when_pruning(postgres: Postgres) -> None:
    url = postgres.empty_database()

    async def use(store: SessionStore) -> None:
        await store.append("", "s", turn(1))
        with psycopg.connect(url) as other:
            other.execute("DELETE FROM turns")
            await asyncio.wait_for(store.append("", "s", turn(2)), timeout=30)
        assert await store.read("", "s") == (turn(2),)

    with_store(url, use, history_turns=1)


def test_empty_database_can_be_opened_concurrently(url: str) -> None:
    def open_and_close(_: int) -> None:
        open_engine(make_settings(url)).dispose()

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(open_and_close, range(24)))


def test_threads_share_in_memory_database() -> None:
    async def use(store: SessionStore) -> tuple[Turn, ...]:
        await asyncio.gather(*(store.append("", "s", turn(n)) for n in range(10)))
        return await store.read("", "s")

    turns = with_store("sqlite://", use)
    assert sorted(turns, key=lambda each: each.asked_at) == [turn(n) for n in range(10)]


# --- ingestion runs


def make_run(number: int) -> IngestionRun:
    return IngestionRun(
        id=f"{number:032}",
        trigger="command",
        options=IngestionOptions(),
        state="running",
        started_at=NOW + timedelta(seconds=number),
        host="here",
        pid=1,
    )


def test_runs_are_saved_updated_and_listed(url: str) -> None:
    saved = [make_run(number) for number in range(3)]
    with closing(IngestionRunStore.open(make_settings(url))) as runs:
        for run in saved:
            runs.save(run)
        saved[1].state = "succeeded"
        runs.save(saved[1])
    with closing(IngestionRunStore.open(make_settings(url))) as runs, runs.exclusive_run():
        assert runs.latest() == saved[::-1]
        assert runs.latest(1) == saved[2:]
        assert runs.get(saved[1].id) == saved[1]
        assert runs.get("nobody") is None
        runs.fail_orphaned_runs()
        assert [run.state for run in runs.latest()] == ["failed", "succeeded", "failed"]


# --- invalid and unavailable databases


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("nonsense", ConfigurationError, "not a database URL"),
        ("postgresql://u:secret@host:port/x", ConfigurationError, "not a database URL"),
        ("sqlite:////proc/nowhere/x.db", ConfigurationError, "/proc/nowhere"),
        ("oracle+none://x", ConfigurationError, "only sqlite:// and postgresql://"),
        ("mysql://x/y", ConfigurationError, "only sqlite:// and postgresql://"),
        ("postgresql://u:p@secret@127.0.0.1:1/x", ConfigurationError, "password as %40"),
        ("sqlite:///x.db?timeout=long", ConfigurationError, "could not convert"),
        (
            "sqlite:////proc",
            StoreUnavailable,
            "it cannot be opened: check its path",
        ),
        ("postgresql://u:secret@127.0.0.1:1/x", StoreUnavailable, "connection"),
        ("postgres://u:secret@127.0.0.1:1/x", StoreUnavailable, "connection"),
        ("postgresql://u:secret@/x?host=/nowhere", StoreUnavailable, "connection"),
        ("postgresql://u:secret@127.0.0.1:1/x?connect_timeout=no", StoreUnavailable, "timeout"),
        ("postgresql://u:secret@..host/x", StoreUnavailable, ""),
    ],
)
def test_open_error_names_the_setting_without_the_password(
    url: str, error: type[ApideskError], message: str
) -> None:
    with pytest.raises(error, match="APIDESK_DATABASE_URL") as raised:
        open_engine(make_settings(url))
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("url", ["postgresql://x/y", "postgresql+psycopg://x/y"])
def test_missing_driver_names_the_package(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError) as raised:
        open_engine(make_settings(url))
    assert (
        str(raised.value)
        == "APIDESK_DATABASE_URL: PostgreSQL needs a package: pip install 'apidesk[postgres]'"
    )


async def assert_unavailable(store: SessionStore) -> None:
    """Every method raises an error that tells nothing about the database."""
    for attempt in (
        store.read("", "s"),
        store.append("", "s", turn()),
        store.delete("", "s"),
    ):
        with pytest.raises(StoreUnavailable) as raised:
            await attempt
        assert str(raised.value) == "the database cannot be used at the moment: try again later"


def test_slow_database_delays_a_question_by_at_most_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.service.session_store.DATABASE_TIMEOUT_S", 0.05)
    is_over = threading.Event()

    def wait(*_: object) -> tuple[Turn, ...]:
        is_over.wait(60)
        return ()

    async def use(store: SessionStore) -> None:
        monkeypatch.setattr(store, "_read", wait)
        try:
            with pytest.raises(StoreUnavailable, match="did not answer in time"):
                await store.read("", "s")
        finally:
            is_over.set()

    with_store(f"sqlite:///{tmp_path / 'x.db'}", use)


def test_missing_table_makes_store_unavailable(tmp_path: Path) -> None:
    async def use(store: SessionStore) -> None:
        await store.append("", "s", turn())
        with closing(sqlite3.connect(tmp_path / "x.db")) as database:
            database.execute("DROP TABLE turns")
        await assert_unavailable(store)

    with_store(f"sqlite:///{tmp_path / 'x.db'}", use)


def test_store_recovers_after_database_outage(postgres: Postgres) -> None:
    url = postgres.new_database()

    async def use(store: SessionStore) -> None:
        await store.append("", "s", turn(1))
        postgres.end_connections(url)
        await store.append("", "s", turn(2))
        postgres.allow_connections(url, False)
        await assert_unavailable(store)
        postgres.allow_connections(url, True)
        assert await store.read("", "s") == (turn(1), turn(2))

    with_store(url, use)


# --- over HTTP


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient[Litestar]]:
    """The route alone, with one session of the anonymous owner and one of another owner."""
    url = f"sqlite:///{tmp_path / 'apidesk.db'}"

    async def prepare(store: SessionStore) -> None:
        await store.append("", "a.b_C-1", turn())
        await store.append("another-owner", "foreign", turn())

    with_store(url, prepare)
    problems: dict[Any, Any] = {ApideskError: apidesk_problem, HTTPException: http_problem}
    settings = make_settings(url)
    with closing(SessionStore(open_engine(settings), settings)) as store:
        app = Litestar(
            [delete_session],
            logging_config=None,
            dependencies={
                "session_store": Provide(lambda: store, sync_to_thread=False),
                "caller": Provide(lambda: anonymous("here"), sync_to_thread=False),
            },
            plugins=[
                ProblemDetailsPlugin(ProblemDetailsConfig(exception_to_problem_detail_map=problems))
            ],
        )
        with TestClient(app) as client:
            yield client


def test_deleted_session_returns_404(http: TestClient[Litestar]) -> None:
    deleted = http.delete("/sessions/a.b_C-1")
    assert (deleted.status_code, deleted.content) == (204, b"")
    again = http.delete("/sessions/a.b_C-1")
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    assert http.delete("/sessions/foreign").status_code == 404


VALID_NAMES = ["a", "0", "a.b", ".a", "-", "_", "A" * 64]
INVALID_NAMES = ["", "a" * 65, "a b", "中", "a\n", "\n", "a\0", "..", "."]


@pytest.mark.parametrize("name", ["a" * 65, "a%20b", "%E4%B8%AD", "a%0A", "%00", "%FF", "%2E%2E"])
def test_invalid_session_name_returns_400(http: TestClient[Litestar], name: str) -> None:
    response = http.delete(f"/sessions/{name}")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")
    assert response.json()["detail"] == (
        "session: must consist of 1 to 64 characters from A-Z, a-z, 0-9, '.', '_' and '-', not all of them dots"
    )


class Body(BaseModel):
    session: SessionId


@pytest.mark.parametrize("name", VALID_NAMES)
def test_valid_session_names(name: str) -> None:
    assert Body(session=name).session == name


@pytest.mark.parametrize("name", INVALID_NAMES)
def test_invalid_session_names(name: str) -> None:
    with pytest.raises(ValidationError, match="must consist of 1 to 64"):
        Body(session=name)
