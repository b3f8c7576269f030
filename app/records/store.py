"""The records of questions in the database."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Column, MetaData, Row, SmallInteger, String, Table, Text, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from ingestion.columns import UtcDateTime
from ingestion.database import database_errors
from schemas.record import Feedback, QuestionRecord

PAGE = 1_000
"""Records that are read at a time."""

metadata = MetaData()

questions_table = Table(
    "questions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False, index=True),
    Column("record", Text, nullable=False),
    Column("score", SmallInteger),
    Column("comment", Text),
)


class RecordStore:
    """Every method blocks, and raises StoreUnavailable when the database does not answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._insert = insert_in_sqlite if engine.dialect.name == "sqlite" else insert_in_postgresql

    def add(self, records: Sequence[QuestionRecord]) -> None:
        """Keep `records`; one that is kept already stays as it is."""
        rows = [
            {
                "id": record.id,
                "owner": record.owner,
                "asked_at": record.asked_at,
                "record": record.model_dump_json(exclude={"feedback"}),
            }
            for record in records
        ]
        if rows:
            with database_errors(), self._engine.begin() as connection:
                connection.execute(self._insert(questions_table).on_conflict_do_nothing(), rows)

    def rate(self, owner: str, record_id: str, feedback: Feedback) -> bool:
        """Keep what `owner` thought of an answer, or forget it (0); whether it was theirs to judge."""
        mine = (questions_table.c.id == record_id, questions_table.c.owner == owner)
        said: dict[str, object] = {"score": feedback.score, "comment": feedback.comment}
        if not feedback.score:
            said = dict.fromkeys(said)
        with database_errors(), self._engine.begin() as connection:
            return bool(
                connection.execute(questions_table.update().where(*mine).values(said)).rowcount
            )

    def since(self, moment: datetime) -> Iterator[QuestionRecord]:
        """The records from `moment` on, oldest first."""
        columns = questions_table.c
        query = select(questions_table).where(columns.asked_at >= moment)
        query = query.order_by(columns.asked_at, columns.id).execution_options(yield_per=PAGE)
        with database_errors(), self._engine.connect() as connection:
            for row in connection.execute(query):
                yield _record(row)

    def forget(self, days: int) -> int:
        """Delete what is older than `days`; how many there were."""
        expired = questions_table.c.asked_at < datetime.now(UTC) - timedelta(days=days)
        with database_errors(), self._engine.begin() as connection:
            return connection.execute(questions_table.delete().where(expired)).rowcount


def _record(row: Row[tuple[object, ...]]) -> QuestionRecord:
    record = QuestionRecord.model_validate_json(row.record)
    if row.score is None:
        return record
    feedback = Feedback(score=row.score, comment=row.comment or "")
    return record.model_copy(update={"feedback": feedback})
