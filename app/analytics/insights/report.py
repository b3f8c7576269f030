"""Builds the insights report from recorded questions, and exports its tables as CSV."""

import asyncio
import csv
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from langchain_core.embeddings import Embeddings

from app.analytics.insights.counts import QuestionCounts
from app.analytics.insights.gap_naming import TopicFinder
from app.analytics.insights.gaps import (
    MIN_GAP_SIZE,
    GapCandidates,
    GapQuestion,
    find_gaps,
    report_gap,
)
from app.analytics.insights.grouping import WordShares
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.providers import ModelRole, model_errors
from ingestion.store.client import batches
from ingestion.store.collection import Collection
from runnables.models.chat_models import ChatModels
from runnables.retrieval.query_analysis import Glossary
from schemas.base import ApiModel
from schemas.choices import Table
from schemas.errors import ModelError, ModelOutputInvalid, StoreError
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

Vectors = Sequence[Sequence[float]]

EmbedTexts = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Embeds texts, one vector per text. Raises ModelError."""

RecordsSince = Callable[[datetime], Iterator[QuestionRecord]]
"""Returns the records since a point in time, oldest first."""

BYTE_ORDER_MARK = "\ufeff"
"""The UTF-8 byte order mark. Without it, spreadsheets decode the file in the local encoding."""

FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Characters that start a formula in a spreadsheet, even after whitespace."""

LEADING_WHITESPACE = ("\t", "\r", "\n")

NEAREST_COLUMNS = ("nearestTitle", "nearestUrl")

ROW_MODELS: dict[Table, type[ApiModel]] = {
    "byType": TypeCount,
    "byApi": ApiCount,
    "gaps": Gap,
    "errors": ErrorCount,
    "feedback": RatedAnswer,
}


@dataclass(frozen=True)
class DocumentationContext:
    """The word frequencies, glossary and models that gap detection uses.

    A part that is not available is None.
    """

    words: WordShares | None = None
    glossary: Glossary | None = None
    embed: EmbedTexts | None = None
    topic_finder: TopicFinder | None = None
    """Asks a model which groups have the same topic."""
    notes: tuple[str, ...] = ()
    """Reasons why parts are not available."""


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


def needs_documentation(table: Table | None) -> bool:
    """Return whether `table` includes gaps; None stands for the whole report."""
    return table in (None, "gaps")


async def build_report(
    records_since: RecordsSince, days: int, documentation: DocumentationContext | None
) -> Insights:
    """Build the report on the last `days` days; without `documentation`, no gaps are detected.

    The records are read as a stream, and most of them are not kept in memory. If the embedding model or the
    document store fails, gaps are detected without it, and the report contains a note on the failure.

    Raises StoreUnavailable if the database fails.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    counts, candidates = await asyncio.to_thread(_read_records, records_since(since))
    insights = counts.report(days)
    if documentation is None:
        return insights
    gaps, notes = await _gaps_and_notes(candidates, documentation)
    return insights.model_copy(update={"gaps": gaps, "notes": (*documentation.notes, *notes)})


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
        gaps = await _find_gaps(candidates, vectors, replace(documentation, words=None))
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
        glossary=documentation.glossary,
        topic_finder=documentation.topic_finder,
    )
    return tuple(report_gap(gap, candidates) for gap in gaps)


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

    async def build(self, days: int, table: Table | None = None) -> Insights:
        """Build the report, with gaps only if `table` includes them. Raises StoreUnavailable."""
        documentation = self._documentation if needs_documentation(table) else None
        async with self._lock:
            return await build_report(self._records.since, days, documentation)


def to_csv(insights: Insights, table: Table) -> str:
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
    """Add an apostrophe in front of text that a spreadsheet would run as a formula."""
    if isinstance(cell, str) and (
        cell.startswith(LEADING_WHITESPACE) or cell.lstrip().startswith(FORMULA_PREFIXES)
    ):
        return f"'{cell}"
    return cell
