"""GET /suggestions: first questions, generated from the platform's own documents without a model."""

import asyncio
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import NamedTuple

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from app.analytics.evaluation.dataset import shuffle_key
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
"""Maximum number of suggested questions."""

MIN_SAME_LANGUAGE_DOCUMENTS = 4
"""Minimum number of documents in the requested language; otherwise all languages are used."""

MAX_SCANNED_DOCUMENTS = 12
"""Maximum number of documents whose chunks are searched for error codes."""

MAX_NAME_CHARS = 60
"""Maximum length of a title or heading in a question, in characters; longer questions sound unnatural."""


class QuestionSubject(NamedTuple):
    """The subject of a suggested question, and the document that it comes from."""

    kind: SuggestionKind
    name: str
    entry: CatalogueEntry


class SuggestedQuestions:
    """Suggests questions about one collection, and caches them until its documents change."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._cache: dict[Language, tuple[list[CatalogueEntry], tuple[str, ...]]] = {}

    def get(self, language: Language) -> tuple[str, ...]:
        """Return up to six questions of several kinds, one per document. Raises StoreError."""
        catalogue = self._collection.catalogue()
        cached_catalogue, questions = self._cache.get(language, (None, ()))
        if cached_catalogue is not catalogue:
            questions = suggest_questions(catalogue, self._collection, language)
            self._cache[language] = (catalogue, questions)
        return questions


def suggest_questions(
    catalogue: list[CatalogueEntry], collection: Collection, language: Language
) -> tuple[str, ...]:
    """Return questions of several kinds in turn, one per document.

    The order of the documents is pseudo-random, but the same on every call.
    """
    entries = sorted(
        catalogue, key=lambda entry: shuffle_key(f"{entry.source}/{entry.document_id}")
    )
    preferred = [entry for entry in entries if entry.language == language]
    if len(preferred) < MIN_SAME_LANGUAGE_DOCUMENTS:
        preferred += [entry for entry in entries if entry not in preferred]
    templates = user_text(language).suggestions
    questions: dict[DocumentKey, str] = {}
    for kind, name, entry in _subjects(preferred, collection):
        key = (entry.source, entry.document_id)
        if key in questions or len(name) > MAX_NAME_CHARS:
            continue
        questions[key] = templates[kind].format(name=name, title=entry.title)
        if len(questions) == MAX_SUGGESTIONS:
            break
    return tuple(dict.fromkeys(questions.values()))


def _subjects(entries: list[CatalogueEntry], collection: Collection) -> Iterator[QuestionSubject]:
    """Yield a subject of each kind in turn, lazily.

    Error codes and sections start with the last documents, because the first ones are already used for
    other kinds.
    """
    backwards = entries[::-1]
    kinds = (_calls(entries), _pages(entries), _errors(backwards, collection), _sections(backwards))
    return (subject for subject in chain.from_iterable(zip_longest(*kinds)) if subject)


def _calls(entries: list[CatalogueEntry]) -> Iterator[QuestionSubject]:
    return (QuestionSubject("call", entry.api_name, entry) for entry in entries if entry.api_name)


def _pages(entries: list[CatalogueEntry]) -> Iterator[QuestionSubject]:
    return (
        QuestionSubject("page", entry.title, entry)
        for entry in entries
        if entry.kind == "page" and entry.title
    )


def _sections(entries: list[CatalogueEntry]) -> Iterator[QuestionSubject]:
    """Yield the second heading of each page, because the first is often an introduction."""
    for entry in entries:
        headings = [heading.rpartition(" > ")[2] for heading in entry.outline]
        if entry.kind == "page" and len(headings) > 1:
            yield QuestionSubject("section", headings[1], entry)


def _errors(entries: list[CatalogueEntry], collection: Collection) -> Iterator[QuestionSubject]:
    """Yield one error code per document. APIs come first, because they list more codes than pages."""
    for entry in sorted(entries, key=lambda entry: entry.kind != "api")[:MAX_SCANNED_DOCUMENTS]:
        chunks = collection.chunks_of_document(entry.document_id, entry.source)
        codes = {row.split()[0] for chunk in chunks for row in error_code_rows(chunk)}
        if codes:
            yield QuestionSubject("error", min(codes, key=shuffle_key), entry)


class Suggested(ApiModel):
    """Questions to start with."""

    suggestions: tuple[str, ...]


@get(
    "/suggestions",
    operation_id="suggestions",
    summary="Suggest questions",
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
    """Return up to six questions that the documents answer, always the same for the same documents."""
    language = language or answer_service.platform.platform.language
    return Suggested(suggestions=await asyncio.to_thread(suggestions.get, language))
