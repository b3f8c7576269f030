"""Column types that mean the same in SQLite and in PostgreSQL.
The database of APIDESK_DATABASE_URL: opening it, and its errors as ours.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import BigInteger, DateTime, Integer, TypeDecorator, create_engine
from sqlalchemy.engine import URL, Dialect, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ingestion.database.migrations.upgrade import bring_up_to_date
from schemas.errors import ConfigurationError, StoreUnavailable
from schemas.settings import Settings

BIG_ID = BigInteger().with_variant(Integer, "sqlite")
"""Numbers that a database gives its rows; SQLite does so for INTEGER alone."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with its zone; SQLite knows no zones, so there it lies in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To the database."""
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        return value and (value if value.tzinfo else value.replace(tzinfo=UTC))


SETTING = "APIDESK_DATABASE_URL"

PSYCOPG = "postgresql+psycopg"

PATIENCE = {"sqlite": {"timeout": "15"}, PSYCOPG: {"connect_timeout": "10"}}
"""Seconds to wait for another writer, or for a server, where the url does not say."""

log = logging.getLogger(__name__)


def open_engine(settings: Settings) -> Engine:
    """The database of Settings, its tables up to date. It blocks.

    Raises ConfigurationError for a url that is none or lacks its driver, and for a database that is
    newer than this program; StoreUnavailable for one that does not answer.
    """
    engine = _engine(_url(settings.database_url))
    try:
        if engine.dialect.name == "sqlite":
            _let_readers_in(engine)
        bring_up_to_date(engine)
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
    """What SQLAlchemy raises, as StoreUnavailable; the reason, which may name hosts, is logged."""
    try:
        yield
    except SQLAlchemyError as error:
        log.warning("the database failed: %s", _first_line(error))
        raise StoreUnavailable(f"the database does not answer: see {SETTING}") from error


def _url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # its words would show a part of the url
        raise ConfigurationError(f"{SETTING}: is not a database url") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername=PSYCOPG)
    return url.update_query_dict(PATIENCE.get(url.drivername, {}) | dict(url.query))


def _engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() != "sqlite":
            return create_engine(url, pool_pre_ping=True)
        if url.database in (None, "", ":memory:"):
            return _in_memory(url)
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        return create_engine(url, pool_pre_ping=True)
    except ImportError as error:
        needed = "needs a package: pip install 'apidesk[postgres]'"
        said = needed if url.drivername == PSYCOPG else _first_line(error)
        raise ConfigurationError(f"{SETTING}: {said}") from None
    except (ArgumentError, OSError, ValueError) as error:
        raise ConfigurationError(f"{SETTING}: {_first_line(error)}") from None


def _in_memory(url: URL) -> Engine:
    """One connection that threads take in turn: a second one would open another database."""
    one = {"check_same_thread": False}
    return create_engine(url, poolclass=QueuePool, pool_size=1, max_overflow=0, connect_args=one)


def _let_readers_in(engine: Engine) -> None:
    """Reading goes on while somebody writes, from now on: the file remembers it."""
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
