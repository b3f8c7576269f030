"""Kept questions, counted."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date

from schemas.insights import ApiCount, ErrorCount, Rated, TypeCount
from schemas.record import Record


def by_type(records: Iterable[Record]) -> list[TypeCount]:
    """Questions of each type on each day."""
    counts = Counter((_day(record), record.type) for record in records)
    return [
        TypeCount(day=day, type=question_type, questions=count)
        for (day, question_type), count in sorted(
            counts.items(), key=lambda c: (c[0][0], str(c[0][1]))
        )
    ]


def by_api(records: Iterable[Record], is_gap: Callable[[Record], bool]) -> list[ApiCount]:
    """Questions about each API on each day; the APIs that are asked for most come first."""
    asked: Counter[tuple[str, str, date]] = Counter()
    unanswered: Counter[tuple[str, str, date]] = Counter()
    for record in records:
        if record.api_name or record.api_url:
            place = (record.api_name or "", record.api_url or "", _day(record))
            asked[place] += 1
            unanswered[place] += is_gap(record)
    totals: Counter[tuple[str, str]] = Counter()
    for (name, url, _), count in asked.items():
        totals[name, url] += count
    ranked = sorted(asked, key=lambda place: (-totals[place[:2]], place))
    return [
        ApiCount(
            api_name=name, api_url=url, day=day,
            questions=asked[name, url, day], unanswered=unanswered[name, url, day],
        )
        for name, url, day in ranked
    ]  # fmt: skip


def errors(records: Iterable[Record]) -> list[ErrorCount]:
    """The errors that questions name, the most frequent first."""
    counts = Counter(record.error for record in records if record.error)
    return [ErrorCount(error=error, questions=count) for error, count in counts.most_common()]


def rated(records: Collection[Record]) -> list[Rated]:
    """The answers that were judged, the worst first, then the latest."""
    found = [
        Rated(
            id=record.id, asked_at=record.asked_at, question=record.question,
            confidence=record.confidence, score=record.feedback.score, comment=record.feedback.comment,
        )
        for record in records
        if record.feedback and record.feedback.score
    ]  # fmt: skip
    return sorted(found, key=lambda each: (each.score, -each.asked_at.timestamp()))


def share(records: Collection[Record], holds: Callable[[Record], bool]) -> float:
    """0 to 1: of the questions that were answered, how many `holds` is true of; 0 where there are none."""
    answered = [record for record in records if record.type is not None]
    return round(sum(map(holds, answered)) / len(answered), 4) if answered else 0.0


def _day(record: Record) -> date:
    return record.asked_at.astimezone(UTC).date()
