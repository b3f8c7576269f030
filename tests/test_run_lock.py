"""The ingestion lock that machines share through PostgreSQL."""

from datetime import UTC, datetime

import pytest

from ingestion.runs import IngestionRunStore
from schemas.errors import IngestionRunning
from schemas.ingestion import IngestionRun
from schemas.settings import read_settings
from tests.postgres import Postgres


def open_store(url: str, collection: str = "docs") -> IngestionRunStore:
    return IngestionRunStore.open(read_settings(database_url=url, collection=collection))


def run(host: str) -> IngestionRun:
    return IngestionRun(
        id="1", trigger="schedule", started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        host=host, pid=42,
    )  # fmt: skip


@pytest.mark.acceptance
def test_one_run_at_a_time_on_all_machines(postgres: Postgres) -> None:
    url = postgres.new_database()
    first, second = open_store(url), open_store(url)
    with first.exclusive_run():
        first.save(run("machine-a"))
        held = r"process 42 on machine-a, .* 03:04:05 UTC"
        with pytest.raises(IngestionRunning, match=held), second.exclusive_run():
            pass
        with open_store(url, "other").exclusive_run():
            pass
    with second.exclusive_run():
        pass


@pytest.mark.acceptance
def test_run_is_failed_once_its_process_has_lost_the_lock(postgres: Postgres) -> None:
    url = postgres.new_database()
    first, second = open_store(url), open_store(url)
    with first.exclusive_run():
        first.save(run("machine-a"))
        assert [each.state for each in second.latest()] == ["running"]
    assert [each.state for each in second.latest()] == ["failed"]
    with open_store(url, "other").exclusive_run():
        assert [each.state for each in second.latest()] == ["failed"]


def test_lock_ends_with_its_connection(postgres: Postgres) -> None:
    url = postgres.new_database()
    first, second = open_store(url), open_store(url)
    with first.exclusive_run():
        postgres.end_connections(url)
        with second.exclusive_run():
            pass


def test_sqlite_needs_no_lock_in_the_database() -> None:
    store = open_store("sqlite://")
    with store.exclusive_run(), store.exclusive_run():
        pass
