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

from app.analytics.evaluation.documents import shuffle_key
from app.analytics.evaluation.generated_questions import error_code_rows
from app.api.openapi import QUESTIONS_TAG
from app.service.answer_service import AnswerService
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from prompts.user_text import SuggestionKind, user_text
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import CatalogueEntry
from schemas.errors import CollectionMismatch, CollectionMissing, StoreUnavailable

MAX_SUGGESTIONS = 6
"""Questions that are suggested."""

MIN_SAME_LANGUAGE_DOCUMENTS = 4
"""Documents in the asker's language that are enough to suggest nothing from others."""

MAX_SCANNED_DOCUMENTS = 12
"""Documents whose chunks are looked through for error codes."""

MAX_NAME_CHARS = 60
"""Characters of a title or heading; a longer one makes no question that anybody would ask."""


class SuggestionTopic(NamedTuple):
    """What a question may be about, and the document that it is taken from."""

    kind: SuggestionKind
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
    entries = sorted(
        catalogue, key=lambda entry: shuffle_key(f"{entry.source}/{entry.document_id}")
    )
    spoken = [entry for entry in entries if entry.language == language]
    entries = (
        spoken
        if len(spoken) >= MIN_SAME_LANGUAGE_DOCUMENTS
        else spoken + [e for e in entries if e not in spoken]
    )
    chosen: dict[DocumentKey, str] = {}
    for idea in _topics(entries, collection):
        key = (idea.entry.source, idea.entry.document_id)
        if key in chosen or len(idea.name) > MAX_NAME_CHARS:
            continue
        template = user_text(language).suggestions[idea.kind]
        chosen[key] = template.format(name=idea.name, title=idea.entry.title)
        if len(chosen) == MAX_SUGGESTIONS:
            break
    return tuple(dict.fromkeys(chosen.values()))


def _topics(entries: list[CatalogueEntry], collection: Collection) -> Iterator[SuggestionTopic]:
    """One idea of each kind in turn; what is next is found when it is asked for.

    The second kind for APIs, and for pages, goes backwards, or it would only meet what is taken.
    """
    backwards = entries[::-1]
    kinds = (_calls(entries), _pages(entries), _errors(backwards, collection), _sections(backwards))
    return (idea for idea in chain.from_iterable(zip_longest(*kinds)) if idea)


def _calls(entries: list[CatalogueEntry]) -> Iterator[SuggestionTopic]:
    return (SuggestionTopic("call", entry.api_name, entry) for entry in entries if entry.api_name)


def _pages(entries: list[CatalogueEntry]) -> Iterator[SuggestionTopic]:
    return (SuggestionTopic("page", e.title, e) for e in entries if e.kind == "page" and e.title)


def _sections(entries: list[CatalogueEntry]) -> Iterator[SuggestionTopic]:
    """The second heading of a page: the first is often an introduction."""
    for entry in entries:
        headings = [heading.rpartition(" > ")[2] for heading in entry.outline]
        if entry.kind == "page" and len(headings) > 1:
            yield SuggestionTopic("section", headings[1], entry)


def _errors(entries: list[CatalogueEntry], collection: Collection) -> Iterator[SuggestionTopic]:
    """An error code a document; APIs first, which have more of them than pages."""
    for entry in sorted(entries, key=lambda entry: entry.kind != "api")[:MAX_SCANNED_DOCUMENTS]:
        chunks = collection.chunks_of_document(entry.document_id, entry.source)
        codes = {row.split()[0] for chunk in chunks for row in error_code_rows(chunk)}
        if codes:
            yield SuggestionTopic("error", min(codes, key=shuffle_key), entry)


class Suggested(ApiModel):
    """Questions to begin with."""

    suggestions: tuple[str, ...]


@get(
    "/suggestions",
    operation_id="suggestions",
    summary="Questions to begin with",
    response_description="The questions",
    tags=[QUESTIONS_TAG],
    needs="ask",
    errors=(CollectionMismatch, CollectionMissing, StoreUnavailable),
)
async def get_suggestions(
    suggestions: NamedDependency[SuggestedQuestions],
    answer_service: NamedDependency[AnswerService],
    language: FromQuery[Language | None] = None,
) -> Suggested:
    """Up to six questions that the platform's own documents answer, the same for the same documents."""
    spoken = language or answer_service.platform.platform.language
    return Suggested(suggestions=await asyncio.to_thread(suggestions.get, spoken))
