"""The report: kept questions, counted, and the gaps that they show."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.insights.counts import QuestionCounts
from app.insights.documentation import DocumentationTerms, Vectors
from app.insights.gaps import SMALLEST
from app.insights.joined_gaps import find_joined_gaps
from app.insights.suspects import GapCandidate, GapCandidates, described
from schemas.errors import ModelError, StoreError
from schemas.insights import Gap, Insights, Table
from schemas.record import QuestionRecord

RecordsSince = Callable[[datetime], Iterator[QuestionRecord]]
"""The records from a moment on, oldest first."""


def takes_documentation(table: Table | None) -> bool:
    """Whether `table`, or all of them, takes more than counting."""
    return table in (None, "gaps")


async def report(
    records_since: RecordsSince, days: int, documentation: DocumentationTerms | None
) -> Insights:
    """What the questions of the last `days` tell; without `documentation` gaps are not looked for.

    Records are counted one by one, in a thread; of those that may show a gap the newest are held. What
    of the documentation cannot be reached is done without, and noted. Raises StoreUnavailable when the
    database does not answer.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    counts, suspects = await asyncio.to_thread(_read, records_since(since))
    found = Insights(
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
        return found
    gaps, notes = await _gaps(suspects, documentation)
    return found.model_copy(update={"gaps": gaps, "notes": (*documentation.notes, *notes)})


def _read(records: Iterable[QuestionRecord]) -> tuple[QuestionCounts, GapCandidates]:
    counts, suspects = QuestionCounts(), GapCandidates()
    for record in records:
        counts.add(record)
        suspects.add(record)
    return counts, suspects


async def _gaps(
    found: GapCandidates, documentation: DocumentationTerms
) -> tuple[tuple[Gap, ...], tuple[str, ...]]:
    """The gaps, and what was done without."""
    suspects, notes = found.newest_first, []
    if len(suspects) < SMALLEST:
        return (), ()
    if left_out := found.total - len(suspects):
        notes.append(f"{left_out} older questions that may show a gap were not grouped")
    try:
        vectors = await _vectors(suspects, documentation)
    except ModelError as error:
        vectors = None
        notes.append(f"questions were grouped by their words alone: {error}")
    try:
        gaps = await _find(suspects, vectors, documentation)
    except StoreError as error:
        notes.append(f"only answers that failed tell a gap: {error}")
        gaps = await _find(suspects, vectors, replace(documentation, words=None))
    return gaps, tuple(notes)


async def _vectors(
    suspects: Sequence[GapCandidate], documentation: DocumentationTerms
) -> Vectors | None:
    """The suspects' vectors, each wording embedded once. Raises ModelError."""
    if documentation.embed is None:
        return None
    texts = [suspect.question.text for suspect in suspects]
    distinct = list(dict.fromkeys(texts))
    vectors = dict(zip(distinct, await documentation.embed(distinct), strict=True))
    return [vectors[text] for text in texts]


async def _find(
    suspects: Sequence[GapCandidate], vectors: Vectors | None, documentation: DocumentationTerms
) -> tuple[Gap, ...]:
    gaps = await find_joined_gaps(
        [suspect.question for suspect in suspects],
        documentation.same_topic,
        vectors,
        documented=documentation.words,
        glossary=documentation.glossary,
    )
    return tuple(described(gap, suspects) for gap in gaps)
