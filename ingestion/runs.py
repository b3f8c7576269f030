"""What each ingestion run did, kept in the database: it survives a restart."""

from sqlalchemy import Column, DateTime, MetaData, String, Table, Text, select
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors, open_engine
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


class IngestionRunStore:
    """The runs of one collection. Every method blocks; call them in a worker thread."""

    def __init__(self, engine: Engine, collection: str) -> None:
        self._engine = engine
        self._collection = collection

    @classmethod
    def open(cls, settings: Settings) -> "IngestionRunStore":
        """The runs in the database of Settings.

        Raises ConfigurationError for a url that is none, StoreUnavailable for a database that does
        not answer.
        """
        return cls(open_engine(settings), settings.collection_id)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def save(self, run: IngestionRun) -> None:
        """Write `run`, over what was written of it before."""
        row = {"started_at": run.started_at, "report": run.model_dump_json()}
        mine = runs_table.c.id == run.id
        with database_errors(), self._engine.begin() as connection:
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

    def fail_orphaned_runs(self) -> None:
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
        with database_errors(), self._engine.connect() as connection:
            return [
                IngestionRun.model_validate_json(row.report) for row in connection.execute(query)
            ]
