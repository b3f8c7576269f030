"""GET /suggestions: questions to start with, or to ask after an answer."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from app.analytics.evaluation.dataset import shuffle_key
from app.analytics.evaluation.generated_questions import error_code_texts
from app.api.openapi import QUESTIONS_TAG
from app.api.question_sources import LoggedQuestions, about, as_question, is_subject
from app.security.api_keys import Caller
from app.service.answer_service import AnswerService
from ingestion.store.catalogue import DocumentKey, entry_key
from ingestion.store.collection import Collection
from prompts.user_text import user_text
from runnables.page_versions import is_deprecated
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import CatalogueEntry
from schemas.errors import CollectionMismatch, CollectionMissing, StoreUnavailable

MAX_SUGGESTIONS = 4
"""Maximum number of questions to start with."""

MAX_FOLLOW_UPS = 3
"""Maximum number of questions to ask after an answer."""

MIN_FOLLOW_UPS = 2
"""If there are fewer follow-up questions, headings that `as_question` cannot rewrite are used as well.

For example, "Rate limits" then becomes "What should I know about rate limits?".
"""

MIN_SAME_LANGUAGE_DOCUMENTS = 4
"""If fewer documents are in the requested language, documents in other languages are used as well."""

MAX_SCANNED_DOCUMENTS = 12
"""Maximum number of documents whose chunks are searched for error codes."""

MAX_CANDIDATES = 30
"""Maximum number of candidate questions of one kind.

The document of each candidate is read, because deprecated documents are left out.
"""

MAX_NAME_CHARS = 60
"""Maximum length of an API name, page title or heading from which a question is made, in characters.

Questions with longer names sound unnatural. In follow-up questions, only headings are limited.
"""


class DocumentQuestion(NamedTuple):
    """A question, and the document that answers it."""

    text: str
    entry: CatalogueEntry


class SuggestedQuestions:
    """Suggests questions about the documents of one collection.

    The questions to start with are cached until the documents change.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._cache: dict[Language, tuple[list[CatalogueEntry], tuple[str, ...]]] = {}

    def get(self, language: Language) -> tuple[str, ...]:
        """Return up to four questions to start with: about APIs, pages, error codes and sections.

        This method blocks: call it in a worker thread. Raises StoreError or CollectionMismatch.
        """
        catalogue = self._collection.catalogue()
        cached_catalogue, questions = self._cache.get(language, (None, ()))
        if cached_catalogue is not catalogue:
            questions = suggest_questions(catalogue, self._collection, language)
            self._cache[language] = (catalogue, questions)
        return questions

    def follow_ups(
        self, source: str, document_id: str, seen: Sequence[str], language: Language
    ) -> tuple[str, ...]:
        """Return up to three questions about the sections of a document that are not in `seen`.

        This method blocks: call it in a worker thread. Raises StoreError or CollectionMismatch.

        Arguments:
            source: the name of the document's source
            document_id: the id of the document within that source
            seen: the sections that the last answer cites
            language: the language of the questions
        """
        templates = user_text(language).follow_ups
        questions: dict[str, None] = {}
        fallbacks: dict[str, None] = {}
        for chunk in self._collection.chunks_of_document(document_id, source):
            if chunk.section in seen:
                continue
            if template := templates.get(chunk.kind):
                questions[template.format(name=chunk.api_name or chunk.title)] = None
            elif question := _section_question(chunk.title, chunk.section, language):
                questions[question] = None
            elif (
                is_subject(heading := _heading(chunk.section))
                and len(heading) <= MAX_NAME_CHARS
                and (question := about(heading, language))
            ):
                fallbacks[_with_title(chunk.title, question, language)] = None
        missing = islice(fallbacks, max(0, MIN_FOLLOW_UPS - len(questions)))
        return tuple(islice(chain(questions, missing), MAX_FOLLOW_UPS))


def suggest_questions(
    catalogue: list[CatalogueEntry], collection: Collection, language: Language
) -> tuple[str, ...]:
    """Return up to four questions about APIs, pages, error codes and sections, at most one per document.

    Documents that are marked as deprecated are left out. The order of the documents is pseudo-random, but
    the same on every call. Raises StoreError or CollectionMismatch.

    Arguments:
        catalogue: the documents of `collection`
        collection: the collection that is searched for error codes
        language: the language of the questions; documents in this language are preferred
    """
    entries = sorted(
        catalogue, key=lambda entry: shuffle_key(f"{entry.source}/{entry.document_id}")
    )
    preferred = [entry for entry in entries if entry.language == language]
    if len(preferred) < MIN_SAME_LANGUAGE_DOCUMENTS:
        preferred += [entry for entry in entries if entry.language != language]
    questions: dict[DocumentKey, str] = {}
    for question, entry in _alternate_kinds(preferred, collection, language):
        questions.setdefault(entry_key(entry), question)
        if len(questions) == MAX_SUGGESTIONS:
            break
    return tuple(dict.fromkeys(questions.values()))


