"""The report's tables as CSV, for spreadsheets.
The report: kept questions, counted, and the gaps that they show.
Reports of a server that runs.
"""

import asyncio
import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from app.analytics.insights.candidates import GapCandidate, GapCandidates, described
from app.analytics.insights.counts import QuestionCounts
from app.analytics.insights.documentation import DocumentationTerms, Vectors, documentation_of
from app.analytics.insights.gap_naming import find_joined_gaps
from app.analytics.insights.gaps import SMALLEST
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from schemas.base import ApiModel
from schemas.errors import ModelError, StoreError
from schemas.insights import ApiCount, ErrorCount, Gap, Insights, Rated, Table, TypeCount
from schemas.record import QuestionRecord

BYTE_ORDER_MARK = "\ufeff"
"""Without it a spreadsheet takes UTF-8 for the encoding of its country."""

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula, after blanks too."""

BLANK = ("\t", "\r", "\n")

NEAREST = ("nearestTitle", "nearestUrl")

ROWS: dict[Table, type[ApiModel]] = {
    "byType": TypeCount,
    "byApi": ApiCount,
    "gaps": Gap,
    "errors": ErrorCount,
    "feedback": Rated,
}


def csv_of(found: Insights, table: Table) -> str:
    """One table under a line of names, as RFC 4180 has it; what people wrote stays text."""
    text = StringIO()
    text.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(text, list(_columns(ROWS[table])))
    writer.writeheader()
    for row in found.model_dump(mode="json", by_alias=True)[table]:
        writer.writerow({name: _inert(cell) for name, cell in _cells(row)})
    return text.getvalue()


def _columns(row: type[ApiModel]) -> Iterator[str]:
    for field in row.model_fields.values():
        yield from NEAREST if field.alias == "nearest" else (str(field.alias),)


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """A page takes two cells, a list stands in one, a line each."""
    for name, value in row.items():
        if name == "nearest":
            yield from zip(NEAREST, (value or {"title": "", "pageUrl": ""}).values(), strict=True)
        else:
            yield name, "\n".join(value) if isinstance(value, list) else value


def _inert(cell: object) -> object:
    """`cell`; behind an apostrophe where it is text that would be a formula."""
    if isinstance(cell, str) and (cell.startswith(BLANK) or cell.lstrip().startswith(FORMULA)):
        return f"'{cell}"
    return cell


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


class InsightsReports:
    """One at a time: each takes a processor for some seconds, and a few hundred MB."""

    def __init__(self, records: RecordStore, answer_service: AnswerService) -> None:
        self._records = records
        self._documentation = documentation_of(
            answer_service.platform,
            answer_service.collection,
            answer_service.job.embeddings,
            answer_service.models,
            answer_service.settings,
        )
        self._making = asyncio.Lock()

    async def make(self, days: int, table: Table | None = None) -> Insights:
        """As `report` makes it, with what `table` takes. Raises StoreUnavailable."""
        documentation = self._documentation if takes_documentation(table) else None
        async with self._making:
            return await report(self._records.since, days, documentation)
