"""Selects recorded questions that may reveal a gap, and reports the gaps detected among them."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from app.analytics.insights.counts import day_of
from app.analytics.insights.gaps import DetectedGap, GapQuestion, is_gap_candidate
from app.analytics.insights.grouping import MAX_TEXTS
from app.analytics.insights.terms import MAX_QUESTION_CHARS
from schemas.answer import Page
from schemas.insights import Gap as ReportedGap
from schemas.record import QuestionRecord

MAX_WORDINGS = 50
"""Maximum number of wordings reported per gap."""

MAX_WORDING_CHARS = 300
"""Longer wordings are truncated."""


@dataclass(frozen=True)
class GapCandidate:
    """A question that may reveal a gap."""

    question: GapQuestion
    asked_at: datetime


class GapCandidates:
    """Collects the last `MAX_TEXTS` gap candidates from records, which are added oldest first.

    A question that one caller repeats in the same words on the same day counts once: retries and
    monitors would otherwise create a gap. A caller is an API key plus its session, if there is one,
    because many people can share the key of a web page.
    """

    def __init__(self) -> None:
        self.total = 0
        self._newest: deque[GapCandidate] = deque(maxlen=MAX_TEXTS)
        self._day: date | None = None
        self._seen: set[tuple[str, str | None, str]] = set()
        """Questions of the current day, by caller and text."""

    def add(self, record: QuestionRecord) -> None:
        """Add `record` if it is a gap candidate."""
        if record.type is None or not is_gap_candidate(question := gap_question(record)):
            return
        if self._is_new(record, question.text):
            self.total += 1
            self._newest.append(GapCandidate(question, record.asked_at))

    @property
    def newest_first(self) -> list[GapCandidate]:
        """The collected candidates, newest first."""
        return list(reversed(self._newest))

    def _is_new(self, record: QuestionRecord, text: str) -> bool:
        if self._day != (day := day_of(record)):
            self._day, self._seen = day, set()
        key = (record.owner, record.session, " ".join(text.casefold().split()))
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def gap_question(record: QuestionRecord) -> GapQuestion:
    """Convert the record of an answered question; a follow-up is given in its condensed form."""
    assert record.type is not None, "the question was answered"
    text = record.understood if record.session and record.understood else record.question
    return GapQuestion(
        text=text[:MAX_QUESTION_CHARS],
        type=record.type,
        confidence=record.confidence or "low",
        cited=record.pages,
        nearest=record.nearest,
        feedback=record.feedback.score if record.feedback else None,
        coverage=record.coverage,
    )


def report_gap(gap: DetectedGap, candidates: Sequence[GapCandidate]) -> ReportedGap:
    """Convert `gap`, whose members index `candidates`, to its form in the report."""
    members = [candidates[index] for index in gap.members]
    texts = [gap.representative, *(member.question.text for member in members)]
    wordings = dict.fromkeys(map(_shorten, texts))
    times = [member.asked_at for member in members]
    nearest = gap.nearest
    return ReportedGap(
        name=gap.name,
        question=_shorten(gap.representative),
        size=gap.size,
        wordings=tuple(wordings)[:MAX_WORDINGS],
        missing=tuple(word for word in gap.missing if not _is_substring(word, gap.missing)),
        nearest=nearest and Page(title=nearest.title, page_url=nearest.page_url),
        first_asked=min(times),
        last_asked=max(times),
    )


def _is_substring(word: str, words: Iterable[str]) -> bool:
    """Whether another word contains `word`: the characters of 积分 are terms of their own."""
    return any(word in other for other in words if other != word)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WORDING_CHARS else f"{line[: MAX_WORDING_CHARS - 1]}…"
