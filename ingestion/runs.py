"""What each ingestion run did, kept in the database: it survives a restart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Column, DateTime, MetaData, String, Table, Text, create_engine, select
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from schemas.errors import ConfigurationError, StoreUnavailable
from schemas.ingestion import IngestionRun
from schemas.settings import Settings

LISTED = 50
"""How many runs are listed; older ones stay in the database."""

metadata = MetaData()

runs_table = Table(
    "ingestion_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("collection", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, index=True),
    Column("report", Text, nullable=False),
)


class Runs:
    """The runs of one collection. Every method blocks; call them in a worker thread."""

    def __init__(self, engine: Engine, collection: str) -> None:
        self._engine = engine
        self._collection = collection

    @classmethod
    def open(cls, settings: Settings) -> "Runs":
        """The runs in the database of Settings.

        Raises ConfigurationError for a url that is none, StoreUnavailable for a database that does
        not answer.
        """
        try:
            url = make_url(settings.database_url)
            if url.get_backend_name() == "sqlite" and url.database:
                Path(url.database).parent.mkdir(parents=True, exist_ok=True)
            engine = create_engine(url, pool_pre_ping=True)
        except (ArgumentError, ImportError, OSError) as error:
            raise ConfigurationError(f"APIDESK_DATABASE_URL: {_first_line(error)}") from None
        with _database_errors():
            metadata.create_all(engine)
        return cls(engine, settings.collection_id)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def save(self, run: IngestionRun) -> None:
        """Write `run`, over what was written of it before."""
        row = {"started_at": run.started_at, "report": run.model_dump_json()}
        mine = runs_table.c.id == run.id
        with _database_errors(), self._engine.begin() as connection:
            if not connection.execute(runs_table.update().where(mine).values(row)).rowcount:
                connection.execute(
                    runs_table.insert().values(id=run.id, collection=self._collection, **row)
                )

    def get(self, run_id: str) -> IngestionRun | None:
        """The run with this id."""
        found = self._select(runs_table.c.id == run_id)
        return found[0] if found else None

    def latest(self, count: int = LISTED) -> list[IngestionRun]:
        """The last `count` runs, latest first."""
        return self._select(limit=count)

    def bury_the_dead(self) -> None:
        """Call failed what still says it is running; only who holds the lock can know that."""
        for run in self.latest():
            if run.state == "running":
                run.state = "failed"
                run.error = "its process ended before the run did"
                self.save(run)

    def _select(self, *where: object, limit: int = 1) -> list[IngestionRun]:
        query = (
            select(runs_table.c.report)
            .where(runs_table.c.collection == self._collection, *where)  # type: ignore[arg-type]
            .order_by(runs_table.c.started_at.desc())
            .limit(limit)
        )
        with _database_errors(), self._engine.connect() as connection:
            return [
                IngestionRun.model_validate_json(row.report) for row in connection.execute(query)
            ]


@contextmanager
def _database_errors() -> Iterator[None]:
    """What SQLAlchemy raises, as StoreUnavailable."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreUnavailable(
            f"the database cannot be used: see APIDESK_DATABASE_URL ({_first_line(error)})"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
