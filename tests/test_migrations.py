"""The tables of the database, in SQLite and in PostgreSQL alike."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, inspect, text
from sqlalchemy.engine import Engine

import ingestion.database.migrations
from app.security import api_keys as keys
from app.service import answer_cache, record_store, session_store
from ingestion import runs
from ingestion.database.engine import open_engine
from ingestion.database.migrations.upgrade import HEAD
from schemas.errors import ConfigurationError
from schemas.settings import read_settings


def expected() -> MetaData:
    """Every table that the code knows."""
    everything = MetaData()
    for metadata in (
        module.metadata for module in (answer_cache, session_store, keys, runs, record_store)
    ):
        for table in metadata.tables.values():
            table.to_metadata(everything)
    return everything


def opened(url: str) -> Engine:
    return open_engine(read_settings(database_url=url))


def version(engine: Engine) -> str:
    with engine.connect() as connection:
        found: str = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return found


def test_the_newest_version_is_the_one_that_the_code_names() -> None:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(ingestion.database.migrations.__file__).parent)
    )
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_an_empty_database_gets_the_tables_that_the_code_expects(url: str) -> None:
    engine = opened(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, expected()) == []
    assert version(engine) == HEAD
    engine.dispose()


def test_tables_made_before_there_were_versions_keep_their_rows(url: str) -> None:
    engine = opened(url)
    with engine.begin() as connection:
        for name in inspect(engine).get_table_names():
            if name not in ("ingestion_runs", "turns"):
                connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(
            text("INSERT INTO ingestion_runs VALUES ('a', 'c', '2026-01-01 00:00:00', '{}')")
        )
    engine.dispose()
    engine = opened(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT id FROM ingestion_runs")) == "a"
    assert version(engine) == HEAD
    engine.dispose()


def test_a_database_of_a_newer_version_is_left_alone(url: str) -> None:
    engine = opened(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigurationError, match="newer apidesk"):
        opened(url)


def test_processes_that_start_at_the_same_time_make_the_tables_once(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        engines = list(pool.map(opened, [url] * 6))
    assert {version(engine) for engine in engines} == {HEAD}
    for engine in engines:
        engine.dispose()
