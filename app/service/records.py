"""The record of a question: what is worth keeping of it, and no secret.
The records of questions in the database.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import Column, MetaData, Row, SmallInteger, String, Table, Text, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from app.analytics.insights.gaps import coverage
from app.analytics.insights.terms import LONGEST_TEXT
from app.masking.masking import mask, secrets_in
from app.service.ask_command import AskCommand
from ingestion.database.engine import UtcDateTime, database_errors
from ingestion.text.language import storable
from schemas.answer import Answer, Page, Source
from schemas.question import Filters
from schemas.record import Feedback, QuestionRecord, RecordedPage

LONGEST = 20_000
"""Characters that are kept of a text; a question may be set to be longer."""

LONGEST_NAME = 200


def record_of(asked: AskCommand, answer: Answer, milliseconds: int) -> QuestionRecord:
    """The record of a question that was answered."""
    structured = answer.structured
    about = _documented(answer)
    known = secrets_in(asked.text)
    return _asked(asked, milliseconds).model_copy(
        update={
            "id": answer.id,
            "understood": _text(answer.question, known),
            "language": answer.language,
            "type": answer.type,
            "api_name": about.api_name if about else _name(structured.api_name, known),
            "api_url": about.api_url if about else _name(structured.api_url, known),
            "error": _name(structured.error, known),
            "confidence": answer.confidence,
            "answer": tuple(_text(step, known) for step in answer.answer),
            "pages": tuple(map(_page, answer.sources)),
            "nearest": _nearest(answer),
            "coverage": _coverage(answer),
            "answered_by": answer.answered_by,
            "degraded": answer.degraded,
            "cached": answer.cached,
        }
    )


def failed_record(asked: AskCommand, code: str, milliseconds: int) -> QuestionRecord:
    """The record of a question that got an error, or whose caller left (`abandoned`)."""
    return _asked(asked, milliseconds).model_copy(update={"failure": code})


def _asked(asked: AskCommand, milliseconds: int) -> QuestionRecord:
    return QuestionRecord(
        id=uuid4().hex,
        owner=asked.owner,
        asked_at=datetime.now(UTC),
        session=asked.session,
        question=_text(asked.text, {}),
        language=asked.language,
        mode=asked.mode,
        k=asked.k,
        filters=asked.filters or Filters(),
        milliseconds=milliseconds,
    )


def _documented(answer: Answer) -> Source | None:
    """The API that the answer is about, as the documentation calls it: questions call it many names."""
    if answer.type != "api_call":
        return None
    return next((source for source in answer.sources if source.api_url), None)


def _page(source: Source) -> RecordedPage:
    return RecordedPage(
        title=source.title,
        page_url=source.page_url,
        source=source.source,
        document_id=source.document_id,
    )


def _nearest(answer: Answer) -> Page | None:
    pages = [*answer.nearest, *(Page(title=s.title, page_url=s.page_url) for s in answer.sources)]
    return pages[0] if pages else None


def _coverage(answer: Answer) -> float:
    """What is cited is not kept, so it is compared now; grounding has cut its words already."""
    cited = " ".join(f"{source.title} {source.section} {source.text}" for source in answer.sources)
    return round(coverage(answer.question[:LONGEST_TEXT], cited), 4)


def _text(text: str, known: Mapping[str, str]) -> str:
    return mask(storable(text[:LONGEST]), known)


def _name(text: str | None, known: Mapping[str, str]) -> str | None:
    return mask(storable(text), known)[:LONGEST_NAME] if text else None


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
