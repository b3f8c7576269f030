"""Builds question records, in which secrets are masked, and stores them in the database."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import Row, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from app.masking.masking import SecretScan, is_masked, mask
from app.service.ask_command import AskCommand
from ingestion.database.engine import database_errors
from ingestion.database.tables import questions_table
from ingestion.text.language import storable_text
from runnables.grounding.support import coverage
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.extract_details import extract_details
from schemas.answer import Answer, Page, Source
from schemas.insights import MAX_QUESTION_CHARS, Feedback, QuestionRecord, RecordedPage
from schemas.question import Filters

MAX_TEXT_CHARS = 20_000
"""Maximum length of a recorded text, in characters; longer texts are truncated."""

MAX_SECRET_CHARS = 5_000
"""Number of characters beyond MAX_TEXT_CHARS that are also scanned, because a secret may cross that limit.

A private key of 4,096 bits has about 3,200 characters.
"""

MAX_NAME_CHARS = 200
"""Maximum length of an API name, API path or error, in characters; longer ones are truncated."""

PAGE_SIZE = 1_000
"""Number of records that are read from the database at a time."""


def build_record(command: AskCommand, answer: Answer, milliseconds: int) -> QuestionRecord:
    """Return the record of a question that has just been answered, `milliseconds` after it was asked."""
    structured = answer.structured
    api = _documented_api(answer)
    scan = scan_secrets(command)
    secrets = scan.secrets
    return _build_base(command, scan.masked, milliseconds).model_copy(
        update={
            "id": answer.id,
            "understood": _mask_text(answer.question, secrets),
            "language": answer.language,
            "type": answer.type,
            "api_name": api.api_name if api else _api_identity(structured.api_name, secrets),
            "api_url": api.api_url if api else _api_identity(structured.api_url, secrets),
            "error": _mask_name(structured.error, secrets),
            "confidence": answer.confidence,
            "answer": tuple(_mask_text(step, secrets) for step in answer.answer),
            "pages": tuple(map(_recorded_page, answer.sources)),
            "nearest": _nearest_page(answer),
            "coverage": _question_coverage(answer),
            "answered_by": answer.answered_by,
            "degraded": answer.degraded,
            "cached": answer.cached,
        }
    )


def build_failed_record(command: AskCommand, code: str, milliseconds: int) -> QuestionRecord:
    """Return the record of a question that has just failed; `code` is the error's code, or `abandoned`."""
    # The whole text is not scanned, because a question that is refused can have any length.
    masked = mask(_scanned_part(command.text))
    return _build_base(command, masked, milliseconds).model_copy(update={"failure": code})


def scan_secrets(command: AskCommand) -> SecretScan:
    """Return `command.secret_scan` or, if it is None, a new scan of the question for secrets.

    RecordingAnswerer stores a scan in the command, so that a question is scanned only once.
    """
    return command.secret_scan or SecretScan(command.text)


def _build_base(command: AskCommand, masked: str, milliseconds: int) -> QuestionRecord:
    return QuestionRecord(
        id=uuid4().hex,
        owner=command.owner,
        asked_at=datetime.now(UTC) - timedelta(milliseconds=milliseconds),
        session=command.session,
        question=storable_text(masked)[:MAX_TEXT_CHARS],
        language=command.language,
        mode=command.mode,
        k=command.k,
        filters=command.filters or Filters(),
        milliseconds=milliseconds,
    )


