"""Opens the database at APIDESK_DATABASE_URL and upgrades its tables with Alembic.

To change a table, change it in `ingestion.database.tables`, add a migration to `migrations/versions/`, and
set `HEAD` to the revision of the migration. A test checks that the migrations create exactly the
tables of `ingestion.database.tables`. `open_engine` upgrades every database that it opens.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from ingestion.database.sqlite_errors import sqlite_problem
from schemas.errors import ConfigurationError, StoreUnavailable
from schemas.settings import Settings

HEAD = "0004"
"""The newest revision. Alembic is imported only if the database has another revision."""

LOCK_KEY = 7_242_017
"""Key of the PostgreSQL advisory lock that is held during an upgrade."""

DATABASE_SETTING = "APIDESK_DATABASE_URL"

PSYCOPG = "postgresql+psycopg"

TIMEOUT_OPTIONS = {"sqlite": {"timeout": "15"}, PSYCOPG: {"connect_timeout": "10"}}
"""Default timeouts in seconds, by driver: for SQLite's write lock, and for connecting to PostgreSQL."""

LIVENESS_OPTIONS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Default options that close a PostgreSQL connection soon after the server's machine becomes unreachable.

Without these options, a thread waits for a reply for 15 minutes or more. `keepalives_idle` and
`keepalives_interval` are in seconds, `tcp_user_timeout` is in milliseconds. The options are not added to
the URL, because the name of the outbox folder is a hash of the URL (`app/service/record_writer.py`).
"""

WAL_TIMEOUT_S = 5.0
"""Seconds for which switching to write-ahead logging is retried."""

WAL_RETRY_S = 0.05

log = logging.getLogger(__name__)


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        try:
            revision: str | None = connection.scalar(
                text("SELECT version_num FROM alembic_version")
            )
        except DBAPIError:  # most likely, no such table; any other error recurs in the upgrade
            return None
        return revision


@contextmanager
def _exclusive_transaction(engine: Engine) -> Iterator[Connection]:
    """Run the block in a transaction that starts after the upgrades of other processes have ended."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})
        yield connection
        connection.commit()


def _upgrade(connection: Connection) -> None:
    """Upgrade the tables to `HEAD`. Raises ConfigurationError if a newer apidesk changed the database."""
    # Imported here: the import is slow and rarely needed.
    from alembic.command import upgrade
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    # In an option of Alembic, `%%` stands for `%`.
    config.set_main_option(
        "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
    )
    config.attributes["connection"] = connection
    try:
        upgrade(config, HEAD)
    except CommandError as error:
        raise ConfigurationError(
            f"{DATABASE_SETTING}: the database was changed by a newer apidesk ({error}): "
            "upgrade apidesk or use another database"
        ) from None


def open_engine(settings: Settings) -> Engine:
    """Open the database in `settings` and upgrade its tables. This function blocks.

    Raises ConfigurationError for an invalid URL, for a missing driver, for a folder that cannot be created,
    and for a database that a newer apidesk has changed. Raises StoreUnavailable if the database cannot be
    used.
    """
    engine = _create_engine(_parse_url(settings.database_url))
    try:
        if engine.dialect.name == "sqlite":
            _enable_wal(engine)
        if _revision(engine) != HEAD:
            with _exclusive_transaction(engine) as connection:
                _upgrade(connection)
    except ConfigurationError:
        engine.dispose()
        raise
    except (SQLAlchemyError, ValueError) as error:
        engine.dispose()
        problem = _wrapped_sqlite_problem(error) or _first_line(error)
        raise StoreUnavailable(
            f"the database cannot be used ({problem}): see {DATABASE_SETTING}"
        ) from error
    return engine


@contextmanager
def database_errors() -> Iterator[None]:
    """Convert SQLAlchemy's errors to StoreUnavailable.

    Callers of the API can read the message of StoreUnavailable. SQLAlchemy's own message may contain host
    names, so it is only logged.
    """
    try:
        yield
    except SQLAlchemyError as error:
        log.warning("the database failed: %s", _first_line(error))
        problem = _wrapped_sqlite_problem(error)
        message = (
            f"the database cannot be used ({problem}): see {DATABASE_SETTING}"
            if problem
            else "the database cannot be used at the moment: try again later"
        )
        raise StoreUnavailable(message) from error


def _parse_url(database_url: str) -> URL:
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError):  # the message of the error may contain the password
        raise ConfigurationError(
            f"{DATABASE_SETTING}: not a database URL; an example is sqlite:///apidesk.db"
        ) from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername=PSYCOPG)
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigurationError(
            f"{DATABASE_SETTING}: {url.drivername}:// is not supported, only sqlite:// and postgresql://"
        )
    if "@" in (url.host or ""):  # an unescaped @: the host contains a part of the password
        raise ConfigurationError(
            f"{DATABASE_SETTING}: more than one @; write @ in the user name or password as %40"
        )
    return url.update_query_dict(TIMEOUT_OPTIONS.get(url.drivername, {}) | dict(url.query))


def _create_engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() == "sqlite":
            if url.database in (None, "", ":memory:"):
                return _create_in_memory_engine(url)
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        is_postgresql = url.drivername == PSYCOPG
        options = {name: value for name, value in LIVENESS_OPTIONS.items() if name not in url.query}
        return create_engine(url, pool_pre_ping=True, connect_args=options if is_postgresql else {})
    except ImportError as error:
        install = "PostgreSQL needs a package: pip install 'apidesk[postgres]'"
        reason = install if url.drivername == PSYCOPG else _first_line(error)
        raise ConfigurationError(f"{DATABASE_SETTING}: {reason}") from None
    except (ArgumentError, OSError, ValueError) as error:
        raise ConfigurationError(f"{DATABASE_SETTING}: {_first_line(error)}") from None


def _create_in_memory_engine(url: URL) -> Engine:
    """Return an engine with a single connection, which all threads share.

    A second connection would open a separate, empty database.
    """
    return create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )


def _enable_wal(engine: Engine) -> None:
    """Enable the write-ahead log, so that reads continue during a write. The mode is stored in the file.

    Enabling it fails immediately if another process opens the new file at the same time. SQLite's own
    timeout does not apply here, so this function retries.
    """
    for attempt in Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(WAL_TIMEOUT_S),
        wait=wait_fixed(WAL_RETRY_S),
        reraise=True,
    ):
        with attempt, engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def _is_busy(error: BaseException) -> bool:
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)


def _wrapped_sqlite_problem(error: Exception) -> str:
    return sqlite_problem(error.orig) if isinstance(error, DBAPIError) else ""


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
