"""Questions about APIs, counted.
Kept questions, counted as they come by: none of them is held.
"""

from collections import Counter, defaultdict, deque
from datetime import UTC, date

from schemas.insights import ApiCount, ErrorCount, Rated, TypeCount
from schemas.question import QuestionType
from schemas.record import Feedback, QuestionRecord

ApiKeyPair = tuple[str, str]
"""A name and a path, one of which may be empty."""


class ApiQuestionCounts:
    """Questions about each API on each day.

    A path is one API, be it named in one language or another; a name without a path is the API that
    others who use the name mean.
    """

    def __init__(self) -> None:
        self._asked: Counter[tuple[ApiKeyPair, date]] = Counter()
        self._unanswered: Counter[tuple[ApiKeyPair, date]] = Counter()

    def add(self, name: str, url: str, day: date, unanswered: bool) -> None:
        """Count a question."""
        self._asked[(name, url), day] += 1
        self._unanswered[(name, url), day] += unanswered

    @property
    def by_day(self) -> tuple[ApiCount, ...]:
        """The APIs that are asked for most come first, then it is by day."""
        known = self._known()
        asked, unanswered = _merged(self._asked, known), _merged(self._unanswered, known)
        totals: Counter[ApiKeyPair] = Counter()
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
            for api, day in sorted(asked, key=lambda place: (-totals[place[0]], place))
        )

    def _known(self) -> dict[ApiKeyPair, ApiKeyPair]:
        """Each that was asked for, with the commonest name and path that mean the same."""
        names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        urls: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for ((name, url), _), count in self._asked.items():
            if name and url:
                names[url][name] += count
                urls[name][url] += count
        apis = {api for api, _ in self._asked}
        found = {(name, url): (name, url or _commonest(urls[name])) for name, url in apis}
        return {api: (_commonest(names[url]) or name, url) for api, (name, url) in found.items()}


def _merged(
    counts: Counter[tuple[ApiKeyPair, date]], known: dict[ApiKeyPair, ApiKeyPair]
) -> Counter[tuple[ApiKeyPair, date]]:
    merged: Counter[tuple[ApiKeyPair, date]] = Counter()
    for (api, day), count in counts.items():
        merged[known[api], day] += count
    return merged


def _commonest(counts: Counter[str]) -> str:
    """The most frequent; of several the first in order."""
    return min(counts, key=lambda text: (-counts[text], text), default="")


MOST_LISTED = 1_000
"""Errors, and judged answers, that a report lists."""


class QuestionCounts:
    """What was counted so far."""

    def __init__(self) -> None:
        self.questions = 0
        self.unanswered = 0
        self._cached = 0
        self._types: Counter[tuple[date, QuestionType | None]] = Counter()
        self._apis = ApiQuestionCounts()
        self._errors: Counter[str] = Counter()
        self._judged: deque[Rated] = deque(maxlen=MOST_LISTED)

    def add(self, record: QuestionRecord) -> None:
        """Count `record`."""
        day, missed = day_of(record), is_unanswered(record)
        self.questions += 1
        self.unanswered += missed and record.type != "unknown"
        self._cached += record.cached
        self._types[day, record.type] += 1
        if record.api_name or record.api_url:
            self._apis.add(record.api_name or "", record.api_url or "", day, missed)
        if record.error:
            self._errors[record.error] += 1
        if record.feedback and record.feedback.score:
            self._judged.append(_rated(record, record.feedback))

    @property
    def off_topic_share(self) -> float:
        """0 to 1, of the questions that were answered; 0 where none was."""
        return self._share(sum(n for (_, type_), n in self._types.items() if type_ == "unknown"))

    @property
    def cached_share(self) -> float:
        """0 to 1, of the questions that were answered; 0 where none was."""
        return self._share(self._cached)

    @property
    def by_type(self) -> tuple[TypeCount, ...]:
        """Questions of each type on each day."""
        ordered = sorted(self._types.items(), key=lambda count: (count[0][0], str(count[0][1])))
        return tuple(TypeCount(day=day, type=type_, questions=n) for (day, type_), n in ordered)

    @property
    def by_api(self) -> tuple[ApiCount, ...]:
        """Questions about each API on each day; the APIs that are asked for most come first."""
        return self._apis.by_day

    @property
    def errors(self) -> tuple[ErrorCount, ...]:
        """The errors that questions name, the most frequent first."""
        commonest = self._errors.most_common(MOST_LISTED)
        return tuple(ErrorCount(error=error, questions=count) for error, count in commonest)

    @property
    def feedback(self) -> tuple[Rated, ...]:
        """The answers that were judged, the worst first, then the latest."""
        return tuple(
            sorted(self._judged, key=lambda each: (each.score, -each.asked_at.timestamp()))
        )

    def _share(self, part: int) -> float:
        answered = sum(n for (_, type_), n in self._types.items() if type_ is not None)
        return round(part / answered, 4) if answered else 0.0


def day_of(record: QuestionRecord) -> date:
    """The day in UTC."""
    return record.asked_at.astimezone(UTC).date()


def is_unanswered(record: QuestionRecord) -> bool:
    """Whether an answer was given, and gives nothing; what its caller said of it counts above all else."""
    if record.type is None:
        return False
    if record.feedback and record.feedback.score:
        return record.feedback.score < 0
    return record.confidence == "low" or not record.pages


def _rated(record: QuestionRecord, feedback: Feedback) -> Rated:
    return Rated(
        id=record.id,
        asked_at=record.asked_at,
        question=record.question,
        confidence=record.confidence,
        score=feedback.score,
        comment=feedback.comment,
    )
