"""Counts recorded questions by type, by API and by the error that they name. Collects rated answers."""

from collections import Counter, defaultdict, deque
from datetime import UTC, date

from schemas.insights import (
    ApiCount,
    ErrorCount,
    Feedback,
    Insights,
    QuestionRecord,
    RatedAnswer,
    TypeCount,
)
from schemas.question import QuestionType

MAX_LISTED = 1_000
"""Maximum number of errors, and of rated answers, in a report. The latest rated answers are kept."""

ApiIdentity = tuple[str, str]
"""Name and path of an API; one of them may be empty."""


class ApiQuestionCounts:
    """Counts questions per API and day.

    Questions about the same path are counted together, whatever name they use. A name without a path is
    resolved to the path that it most often occurs with.
    """

    def __init__(self) -> None:
        self._asked: Counter[tuple[ApiIdentity, date]] = Counter()
        self._unanswered: Counter[tuple[ApiIdentity, date]] = Counter()

    def add(self, name: str, url: str, day: date, unanswered: bool) -> None:
        """Count a question."""
        self._asked[(name, url), day] += 1
        self._unanswered[(name, url), day] += unanswered

    @property
    def by_day(self) -> tuple[ApiCount, ...]:
        """Counts per API and day. The API with the most questions comes first; its days are in order."""
        resolved = self._resolve_apis()
        asked, unanswered = _merge(self._asked, resolved), _merge(self._unanswered, resolved)
        totals: Counter[ApiIdentity] = Counter()
        for (api, _), count in asked.items():
            totals[api] += count
        return tuple(
            ApiCount(
                day=day,
                api_name=api[0],
                api_url=api[1],
                questions=asked[api, day],
                unanswered=unanswered[api, day],
            )
            for api, day in sorted(asked, key=lambda key: (-totals[key[0]], key))
        )

    def _resolve_apis(self) -> dict[ApiIdentity, ApiIdentity]:
        """Map each API to the name and path under which it is counted."""
        names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        urls: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for ((name, url), _), count in self._asked.items():
            if name and url:
                names[url][name] += count
                urls[name][url] += count
        apis = {api for api, _ in self._asked}
        with_url = {(name, url): (name, url or _most_common(urls[name])) for name, url in apis}
        return {
            api: (_most_common(names[url]) or name, url) for api, (name, url) in with_url.items()
        }


def _merge(
    counts: Counter[tuple[ApiIdentity, date]], resolved: dict[ApiIdentity, ApiIdentity]
) -> Counter[tuple[ApiIdentity, date]]:
    merged: Counter[tuple[ApiIdentity, date]] = Counter()
    for (api, day), count in counts.items():
        merged[resolved[api], day] += count
    return merged


def _most_common(counts: Counter[str]) -> str:
    """Return the most frequent text, or an empty text if there is none.

    Of equally frequent texts, return the alphabetically first.
    """
    return min(counts, key=lambda text: (-counts[text], text), default="")


class QuestionCounts:
    """Counts recorded questions, and keeps the latest rated answers."""

    def __init__(self) -> None:
        self._questions = 0
        self._unanswered = 0
        self._cached = 0
        self._types: Counter[tuple[date, QuestionType | None]] = Counter()
        self._apis = ApiQuestionCounts()
        self._errors: Counter[str] = Counter()
        self._rated: deque[RatedAnswer] = deque(maxlen=MAX_LISTED)

    def add(self, record: QuestionRecord) -> None:
        """Count `record`."""
        day, unanswered = day_of(record), is_unanswered(record)
        self._questions += 1
        self._unanswered += unanswered and record.type != "unknown"
        self._cached += record.cached
        self._types[day, record.type] += 1
        if record.api_name or record.api_url:
            self._apis.add(record.api_name or "", record.api_url or "", day, unanswered)
        if record.error:
            self._errors[record.error] += 1
        if record.feedback and record.feedback.score:
            self._rated.append(_rated_answer(record, record.feedback))

    def report(self, days: int) -> Insights:
        """Return the report, with `gaps` empty. `days` is the number of days that the records cover."""
        types = sorted(self._types.items(), key=lambda item: (item[0][0], str(item[0][1])))
        with_answer = sum(count for (_, type_), count in types if type_ is not None)
        off_topic = sum(count for (_, type_), count in types if type_ == "unknown")
        return Insights(
            days=days,
            questions=self._questions,
            unanswered=self._unanswered,
            off_topic_share=round(off_topic / with_answer, 4) if with_answer else 0.0,
            cached_share=round(self._cached / with_answer, 4) if with_answer else 0.0,
            by_type=tuple(
                TypeCount(day=day, type=type_, questions=count) for (day, type_), count in types
            ),
            by_api=self._apis.by_day,
            errors=tuple(
                ErrorCount(error=error, questions=count)
                for error, count in self._errors.most_common(MAX_LISTED)
            ),
            feedback=tuple(
                sorted(self._rated, key=lambda rated: (rated.score, -rated.asked_at.timestamp()))
            ),
        )


def day_of(record: QuestionRecord) -> date:
    """Return the day on which the question was asked, in UTC."""
    return record.asked_at.astimezone(UTC).date()


def is_unanswered(record: QuestionRecord) -> bool:
    """Return whether the question got an answer that does not help.

    If the caller rated the answer, the rating decides. After an error, there is no answer, and the result
    is False, because the error says nothing about the documentation.
    """
    if record.type is None:
        return False
    if record.feedback and record.feedback.score:
        return record.feedback.score < 0
    return record.confidence == "low" or not record.pages


def _rated_answer(record: QuestionRecord, feedback: Feedback) -> RatedAnswer:
    return RatedAnswer(
        id=record.id,
        asked_at=record.asked_at,
        question=record.question,
        confidence=record.confidence,
        score=feedback.score,
        comment=feedback.comment,
    )
