"""Upgrades the tables of the database with Alembic.

To change a table, add a file to `versions/` and set `HEAD` to its revision. Tests compare the result
with `ingestion.database.tables`. `open_engine` upgrades every database that it opens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from schemas.errors import ConfigurationError

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
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        upgrade(config, HEAD)
    except CommandError as error:
        raise ConfigurationError(
            f"APIDESK_DATABASE_URL: the database was changed by a newer apidesk ({error})"
        ) from None
