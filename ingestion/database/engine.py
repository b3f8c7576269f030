"""Upgrades the tables of the database with Alembic.

To change a table, add a file to `versions/` and set `HEAD` to its revision. Tests compare the result
with `ingestion.database.tables`. `open_engine` upgrades every database that it opens.
The database of APIDESK_DATABASE_URL: opening its engine, and its errors as ours.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from schemas.errors import ConfigurationError, StoreUnavailable
from schemas.settings import Settings

HEAD = "0004"
"""The newest revision. Alembic is only imported for a database with another one."""

LOCK_KEY = 7_242_017
"""Key of PostgreSQL's advisory lock during an upgrade."""


def upgrade_database(engine: Engine) -> None:
    """Upgrade the tables to `HEAD`. It blocks.

    Raises ConfigurationError if a newer apidesk has changed the database, SQLAlchemyError.
    """
    if _revision(engine) == HEAD:
        return
    with _exclusive_transaction(engine) as connection:
        _upgrade(connection)


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        try:
            revision: str | None = connection.scalar(
                text("SELECT version_num FROM alembic_version")
            )
        except DBAPIError:  # the table does not exist yet
            return None
        return revision


@contextmanager
def _exclusive_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that waits for the upgrades of processes started at the same time."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})
        yield connection
        connection.commit()


def _upgrade(connection: Connection) -> None:
    # Imported here: the import is slow and rarely needed.
    from alembic.command import upgrade
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
    )
    config.attributes["connection"] = connection
    try:
        upgrade(config, HEAD)
    except CommandError as error:
        raise ConfigurationError(
            f"APIDESK_DATABASE_URL: the database was changed by a newer apidesk ({error})"
        ) from None


SETTING = "APIDESK_DATABASE_URL"

PSYCOPG = "postgresql+psycopg"

TIMEOUT_OPTIONS = {"sqlite": {"timeout": "15"}, PSYCOPG: {"connect_timeout": "10"}}
"""Default timeouts in seconds, by driver: for SQLite's write lock, and for connecting to a server."""

log = logging.getLogger(__name__)


def open_engine(settings: Settings) -> Engine:
    """Open the database in `settings` and upgrade its tables. It blocks.

    Raises ConfigurationError for an invalid url, a missing driver, or a database that a newer apidesk
    has changed; StoreUnavailable if the database does not answer.
    """
    engine = _create_engine(_parse_url(settings.database_url))
    try:
        if engine.dialect.name == "sqlite":
            _enable_wal(engine)
        upgrade_database(engine)
    except ConfigurationError:
        engine.dispose()
        raise
    except (SQLAlchemyError, ValueError) as error:
        engine.dispose()
        raise StoreUnavailable(
            f"the database cannot be used: see {SETTING} ({_first_line(error)})"
        ) from error
    return engine


@contextmanager
def database_errors() -> Iterator[None]:
    """Raise SQLAlchemy's errors as StoreUnavailable. The reason is logged: it may contain host names."""
    try:
        yield
    except SQLAlchemyError as error:
        log.warning("the database failed: %s", _first_line(error))
        raise StoreUnavailable(f"the database does not answer: see {SETTING}") from error


def _parse_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # its message would show a part of the url
        raise ConfigurationError(f"{SETTING}: is not a database url") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername=PSYCOPG)
    return url.update_query_dict(TIMEOUT_OPTIONS.get(url.drivername, {}) | dict(url.query))


def _create_engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() != "sqlite":
            return create_engine(url, pool_pre_ping=True)
        if url.database in (None, "", ":memory:"):
            return _create_in_memory_engine(url)
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        return create_engine(url, pool_pre_ping=True)
    except ImportError as error:
        install = "needs a package: pip install 'apidesk[postgres]'"
        reason = install if url.drivername == PSYCOPG else _first_line(error)
        raise ConfigurationError(f"{SETTING}: {reason}") from None
    except (ArgumentError, OSError, ValueError) as error:
        raise ConfigurationError(f"{SETTING}: {_first_line(error)}") from None


def _create_in_memory_engine(url: URL) -> Engine:
    """Return an engine with one connection for all threads: each connection is its own database."""
    return create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )


def _enable_wal(engine: Engine) -> None:
    """Let reads continue during a write. SQLite stores this mode in the file."""
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
