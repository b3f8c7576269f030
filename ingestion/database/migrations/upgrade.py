"""The tables of the database, version after version, by Alembic.

A change of a table is a new file in `versions/`, made by hand, and its name in `HEAD`; tests compare
what the files make with what the code expects. `bring_up_to_date` is called by whoever opens the
database, so nobody has to think of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from schemas.errors import ConfigurationError

HEAD = "0004"
"""The newest version; Alembic is only loaded for a database that has another."""

LOCK = 7_242_017
"""PostgreSQL's advisory locks are numbers; this one is ours."""


def bring_up_to_date(engine: Engine) -> None:
    """Make the tables what this version of apidesk expects. It blocks.

    Raises ConfigurationError for a database that a newer version has changed, SQLAlchemyError.
    """
    if _version(engine) == HEAD:
        return
    with _alone(engine) as connection:
        _upgrade(connection)


def _version(engine: Engine) -> str | None:
    with engine.connect() as connection:
        try:
            found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        except DBAPIError:  # nobody has made it yet
            return None
        return found


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction that waits for everybody else's upgrade: processes start at the same time."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        yield connection
        connection.commit()


def _upgrade(connection: Connection) -> None:
    # Imported here: it takes as long as all the rest of the database, and is needed once.
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
