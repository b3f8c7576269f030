"""Builds the record of a question: what is stored about it, with secrets masked."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

from app.analytics.insights.terms import MAX_QUESTION_CHARS
from app.masking.masking import find_secrets, mask
from app.service.ask_command import AskCommand
from ingestion.text.language import storable_text
from runnables.grounding.support import coverage
from schemas.answer import Answer, Page, Source
from schemas.question import Filters
from schemas.record import QuestionRecord, RecordedPage

MAX_TEXT_CHARS = 20_000
"""Longer texts are truncated; APIDESK_MAX_QUESTION_CHARS may allow longer questions."""

MAX_NAME_CHARS = 200


def build_record(command: AskCommand, answer: Answer, milliseconds: int) -> QuestionRecord:
    """Return the record of a question that was answered."""
    structured = answer.structured
    api = _documented_api(answer)
    secrets = find_secrets(command.text)
    return _build_base(command, milliseconds).model_copy(
        update={
            "id": answer.id,
            "understood": _mask_text(answer.question, secrets),
            "language": answer.language,
            "type": answer.type,
            "api_name": api.api_name if api else _mask_name(structured.api_name, secrets),
            "api_url": api.api_url if api else _mask_name(structured.api_url, secrets),
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
    """Return the record of a question that failed; `code` is the error's code, or `abandoned`."""
    return _build_base(command, milliseconds).model_copy(update={"failure": code})


def _build_base(command: AskCommand, milliseconds: int) -> QuestionRecord:
    return QuestionRecord(
        id=uuid4().hex,
        owner=command.owner,
        asked_at=datetime.now(UTC),
        session=command.session,
        question=_mask_text(command.text, {}),
        language=command.language,
        mode=command.mode,
        k=command.k,
        filters=command.filters or Filters(),
        milliseconds=milliseconds,
    )


def _documented_api(answer: Answer) -> Source | None:
    """The API that the answer is about. Its documented name groups questions that name it differently."""
    if answer.type != "api_call":
        return None
    return next((source for source in answer.sources if source.api_url), None)


def _recorded_page(source: Source) -> RecordedPage:
    return RecordedPage(
        title=source.title,
        page_url=source.page_url,
        source=source.source,
        document_id=source.document_id,
    )


def _nearest_page(answer: Answer) -> Page | None:
    pages = [*answer.nearest, *(Page(title=s.title, page_url=s.page_url) for s in answer.sources)]
    return pages[0] if pages else None


def _question_coverage(answer: Answer) -> float:
    """Computed now: the record does not hold the cited texts, and grounding has cached their words."""
    cited = " ".join(f"{source.title} {source.section} {source.text}" for source in answer.sources)
    return round(coverage(answer.question[:MAX_QUESTION_CHARS], cited), 4)


def _mask_text(text: str, secrets: Mapping[str, str]) -> str:
    return mask(storable_text(text[:MAX_TEXT_CHARS]), secrets)


def _mask_name(text: str | None, secrets: Mapping[str, str]) -> str | None:
    return mask(storable_text(text), secrets)[:MAX_NAME_CHARS] if text else None
