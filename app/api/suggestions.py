"""First questions, made from the platform's own documents without a model.
GET /suggestions
"""

import asyncio
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import NamedTuple

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from app.analytics.evaluation.documents import order
from app.analytics.evaluation.generated_questions import error_code_rows
from app.api.openapi import QUESTIONS
from app.service.answer_service import AnswerService
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import CatalogueEntry
from schemas.errors import CollectionMismatch, CollectionMissing, StoreUnavailable

MOST = 6
"""Questions that are suggested."""

FEWEST = 4
"""Documents in the asker's language that are enough to suggest nothing from others."""

READ = 12
"""Documents whose chunks are looked through for error codes."""

LONGEST_NAME = 60
"""Characters of a title or heading; a longer one makes no question that anybody would ask."""

WORDING: dict[Language, dict[str, str]] = {
    "zh": {
        "call": "怎么调用“{name}”接口？",
        "error": "错误码 {name} 是什么意思？",
        "page": "“{name}”讲了什么？",
        "section": "{title}里的“{name}”是怎么说的？",
    },
    "en": {
        "call": "How do I call the “{name}” API?",
        "error": "What does error {name} mean?",
        "page": "What should I know about “{name}”?",
        "section": "What does {title} say about “{name}”?",
    },
}


class Idea(NamedTuple):
    """What a question may be about, and the document that it is taken from."""

    kind: str
    name: str
    entry: CatalogueEntry


class SuggestedQuestions:
    """Suggestions for one collection, remembered until its documents change."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._made: dict[Language, tuple[list[CatalogueEntry], tuple[str, ...]]] = {}

    def get(self, language: Language) -> tuple[str, ...]:
        """At most six questions, of several kinds, each from a document of its own. Raises StoreError."""
        catalogue = self._collection.catalogue()
        of, questions = self._made.get(language, (None, ()))
        if of is not catalogue:
            questions = suggest_questions(catalogue, self._collection, language)
            self._made[language] = (catalogue, questions)
        return questions


def suggest_questions(
    catalogue: list[CatalogueEntry], collection: Collection, language: Language
) -> tuple[str, ...]:
    """One question of each kind in turn, no document twice; documents as if shuffled, always alike."""
    entries = sorted(catalogue, key=lambda entry: order(f"{entry.source}/{entry.document_id}"))
    spoken = [entry for entry in entries if entry.language == language]
    entries = spoken if len(spoken) >= FEWEST else spoken + [e for e in entries if e not in spoken]
    chosen: dict[DocumentKey, str] = {}
    for idea in _ideas(entries, collection):
        key = (idea.entry.source, idea.entry.document_id)
        if key in chosen or len(idea.name) > LONGEST_NAME:
            continue
        chosen[key] = WORDING[language][idea.kind].format(name=idea.name, title=idea.entry.title)
        if len(chosen) == MOST:
            break
    return tuple(dict.fromkeys(chosen.values()))


def _ideas(entries: list[CatalogueEntry], collection: Collection) -> Iterator[Idea]:
    """One idea of each kind in turn; what is next is found when it is asked for.

    The second kind for APIs, and for pages, goes backwards, or it would only meet what is taken.
    """
    backwards = entries[::-1]
    kinds = (_calls(entries), _pages(entries), _errors(backwards, collection), _sections(backwards))
    return (idea for idea in chain.from_iterable(zip_longest(*kinds)) if idea)


def _calls(entries: list[CatalogueEntry]) -> Iterator[Idea]:
    return (Idea("call", entry.api_name, entry) for entry in entries if entry.api_name)


def _pages(entries: list[CatalogueEntry]) -> Iterator[Idea]:
    return (Idea("page", e.title, e) for e in entries if e.kind == "page" and e.title)


def _sections(entries: list[CatalogueEntry]) -> Iterator[Idea]:
    """The second heading of a page: the first is often an introduction."""
    for entry in entries:
        headings = [heading.rpartition(" > ")[2] for heading in entry.outline]
        if entry.kind == "page" and len(headings) > 1:
            yield Idea("section", headings[1], entry)


def _errors(entries: list[CatalogueEntry], collection: Collection) -> Iterator[Idea]:
    """An error code a document; APIs first, which have more of them than pages."""
    for entry in sorted(entries, key=lambda entry: entry.kind != "api")[:READ]:
        chunks = collection.chunks_of(entry.document_id, entry.source)
        codes = {row.split()[0] for chunk in chunks for row in error_code_rows(chunk)}
        if codes:
            yield Idea("error", min(codes, key=order), entry)


class Suggested(ApiModel):
    """Questions to begin with."""

    suggestions: tuple[str, ...]


@get(
    "/suggestions",
    operation_id="suggestions",
    summary="Questions to begin with",
    response_description="The questions",
    tags=[QUESTIONS],
    needs="ask",
    errors=(CollectionMismatch, CollectionMissing, StoreUnavailable),
)
async def suggest(
    suggestions: NamedDependency[SuggestedQuestions],
    answer_service: NamedDependency[AnswerService],
    language: FromQuery[Language | None] = None,
) -> Suggested:
    """Up to six questions that the platform's own documents answer, the same for the same documents."""
    spoken = language or answer_service.platform.platform.language
    return Suggested(suggestions=await asyncio.to_thread(suggestions.get, spoken))
