"""The history of sessions, and the reports of ingestions, in SQLite and in PostgreSQL alike."""

import asyncio
import sqlite3
import sys
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

from app.api.feedback import delete_session
from app.api.fields import SessionId
from app.api.problems import apidesk_problem, http_problem
from app.security.keyring import anonymous
from app.service.session_store import MAX_NAME_CHARS, SessionStore
from ingestion.runs import IngestionRunStore
from schemas.errors import ApideskError, ConfigurationError, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.question import Turn
from schemas.settings import Settings, read_settings
from tests.postgres import Postgres

T = TypeVar("T")

NOW = datetime.now(UTC)


def settings_of(url: str, **overrides: int) -> Settings:
    return read_settings(database_url=url, **overrides)


@asynccontextmanager
async def opened(url: str, **overrides: int) -> AsyncIterator[SessionStore]:
    history = await asyncio.to_thread(SessionStore.open, settings_of(url, **overrides))
    try:
        yield history
    finally:
        await asyncio.to_thread(history.close)


def with_history(url: str, use: Callable[[SessionStore], Awaitable[T]], **overrides: int) -> T:
    """What `use` makes of a history that is open for it alone."""

    async def run() -> T:
        async with opened(url, **overrides) as history:
            return await use(history)

    return asyncio.run(run())


def turn(number: int = 0, **fields: Any) -> Turn:
    asked = {"question": f"问题 {number}?", "answer": f"第一步 {number} [1]\n第二步 [2]"}
    return Turn(**({**asked, "asked_at": NOW + timedelta(seconds=number)} | fields))


def remembered(url: str, *turns: Turn, **overrides: int) -> tuple[Turn, ...]:
    """What is read of a session in which these were appended."""

    async def use(history: SessionStore) -> tuple[Turn, ...]:
        for each in turns:
            await history.append("", "s", each)
        return await history.read("", "s")

    return with_history(url, use, **overrides)


def rows(url: str) -> int:
    """How many rows the table has, whoever's."""
    runs = IngestionRunStore.open(settings_of(url))
    with closing(runs), runs._engine.connect() as connection:
        count: int = connection.exec_driver_sql("SELECT count(*) FROM turns").scalar_one()
    return count


# --- what is kept


def test_what_was_said_is_read_after_a_restart_oldest_first(url: str) -> None:
    turns = [turn(n, api_name="订单发货", api_url="/order/ship") for n in (2, 1, 3)]
    assert remembered(url, *turns) == tuple(sorted(turns, key=lambda each: each.asked_at))
    assert remembered(url) == remembered(url)
    assert len(remembered(url)) == 3


def test_turns_of_the_same_moment_stay_in_their_order(url: str) -> None:
    turns = tuple(turn(n, asked_at=NOW) for n in range(8))
    assert remembered(url, *turns) == turns


@pytest.mark.parametrize("hours", [-11, 0, 8])
def test_a_moment_keeps_its_instant_and_has_a_zone(url: str, hours: int) -> None:
    asked_at = NOW.astimezone(timezone(timedelta(hours=hours)))
    (found,) = remembered(url, turn(asked_at=asked_at))
    assert found.asked_at == asked_at
    assert found.asked_at.utcoffset() is not None


def test_what_a_database_cannot_hold_is_replaced(url: str) -> None:
    (found,) = remembered(url, turn(question="a\0b \ud83d", answer="🚚 \udfff\0", api_name="\0"))
    assert (found.question, found.answer, found.api_name) == ("a�b �", "🚚 ��", "�")


def test_an_unknown_session_is_empty(url: str) -> None:
    assert remembered(url) == ()


# --- its bounds


def test_only_the_latest_turns_stay(url: str) -> None:
    assert remembered(url, *(turn(n) for n in range(7)), history_turns=3) == tuple(
        turn(n) for n in (4, 5, 6)
    )
    assert rows(url) == 3


def test_a_bound_that_was_lowered_counts_at_once(url: str) -> None:
    turns = [turn(n, answer="a" * 1_500) for n in range(4)]
    remembered(url, *turns)
    assert remembered(url, history_turns=2) == tuple(turns[2:])
    assert remembered(url, history_chars=3_100) == tuple(turns[2:])
    (cut,) = remembered(url, history_chars=1_000)
    assert (cut.question, len(cut.question + cut.answer)) == (turns[3].question, 1_000)