def _documented_api(answer: Answer) -> Source | None:
    """Return a source that describes the API that the question is about; None if there is no such source.

    If `answer.structured`, the structured question, has an API name, a path or both, the first source with
    this name and path is returned. If there is no such source, or the structured question has neither, but
    all sources describe the same API, the first source is returned, except in these cases:

    - The confidence is low.
    - The structured question has a path, so it is about another API, which no source describes.
    - The structured question has a name, and no model wrote the answer, so it is about another API as well.
      If a model wrote the answer, the name may merely be the user's word for the API.
    """
    name, url = answer.structured.api_name, answer.structured.api_url
    if name or url:
        for source in answer.sources:
            has_name = not name or name == source.api_name
            has_path = not url or url == source.api_url
            if has_name and has_path:
                return source
    names_other_api = url or (name and answer.answered_by == EXTRACTIVE)
    apis = {(source.api_name, source.api_url) for source in answer.sources}
    is_one_api = len(apis) == 1 and apis != {("", "")}
    if names_other_api or not is_one_api or answer.confidence == "low":
        return None
    return answer.sources[0]


def _recorded_page(source: Source) -> RecordedPage:
    return RecordedPage(
        title=source.title,
        page_url=source.page_url,
        source=source.source,
        document_id=source.document_id,
    )


def _nearest_page(answer: Answer) -> Page | None:
    cited = (Page(title=source.title, page_url=source.page_url) for source in answer.sources)
    pages = [*answer.nearest, *cited]
    return pages[0] if pages else None


def _question_coverage(answer: Answer) -> float:
    """Return the weighted share (0 to 1) of the question's words that the sources contain; see `coverage`.

    It cannot be computed later, because the record does not contain the texts of the sources.
    """
    cited = " ".join(f"{source.title} {source.section} {source.text}" for source in answer.sources)
    question = extract_details(answer.question[:MAX_QUESTION_CHARS])
    return round(coverage(question.search_query, cited), 4)


def _mask_text(text: str, secrets: Mapping[str, str]) -> str:
    return mask(storable_text(_scanned_part(text)), secrets)[:MAX_TEXT_CHARS]


def _scanned_part(text: str) -> str:
    return text[: MAX_TEXT_CHARS + MAX_SECRET_CHARS]


def _api_identity(text: str | None, secrets: Mapping[str, str]) -> str | None:
    """Return the name or path of an API, with its secrets masked.

    Returns None if `text` is empty, is part of a secret, or consists only of secrets. Insights count
    questions by API, and a label such as ‹secret› is not an API.
    """
    if not text or any(text in secret for secret in secrets):
        return None
    masked = _mask_name(text, secrets)
    return masked if masked and not is_masked(masked) else None


def _mask_name(text: str | None, secrets: Mapping[str, str]) -> str | None:
    return mask(storable_text(text), secrets)[:MAX_NAME_CHARS] if text else None


class RecordStore:
    """Reads and writes question records.

    Every method blocks, and raises StoreUnavailable if the database cannot be used.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._insert = insert_in_sqlite if engine.dialect.name == "sqlite" else insert_in_postgresql

    def add(self, records: Sequence[QuestionRecord]) -> None:
        """Insert `records`, except records whose id is already stored."""
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
        score, comment = (feedback.score, feedback.comment) if feedback.score else (None, None)
        update = questions_table.update().where(*is_own).values(score=score, comment=comment)
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

    def latest(self, owner: str, count: int) -> list[QuestionRecord]:
        """Return the latest `count` records of `owner`, latest first."""
        columns = questions_table.c
        query = select(questions_table).where(columns.owner == owner)
        query = query.order_by(columns.asked_at.desc(), columns.id).limit(count)
        with database_errors(), self._engine.connect() as connection:
            return [_parse_row(row) for row in connection.execute(query)]

    def delete_older_than(self, days: int) -> None:
        """Delete the records that are older than `days` days."""
        expired = questions_table.c.asked_at < datetime.now(UTC) - timedelta(days=days)
        with database_errors(), self._engine.begin() as connection:
            connection.execute(questions_table.delete().where(expired))


def _parse_row(row: Row[tuple[object, ...]]) -> QuestionRecord:
    record = QuestionRecord.model_validate_json(row.record)
    if row.score is None:
        return record
    feedback = Feedback(score=row.score, comment=row.comment or "")
    return record.model_copy(update={"feedback": feedback})
