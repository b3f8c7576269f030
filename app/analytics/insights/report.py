"""Builds the insights report from recorded questions, and exports its tables as CSV."""

import asyncio
import csv
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any, get_args

from langchain_core.embeddings import Embeddings

from app.analytics.insights.counts import ApiIdentity, DocumentedOperation, QuestionCounts
from app.analytics.insights.gap_naming import TopicFinder
from app.analytics.insights.gaps import (
    MIN_GAP_SIZE,
    GapCandidates,
    GapQuestion,
    HasPage,
    IsDocumented,
    find_gaps,
    report_gap,
)
from app.analytics.insights.grouping import WordShares
from app.service.answer_cache import DocumentedPages
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.providers import ModelRole, model_errors
from ingestion.sources.api_docs import api_method
from ingestion.store.client import batches
from ingestion.store.collection import Collection
from ingestion.text.words import split_words
from prompts.user_text import user_text
from runnables.models.chat_models import ChatModels
from runnables.question.query_analysis import Glossary
from schemas.answer import Page
from schemas.base import ApiModel
from schemas.choices import Language, TableName
from schemas.document import Chunk
from schemas.errors import CollectionMismatch, ModelError, ModelOutputInvalid, StoreError
from schemas.insights import (
    ApiCount,
    ErrorCount,
    Gap,
    Insights,
    QuestionRecord,
    RatedAnswer,
    TypeCount,
)
from schemas.platform import PlatformConfig
from schemas.settings import Settings

WORD_BATCH = 1_000
"""Maximum number of words in one query to the store."""

API_BATCH = 100
"""Maximum number of APIs in one query to the store."""

Vectors = Sequence[Sequence[float]]

EmbedTexts = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Embeds texts, one vector per text. Raises ModelError."""

FindOperations = Callable[[Iterable[ApiIdentity]], list[DocumentedOperation]]
"""Returns the documented operations of the given APIs.

An API is looked up by its path or, if it has no path, by its name.
"""

RecordsSince = Callable[[datetime], Iterator[QuestionRecord]]
"""Returns the records since a point in time, oldest first."""

SAME_PATH_NOTE = "operations with the same path were counted as one API"
"""Note on the table `byApi` if the documents cannot be read; the reason is appended to it."""

BYTE_ORDER_MARK = "\ufeff"
"""The UTF-8 byte order mark. Without it, spreadsheets decode the file in the local encoding."""

FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Characters that start a formula in a spreadsheet, even after whitespace."""

LEADING_WHITESPACE = ("\t", "\r", "\n")
"""A text that starts with one of these characters is escaped even if no formula follows."""

NEAREST_COLUMNS = ("nearestTitle", "nearestUrl")

ROW_MODELS: dict[TableName, type[ApiModel]] = {
    "byType": TypeCount,
    "byApi": ApiCount,
    "gaps": Gap,
    "errors": ErrorCount,
    "feedback": RatedAnswer,
}


@dataclass(frozen=True)
class DocumentationContext:
    """The documents, the glossary and the models that a report uses in addition to the records.

    Most fields are functions that read the documents or call a model. A field is None if the documents or
    the model that it needs are not available.
    """

    words: WordShares | None = None
    is_documented: IsDocumented | None = None
    has_page: HasPage | None = None
    find_operations: FindOperations | None = None
    glossary: Glossary | None = None
    embed: EmbedTexts | None = None
    topic_finder: TopicFinder | None = None
    """Asks a model which groups have the same topic."""
    notes: tuple[str, ...] = ()
    """Notes for the report: which of its parts are missing or limited, and why."""


def build_documentation_context(
    platform: PlatformConfig,
    collection: Collection,
    embeddings: Embeddings | None,
    models: ChatModels | None,
    settings: Settings,
) -> DocumentationContext:
    """Build the context from a loaded collection and the configured models."""
    return DocumentationContext(
        words=_word_shares(collection),
        is_documented=_word_check(collection),
        has_page=_page_check(collection),
        find_operations=_operation_finder(collection),
        glossary=Glossary(platform.glossary),
        embed=_embedder(embeddings, settings) if embeddings else None,
        topic_finder=TopicFinder(models, platform.platform) if models else None,
    )


def _word_shares(collection: Collection) -> WordShares:
    def shares(words: Iterable[str]) -> Mapping[str, float]:
        total = max(collection.manifest.words, 1)
        return {
            word: count / total
            for batch in batches(words, WORD_BATCH)
            for word, count in collection.word_counts(batch).items()
        }

    return shares