def test_no_history_is_kept_where_none_is_wanted(url: str) -> None:
    assert remembered(url, turn(), history_turns=0) == ()
    assert rows(url) == 0


def test_the_oldest_goes_when_it_is_too_much_text(url: str) -> None:
    turns = [turn(n, question="q", answer="答" * 399) for n in range(4)]
    assert remembered(url, *turns, history_chars=1_000) == tuple(turns[2:])
    assert rows(url) == 2


@pytest.mark.parametrize(
    ("question", "answer"), [(10, 5_000), (5_000, 10), (5_000, 5_000), (400, 600)]
)
def test_a_turn_that_is_too_long_alone_is_cut(url: str, question: int, answer: int) -> None:
    said = turn(1, question="问" * question, answer="答" * answer, api_url="/" * 50)
    found = remembered(url, said, history_chars=1_000)[-1]
    assert len(found.question + found.answer + (found.api_url or "")) <= 1_000
    assert found.answer.startswith("答" * 10)
    assert found.question.startswith("问" * 10)
    assert (len(found.question) == question) or found.question.endswith("…")
    assert (len(found.answer) == answer) or found.answer.endswith("…")


def test_a_name_that_is_a_text_is_not_kept(url: str) -> None:
    (found,) = remembered(url, turn(api_name="n" * MAX_NAME_CHARS, api_url="u" * 100_000))
    assert (found.api_name, found.api_url) == ("n" * MAX_NAME_CHARS, None)


def test_what_is_too_old_is_forgotten(url: str) -> None:
    old = turn(0, asked_at=NOW - timedelta(days=8))
    young = turn(1, asked_at=NOW - timedelta(days=6))
    remembered(url, old, young)
    assert remembered(url, history_days=7) == (young,)
    assert rows(url) == 2
    assert remembered(url, turn(2), history_days=7) == (young, turn(2))
    assert rows(url) == 2


def test_anybodys_expired_turns_are_deleted_now_and_then(url: str) -> None:
    async def leave(history: SessionStore) -> None:
        for owner in ("a", "b"):
            await history.append(owner, "left", turn(asked_at=NOW - timedelta(days=20)))
            await history.append(owner, "left", turn(asked_at=NOW))

    with_history(url, leave)
    assert rows(url) == 4
    remembered(url, turn(), history_days=7)
    assert rows(url) == 3


# --- whose it is


def test_an_owner_sees_appends_to_and_deletes_only_their_own(url: str) -> None:
    owners = ["", "key-a", "key-A", "key-a ", "' OR 1=1 --", "%"]

    async def use(history: SessionStore) -> None:
        for number, owner in enumerate(owners):
            assert await history.read(owner, "s") == ()
            assert not await history.delete(owner, "s")
            await history.append(owner, "s", turn(number))
        for number, owner in enumerate(owners):
            assert await history.read(owner, "s") == (turn(number),)
        assert await history.delete("key-a", "s")
        for number, owner in enumerate(owners):
            expected = () if owner == "key-a" else (turn(number),)
            assert await history.read(owner, "s") == expected

    with_history(url, use)


def test_deleting_takes_one_session_whole(url: str) -> None:
    async def use(history: SessionStore) -> None:
        for number in range(3):
            await history.append("a", "one", turn(number))
        await history.append("a", "two", turn(9))
        assert await history.delete("a", "one")
        assert not await history.delete("a", "one")
        assert await history.read("a", "one") == ()
        assert await history.read("a", "two") == (turn(9),)

    with_history(url, use)


# --- many at once


def test_fifty_sessions_at_once_mix_nothing_up(url: str) -> None:
    """Through two histories, as two processes of a service would."""
    names = [(f"owner-{n % 7}", f"session-{n}") for n in range(50)]

    async def talk(number: int, history: SessionStore) -> tuple[Turn, ...]:
        owner, session = names[number]
        for count in range(4):
            await history.append(owner, session, turn(count, question=f"{number}/{count}"))
        return await history.read(owner, session)

    async def use(history: SessionStore) -> list[tuple[Turn, ...]]:
        async with opened(url, history_turns=3) as other:
            return await asyncio.gather(*(talk(n, (history, other)[n % 2]) for n in range(50)))

    found = with_history(url, use, history_turns=3)
    assert [[each.question for each in turns] for turns in found] == [
        [f"{number}/{count}" for count in (1, 2, 3)] for number in range(50)
    ]