def _alternate_kinds(
    entries: list[CatalogueEntry], collection: Collection, language: Language
) -> Iterator[DocumentQuestion]:
    """Yield a question about an API, a page, an error code and a section in turn, until there are no more.

    The questions are made lazily, because finding error codes requires reading chunks. Questions about
    error codes and sections start with the last document, because the first documents already have
    questions about APIs and pages.
    """
    backwards = entries[::-1]
    kinds = (
        _api_questions(entries, language),
        _page_questions(entries, language),
        _error_code_questions(backwards, collection, language),
        _section_questions(backwards, language),
    )
    kept = [_skip_deprecated(questions, collection) for questions in kinds]
    return (question for question in chain.from_iterable(zip_longest(*kept)) if question)


def _skip_deprecated(
    questions: Iterator[DocumentQuestion], collection: Collection
) -> Iterator[DocumentQuestion]:
    """Yield those of the first `MAX_CANDIDATES` questions whose document is not deprecated."""
    for question in islice(questions, MAX_CANDIDATES):
        entry = question.entry
        chunks = collection.chunks_of_document(entry.document_id, entry.source)
        if not any(map(is_deprecated, chunks[:1])):
            yield question


def _api_questions(entries: list[CatalogueEntry], language: Language) -> Iterator[DocumentQuestion]:
    template = user_text(language).suggestions["call"]
    for entry in entries:
        if entry.api_name and len(entry.api_name) <= MAX_NAME_CHARS:
            yield DocumentQuestion(template.format(name=entry.api_name), entry)


def _page_questions(
    entries: list[CatalogueEntry], language: Language
) -> Iterator[DocumentQuestion]:
    """Yield a question about each page. Pages whose title can be rewritten as a question come first."""
    pages = [e for e in entries if e.kind == "page" and 0 < len(e.title) <= MAX_NAME_CHARS]
    for entry in sorted(pages, key=lambda entry: as_question(entry.title, language) is None):
        if question := about(entry.title, language):
            yield DocumentQuestion(question, entry)


def _section_questions(
    entries: list[CatalogueEntry], language: Language
) -> Iterator[DocumentQuestion]:
    """Yield at most one question about a section of each page.

    The first section of a page is skipped, because it is usually an introduction.
    """
    for entry in entries:
        if entry.kind == "page":
            questions = (_section_question(entry.title, s, language) for s in entry.outline[1:])
            if question := next(filter(None, questions), None):
                yield DocumentQuestion(question, entry)


def _section_question(title: str, section: str, language: Language) -> str | None:
    heading = _heading(section)
    question = as_question(heading, language) if len(heading) <= MAX_NAME_CHARS else None
    return _with_title(title, question, language) if question else None


def _heading(section: str) -> str:
    return section.rpartition(" > ")[2]


def _with_title(title: str, question: str, language: Language) -> str:
    return user_text(language).suggestions["section"].format(title=title, name=question)


def _error_code_questions(
    entries: list[CatalogueEntry], collection: Collection, language: Language
) -> Iterator[DocumentQuestion]:
    """Yield a question about one error code of each document that lists codes.

    APIs come first, because they list more codes than pages do. At most `MAX_SCANNED_DOCUMENTS` documents
    are searched.
    """
    template = user_text(language).suggestions["error"]
    for entry in sorted(entries, key=lambda entry: entry.kind != "api")[:MAX_SCANNED_DOCUMENTS]:
        chunks = collection.chunks_of_document(entry.document_id, entry.source)
        codes = {row.split()[0] for chunk in chunks for row in error_code_texts(chunk)}
        if codes:
            yield DocumentQuestion(template.format(name=min(codes, key=shuffle_key)), entry)


class Suggested(ApiModel):
    """Questions to start with or to ask after an answer."""

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
    logged_questions: NamedDependency[LoggedQuestions],
    answer_service: NamedDependency[AnswerService],
    caller: NamedDependency[Caller],
    language: FromQuery[Language | None] = None,
    source: FromQuery[str | None] = None,
    document: FromQuery[str | None] = None,
    seen: FromQuery[list[str] | None] = None,
) -> Suggested:
    """Return up to four questions that the documents answer.

    Unless APIDESK_SUGGEST_QUESTIONS is false, frequent questions come first: those asked in at least three
    sessions of the caller's API key, or of all callers if no key is required. A frequent question is left
    out if it contains a URL, an e-mail address or a value such as an order number, or if the pages that its
    answers cite lack many of its words. If fewer than four questions remain, more are made from page
    titles, headings, API names and error codes. No questions are made from documents that are marked as
    deprecated.

    If `source` and `document` are given, return up to three questions about the sections of that document
    that are not in `seen`. The values come from the entries in an answer's `sources`: pass the `source` of
    an entry as `source`, its `documentId` as `document`, and the `section` of each entry as `seen`.
    """
    language = language or answer_service.platform.platform.language
    if source is not None and document is not None:
        return Suggested(
            suggestions=await asyncio.to_thread(
                suggestions.follow_ups, source, document, seen or (), language
            )
        )
    logged: tuple[str, ...] = ()
    if answer_service.settings.suggest_questions:
        logged = await asyncio.to_thread(logged_questions.get, caller.id, language)
    from_documents = await asyncio.to_thread(suggestions.get, language)
    questions = dict.fromkeys([*logged, *from_documents])
    return Suggested(suggestions=tuple(islice(questions, MAX_SUGGESTIONS)))