def _word_check(collection: Collection) -> IsDocumented:
    # Users ask the suggested questions. The words of these questions therefore do not indicate a gap.
    suggested = _suggestion_words()

    def is_documented(word: str) -> bool:
        if word in suggested or collection.word_counts([word]):
            return True
        # Stems in the full-text index also match other forms of an English word. The index also contains
        # Chinese characters. A longer Chinese word is not searched for, because it would match chunks
        # that contain only one of its characters.
        is_term = word.isascii() or len(word) == 1
        return is_term and bool(collection.search_hits(word, 1))

    return is_documented


def _suggestion_words() -> frozenset[str]:
    """Return the words of the templates of suggested questions, in all languages."""
    templates = (
        template.format(name="", title="")
        for language in get_args(Language)
        for template in user_text(language).suggestions.values()
    )
    return frozenset(word for template in templates for word in split_words(template))


def _page_check(collection: Collection) -> HasPage:
    pages = DocumentedPages(collection)

    def has_page(page: Page) -> bool:
        return not page.page_url or pages.has_all([page.page_url])

    return has_page


def _operation_finder(collection: Collection) -> FindOperations:
    def operations(apis: Iterable[ApiIdentity]) -> list[DocumentedOperation]:
        apis = list(apis)
        urls = {url for _, url in apis if url}
        names = {name for name, url in apis if not url}
        chunks: list[Chunk] = []
        for url_batch in batches(urls, API_BATCH):
            chunks += collection.chunks_by_api(url_batch, [])
        for name_batch in batches(names, API_BATCH):
            chunks += collection.chunks_by_api([], name_batch)
        return [
            DocumentedOperation(chunk.api_name, chunk.api_url, api_method(chunk))
            for chunk in chunks
            if chunk.kind == "request_url"
        ]

    return operations


def _embedder(model: Embeddings, settings: Settings) -> EmbedTexts:
    role = ModelRole("EMBEDDING", settings.embedding_model or "")

    async def embed(texts: Sequence[str]) -> Vectors:
        vectors: list[list[float]] = []
        with model_errors(role):
            requests = batches(texts, settings.embedding_batch)
            for concurrent in batches(requests, settings.embedding_requests):
                async with asyncio.timeout(settings.request_timeout):
                    for batch in await asyncio.gather(*map(model.aembed_documents, concurrent)):
                        vectors += batch
        if len(vectors) != len(texts) or len(set(map(len, vectors))) > 1:
            raise ModelOutputInvalid(
                f"{role.setting}: the model must return one vector per text, all of the same length"
            )
        return vectors

    return embed


def includes(table: TableName | None, name: TableName) -> bool:
    """Return whether a report on `table` includes the table `name`; None means the whole report."""
    return table in (None, name)


def needs_documentation(table: TableName | None) -> bool:
    """Return whether a report on `table` needs the documents. Only the tables `gaps` and `byApi` do."""
    return includes(table, "gaps") or includes(table, "byApi")