def test_a_session_appended_to_deleted_and_read_at_once_stays_whole(url: str) -> None:
    async def use(history: SessionStore) -> tuple[Turn, ...]:
        async with opened(url, history_turns=3) as other:
            work: list[Awaitable[Any]] = []
            for number in range(40):
                mine = (history, other)[number % 2]
                work += [mine.append("", "s", turn(number)), mine.read("", "s")]
                work += [mine.delete("", "s")] if number % 8 == 0 else []
            await asyncio.gather(*work)
        await history.append("", "s", turn(50))
        return await history.read("", "s")

    found = with_history(url, use, history_turns=3)
    assert found[-1] == turn(50)
    assert len(found) <= 3
    assert rows(url) <= 3


def test_who_reads_the_file_keeps_nobody_from_appending(tmp_path: Path) -> None:
    async def use(history: SessionStore) -> None:
        await history.append("", "s", turn(1))
        with closing(sqlite3.connect(tmp_path / "x.db")) as reader:
            rows = reader.execute("SELECT id FROM turns")
            await history.append("", "s", turn(2))
            assert len(rows.fetchall()) == 1

    with_history(f"sqlite:///{tmp_path / 'x.db'}?timeout=0.1", use)


def test_a_row_that_somebody_else_deletes_is_left_to_them(postgres: Postgres) -> None:
    url = postgres.emptied()

    async def use(history: SessionStore) -> None:
        await history.append("", "s", turn(1))
        with psycopg.connect(url) as other:
            other.execute("DELETE FROM turns")
            await asyncio.wait_for(history.append("", "s", turn(2)), timeout=30)
        assert await history.read("", "s") == (turn(2),)

    with_history(url, use, history_turns=1)


def test_many_open_an_empty_database_at_once(url: str) -> None:
    def open_and_close(number: int) -> None:
        (IngestionRunStore, SessionStore)[number % 2].open(settings_of(url)).close()

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(open_and_close, range(24)))


def test_threads_share_a_database_in_memory() -> None:
    async def use(history: SessionStore) -> tuple[Turn, ...]:
        await asyncio.gather(*(history.append("", "s", turn(n)) for n in range(10)))
        return await history.read("", "s")

    assert with_history("sqlite://", use) == tuple(turn(n) for n in range(10))


# --- the reports of ingestions


def run_of(number: int) -> IngestionRun:
    return IngestionRun(
        id=f"{number:032}",
        trigger="command",
        options=IngestionOptions(),
        state="running",
        started_at=NOW + timedelta(seconds=number),
        host="here",
        pid=1,
    )


def test_reports_are_kept_listed_and_written_over(url: str) -> None:
    saved = [run_of(number) for number in range(3)]
    with closing(IngestionRunStore.open(settings_of(url))) as runs:
        for run in saved:
            runs.save(run)
        saved[1].state = "succeeded"
        runs.save(saved[1])
    with closing(IngestionRunStore.open(settings_of(url))) as runs:
        assert runs.latest() == saved[::-1]
        assert runs.latest(1) == saved[2:]
        assert runs.get(saved[1].id) == saved[1]
        assert runs.get("nobody") is None
        runs.fail_orphaned_runs()
        assert [run.state for run in runs.latest()] == ["failed", "succeeded", "failed"]


# --- databases that are none, or go away


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("nonsense", ConfigurationError, "is not a database url"),
        ("postgresql://u:secret@host:port/x", ConfigurationError, "is not a database url"),
        ("sqlite:////proc/nowhere/x.db", ConfigurationError, "/proc/nowhere"),
        ("oracle+none://x", ConfigurationError, "oracle"),
        ("sqlite:///x.db?timeout=long", ConfigurationError, "could not convert"),
        ("sqlite:////proc", StoreUnavailable, "unable to open"),
        ("postgresql://u:secret@127.0.0.1:1/x", StoreUnavailable, "connection"),
        ("postgres://u:secret@127.0.0.1:1/x", StoreUnavailable, "connection"),
        ("postgresql://u:secret@/x?host=/nowhere", StoreUnavailable, "connection"),
        ("postgresql://u:secret@127.0.0.1:1/x?connect_timeout=no", StoreUnavailable, "timeout"),
        ("postgresql://u:secret@..host/x", StoreUnavailable, ""),
    ],
)
def test_a_database_that_cannot_be_opened_is_named(
    url: str, error: type[ApideskError], says: str
) -> None:
    with pytest.raises(error, match="APIDESK_DATABASE_URL") as raised:
        SessionStore.open(settings_of(url))
    assert says in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("url", ["postgresql://x/y", "postgresql+psycopg://x/y"])
