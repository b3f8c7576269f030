"""Builds the insights report from recorded questions."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.analytics.insights.counts import QuestionCounts
from app.analytics.insights.documentation import (
    DocumentationContext,
    Vectors,
    build_documentation_context,
)
from app.analytics.insights.gap_naming import find_gaps_with_model
from app.analytics.insights.gaps import MIN_GAP_SIZE, GapCandidate, GapCandidates, report_gap
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from schemas.errors import ModelError, StoreError
from schemas.insights import Gap, Insights, Table
from schemas.record import QuestionRecord

RecordsSince = Callable[[datetime], Iterator[QuestionRecord]]
"""Returns the records from a point in time on, oldest first."""


def needs_documentation(table: Table | None) -> bool:
    """Return whether `table` includes gaps; None stands for the whole report."""
    return table in (None, "gaps")


async def build_report(
    records_since: RecordsSince, days: int, documentation: DocumentationContext | None
) -> Insights:
    """Build the report on the last `days` days; without `documentation`, no gaps are detected.

    A worker thread reads the records as a stream and keeps only the newest gap candidates in memory. Parts
    of the documentation that are not available are skipped, and the report has a note about each of them.

    Raises StoreUnavailable if the database fails.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    counts, candidates = await asyncio.to_thread(_read_records, records_since(since))
    insights = Insights(
        days=days,
        questions=counts.questions,
        unanswered=counts.unanswered,
        off_topic_share=counts.off_topic_share,
        cached_share=counts.cached_share,
        by_type=counts.by_type,
        by_api=counts.by_api,
        errors=counts.errors,
        feedback=counts.feedback,
    )
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
    """Return the gaps, and notes on the steps that were skipped."""
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
        notes.append(f"only failed answers reveal a gap: {error}")
        gaps = await _find_gaps(candidates, vectors, replace(documentation, words=None))
    return gaps, tuple(notes)


async def _embed_candidates(
    candidates: Sequence[GapCandidate], documentation: DocumentationContext
) -> Vectors | None:
    """Return one vector per candidate; each distinct text is embedded once. Raises ModelError."""
    if documentation.embed is None:
        return None
    texts = [candidate.question.text for candidate in candidates]
    distinct = list(dict.fromkeys(texts))
    vectors = dict(zip(distinct, await documentation.embed(distinct), strict=True))
    return [vectors[text] for text in texts]


async def _find_gaps(
    candidates: Sequence[GapCandidate], vectors: Vectors | None, documentation: DocumentationContext
) -> tuple[Gap, ...]:
    gaps = await find_gaps_with_model(
        [candidate.question for candidate in candidates],
        documentation.grouper,
        vectors,
        documented=documentation.words,
        glossary=documentation.glossary,
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
        """Build the report, with gaps only if `table` needs them. Raises StoreUnavailable."""
        documentation = self._documentation if needs_documentation(table) else None
        async with self._lock:
            return await build_report(self._records.since, days, documentation)
