"""The question records in the database."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Row, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors
from ingestion.database.tables import questions_table
from schemas.record import Feedback, QuestionRecord

PAGE_SIZE = 1_000
"""The number of records that are read at a time."""


class RecordStore:
    """Reads and writes question records.

    Every method blocks, and raises StoreUnavailable if the database does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._insert = insert_in_sqlite if engine.dialect.name == "sqlite" else insert_in_postgresql

    def add(self, records: Sequence[QuestionRecord]) -> None:
        """Insert `records`; one whose id exists already is skipped."""
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
        """Store the feedback on an answer; a score of 0 deletes it.

        Returns whether `owner` has a record with this id.
        """
        is_own = (questions_table.c.id == record_id, questions_table.c.owner == owner)
        values: dict[str, object] = {"score": feedback.score, "comment": feedback.comment}
        if not feedback.score:
            values = dict.fromkeys(values)
        update = questions_table.update().where(*is_own).values(values)
        with database_errors(), self._engine.begin() as connection:
            return bool(connection.execute(update).rowcount)

    def since(self, moment: datetime) -> Iterator[QuestionRecord]:
        """Yield the records from `moment` on, oldest first."""
        columns = questions_table.c
        query = select(questions_table).where(columns.asked_at >= moment)
        query = query.order_by(columns.asked_at, columns.id)
        query = query.execution_options(yield_per=PAGE_SIZE)
        with database_errors(), self._engine.connect() as connection:
            for row in connection.execute(query):
                yield _parse_row(row)

    def delete_older_than(self, days: int) -> int:
        """Delete the records that are older than `days`, and return their number."""
        expired = questions_table.c.asked_at < datetime.now(UTC) - timedelta(days=days)
        with database_errors(), self._engine.begin() as connection:
            return connection.execute(questions_table.delete().where(expired)).rowcount


def _parse_row(row: Row[tuple[object, ...]]) -> QuestionRecord:
    record = QuestionRecord.model_validate_json(row.record)
    if row.score is None:
        return record
    feedback = Feedback(score=row.score, comment=row.comment or "")
    return record.model_copy(update={"feedback": feedback})
