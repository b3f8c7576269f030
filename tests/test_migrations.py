"""Migrations of the database, in SQLite and in PostgreSQL."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Engine

import ingestion.database.engine
import ingestion.database.migrations
from app.main import create_app
from app.service.answer_service import connect_answer_service
from ingestion.database.engine import HEAD, open_engine
from ingestion.database.tables import metadata
from schemas.errors import ConfigurationError
from schemas.settings import read_settings
from tests.conftest import make_settings
from tests.http_client import http_client


def open_database(url: str) -> Engine:
    return open_engine(read_settings(database_url=url))


def revision(engine: Engine) -> str:
    with engine.connect() as connection:
        number: str = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return number


def test_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(ingestion.database.migrations.__file__).parent)
    )
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_migrations_create_the_declared_tables(url: str) -> None:
    engine = open_database(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    assert revision(engine) == HEAD
    engine.dispose()


def test_upgrade_keeps_rows_of_tables_without_a_revision(url: str) -> None:
    engine = open_database(url)
    with engine.begin() as connection:
        for name in inspect(engine).get_table_names():
            if name not in ("ingestion_runs", "turns"):
                connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(
            text("INSERT INTO ingestion_runs VALUES ('a', 'c', '2026-01-01 00:00:00', '{}')")
        )
    engine.dispose()
    engine = open_database(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT id FROM ingestion_runs")) == "a"
    assert revision(engine) == HEAD
    engine.dispose()


def test_database_of_a_newer_version_is_refused(url: str) -> None:
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigurationError, match="newer apidesk"):
        open_database(url)


def test_concurrent_upgrades_create_the_tables_once(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        engines = list(pool.map(open_database, [url] * 6))
    assert {revision(engine) for engine in engines} == {HEAD}
    for engine in engines:
        engine.dispose()


def test_new_file_that_another_process_is_writing_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "apidesk.db"
    other = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.rollback)
    release.start()
    engine = open_database(f"sqlite:///{file}")
    assert revision(engine) == HEAD
    engine.dispose()
    release.join()
    other.close()


def test_answer_service_and_routes_share_one_database(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Engine] = []

    def create(url: URL) -> Engine:
        opened.append(create_engine(url))
        return opened[-1]

    monkeypatch.setattr(ingestion.database.engine, "_create_engine", create)
    answer_service = connect_answer_service(make_settings(tmp_path_factory))
    with http_client(create_app(answer_service)) as client:
        assert client.get("/ingestions").json() == {"ingestions": []}
        assert client.delete("/sessions/none").status_code == 404
    answer_service.job.close()
    assert len(opened) == 1
