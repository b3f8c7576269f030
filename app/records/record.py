"""The record of a question: what is worth keeping of it, and no secret."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

from app.asked import AskCommand
from app.characters import storable
from app.insights.gaps import coverage
from app.insights.terms import LONGEST_TEXT
from app.masking.masking import mask, secrets_in
from schemas.answer import Answer, Page, Source
from schemas.question import Filters
from schemas.record import QuestionRecord, RecordedPage

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