async def build_report(
    records_since: RecordsSince,
    days: int,
    documentation: DocumentationContext | None,
    table: TableName | None = None,
) -> Insights:
    """Build the report on the last `days` days; without `documentation`, no gaps are detected.

    The records are read as a stream, and most of them are not kept in memory. If the embedding model or the
    document store fails, the report is made without it, and contains a note on the failure.

    If `table` is given, the documents are read only for this table. The report still contains all tables.
    However, `gaps` is empty unless `table` is "gaps", and the table `byApi` is counted by path unless
    `table` is "byApi".

    Raises StoreUnavailable if the database fails.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    counts, candidates = await asyncio.to_thread(_read_records, records_since(since))
    if documentation is None:
        return counts.report(days)
    notes = list(documentation.notes)
    operations: list[DocumentedOperation] = []
    if includes(table, "byApi") and documentation.find_operations:
        try:
            operations = await asyncio.to_thread(documentation.find_operations, counts.apis)
        except (StoreError, CollectionMismatch) as error:
            notes.append(f"{SAME_PATH_NOTE}, because the documents could not be read: {error}")
    insights = counts.report(days, operations)
    if includes(table, "gaps"):
        gaps, more_notes = await _gaps_and_notes(candidates, documentation)
        return insights.model_copy(update={"gaps": gaps, "notes": (*notes, *more_notes)})
    return insights.model_copy(update={"notes": tuple(notes)})


def _read_records(records: Iterable[QuestionRecord]) -> tuple[QuestionCounts, GapCandidates]:
    counts, candidates = QuestionCounts(), GapCandidates()
    for record in records:
        counts.add(record)
        candidates.add(record)
    return counts, candidates


async def _gaps_and_notes(
    collected: GapCandidates, documentation: DocumentationContext
) -> tuple[tuple[Gap, ...], tuple[str, ...]]:
    """Return the gaps, and notes on questions that were left out and on failures."""
    candidates, notes = collected.newest_first, []
    if len(candidates) < MIN_GAP_SIZE:
        return (), ()
    if left_out := collected.total - len(candidates):
        notes.append(f"{left_out} older questions that may show a gap were not grouped")
    try:
        vectors = await _embed_candidates(candidates, documentation)
    except ModelError as error:
        vectors = None
        notes.append(f"questions were grouped by their words alone: {error}")
    try:
        gaps = await _find_gaps(candidates, vectors, documentation)
    except StoreError as error:
        notes.append(
            "gaps were detected from unhelpful answers only, because the words of the documentation could "
            f"not be read: {error}"
        )
        unreadable = replace(documentation, words=None, is_documented=None, has_page=None)
        gaps = await _find_gaps(candidates, vectors, unreadable)
    return gaps, tuple(notes)


async def _embed_candidates(
    candidates: Sequence[GapQuestion], documentation: DocumentationContext
) -> Vectors | None:
    """Return one vector per candidate, or None without an embedding model. Raises ModelError.

    Each distinct text is embedded only once.
    """
    if documentation.embed is None:
        return None
    texts = [candidate.text for candidate in candidates]
    distinct = list(dict.fromkeys(texts))
    vectors = dict(zip(distinct, await documentation.embed(distinct), strict=True))
    return [vectors[text] for text in texts]


async def _find_gaps(
    candidates: Sequence[GapQuestion], vectors: Vectors | None, documentation: DocumentationContext
) -> tuple[Gap, ...]:
    gaps = await find_gaps(
        candidates,
        vectors,
        document_word_shares=documentation.words,
        is_documented=documentation.is_documented,
        glossary=documentation.glossary,
        topic_finder=documentation.topic_finder,
    )
    report = partial(report_gap, questions=candidates, has_page=documentation.has_page)
    return tuple(await asyncio.to_thread(list, map(report, gaps)))


class InsightsReports:
    """Builds reports for a running server, one at a time.

    A report needs a CPU core for several seconds and a few hundred MB of memory.
    """

    def __init__(self, records: RecordStore, answer_service: AnswerService) -> None:
        self._records = records
        self._documentation = build_documentation_context(
            answer_service.platform,
            answer_service.collection,
            answer_service.job.embeddings,
            answer_service.models,
            answer_service.settings,
        )
        self._lock = asyncio.Lock()

    async def build(self, days: int, table: TableName | None = None) -> Insights:
        """Build the report on the last `days` days. `build_report` explains `table`.

        Raises StoreUnavailable.
        """
        documentation = self._documentation if needs_documentation(table) else None
        async with self._lock:
            return await build_report(self._records.since, days, documentation, table)


def to_csv(insights: Insights, table: TableName) -> str:
    """Format one table as CSV (RFC 4180) with a header row; text that looks like a formula is escaped."""
    text = StringIO()
    text.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(text, list(_columns(ROW_MODELS[table])))
    writer.writeheader()
    for row in insights.model_dump(mode="json", by_alias=True)[table]:
        writer.writerow({name: _escape_formula(cell) for name, cell in _cells(row)})
    return text.getvalue()


def _columns(row: type[ApiModel]) -> Iterator[str]:
    for field in row.model_fields.values():
        yield from NEAREST_COLUMNS if field.alias == "nearest" else (str(field.alias),)


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the cells of a row. A page becomes two cells; a list becomes one cell with a line per item."""
    for name, value in row.items():
        if name == "nearest":
            page = value or {"title": "", "pageUrl": ""}
            yield from zip(NEAREST_COLUMNS, page.values(), strict=True)
        else:
            yield name, "\n".join(value) if isinstance(value, list) else value


def _escape_formula(cell: object) -> object:
    """Add an apostrophe in front of text that a spreadsheet might run as a formula."""
    if isinstance(cell, str) and (
        cell.startswith(LEADING_WHITESPACE) or cell.lstrip().startswith(FORMULA_PREFIXES)
    ):
        return f"'{cell}"
    return cell