def test_a_missing_driver_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError) as raised:
        SessionStore.open(settings_of(url))
    assert (
        str(raised.value)
        == "APIDESK_DATABASE_URL: needs a package: pip install 'apidesk[postgres]'"
    )


async def refused(history: SessionStore) -> None:
    """Nothing can be done with `history`, and nothing of the database is said."""
    for attempt in (
        history.read("", "s"),
        history.append("", "s", turn()),
        history.delete("", "s"),
    ):
        with pytest.raises(StoreUnavailable) as raised:
            await attempt
        assert str(raised.value) == "the database does not answer: see APIDESK_DATABASE_URL"


def test_a_file_whose_tables_go_away(tmp_path: Path) -> None:
    async def use(history: SessionStore) -> None:
        await history.append("", "s", turn())
        with closing(sqlite3.connect(tmp_path / "x.db")) as database:
            database.execute("DROP TABLE turns")
        await refused(history)

    with_history(f"sqlite:///{tmp_path / 'x.db'}", use)


def test_a_server_that_goes_away_and_comes_back(postgres: Postgres) -> None:
    url = postgres.new_database()

    async def use(history: SessionStore) -> None:
        await history.append("", "s", turn(1))
        postgres.throw_out(url)
        await history.append("", "s", turn(2))
        postgres.let_in(url, False)
        await refused(history)
        postgres.let_in(url, True)
        assert await history.read("", "s") == (turn(1), turn(2))

    with_history(url, use)


# --- over HTTP


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient[Litestar]]:
    """The route alone, over a history with one session of nobody's and one of somebody's."""
    url = f"sqlite:///{tmp_path / 'apidesk.db'}"

    async def prepare(history: SessionStore) -> None:
        await history.append("", "a.b_C-1", turn())
        await history.append("somebody", "theirs", turn())

    with_history(url, prepare)
    problems: dict[Any, Any] = {ApideskError: apidesk_problem, HTTPException: http_problem}
    with closing(SessionStore.open(settings_of(url))) as history:
        app = Litestar(
            [delete_session],
            logging_config=None,
            dependencies={
                "history": Provide(lambda: history, sync_to_thread=False),
                "caller": Provide(lambda: anonymous("here"), sync_to_thread=False),
            },
            plugins=[
                ProblemDetailsPlugin(ProblemDetailsConfig(exception_to_problem_detail_map=problems))
            ],
        )
        with TestClient(app) as client:
            yield client


def test_a_session_is_deleted_once(http: TestClient[Litestar]) -> None:
    deleted = http.delete("/sessions/a.b_C-1")
    assert (deleted.status_code, deleted.content) == (204, b"")
    again = http.delete("/sessions/a.b_C-1")
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    assert http.delete("/sessions/theirs").status_code == 404


NAMES = ["a", "0", "a.b", ".a", "-", "_", "A" * 64]
NO_NAMES = ["", "a" * 65, "a b", "中", "a\n", "\n", "a\0", "..", "."]


@pytest.mark.parametrize("name", ["a" * 65, "a%20b", "%E4%B8%AD", "a%0A", "%00", "%FF", "%2E%2E"])
def test_a_name_that_no_session_has_is_a_problem(http: TestClient[Litestar], name: str) -> None:
    response = http.delete(f"/sessions/{name}")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")
    assert response.json()["detail"] == (
        "session: is not 1 to 64 of the characters A-Z a-z 0-9 . _ - (dots alone are invalid)"
    )


class Body(BaseModel):
    session: SessionId


@pytest.mark.parametrize("name", NAMES)
def test_what_a_session_may_be_called(name: str) -> None:
    assert Body(session=name).session == name


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_a_session_may_not_be_called(name: str) -> None:
    with pytest.raises(ValidationError, match="is not 1 to 64"):
        Body(session=name)
