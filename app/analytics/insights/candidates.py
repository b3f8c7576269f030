"""Kept questions that may show a gap: the newest, as many as are grouped."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from app.analytics.insights.counts import day_of
from app.analytics.insights.gaps import DetectedGap, GapQuestion, is_gap
from app.analytics.insights.grouping import MOST_TEXTS
from app.analytics.insights.terms import LONGEST_TEXT
from schemas.answer import Page
from schemas.insights import Gap as ReportedGap
from schemas.record import QuestionRecord

MOST_WORDINGS = 50
"""Wordings of a gap that are shown."""

LONGEST_WORDING = 300
"""Characters of a wording that are shown."""


@dataclass(frozen=True)
class GapCandidate:
    """A question that may show a gap."""

    question: GapQuestion
    asked_at: datetime


class GapCandidates:
    """Takes records, oldest first, and holds the last `MOST_TEXTS` that may show a gap.

    What one caller asks again in the same words on the same day counts once: that is a retry, an
    impatient click or a monitor, and would make a gap, or the largest one, of one person's need. A
    caller is a key and, where there is one, its session: behind the key of a web page are many people.
    Others who use the same words count each.
    """

    def __init__(self) -> None:
        self.total = 0
        self._newest: deque[GapCandidate] = deque(maxlen=MOST_TEXTS)
        self._day: date | None = None
        self._seen: set[tuple[str, str | None, str]] = set()
        """Of the day: records come in order."""

    def add(self, record: QuestionRecord) -> None:
        """Take `record`, if it is a suspect."""
        if record.type is None or not is_gap(question := asked_question(record)):
            return
        if self._is_new(record, question.text):
            self.total += 1
            self._newest.append(GapCandidate(question, record.asked_at))

    @property
    def newest_first(self) -> list[GapCandidate]:
        """Those that are held."""
        return list(reversed(self._newest))

    def _is_new(self, record: QuestionRecord, text: str) -> bool:
        if self._day != (day := day_of(record)):
            self._day, self._seen = day, set()
        asking = (record.owner, record.session, " ".join(text.casefold().split()))
        if asking in self._seen:
            return False
        self._seen.add(asking)
        return True


def asked_question(record: QuestionRecord) -> GapQuestion:
    """An answered question as gaps are found in; a follow-up as it was understood."""
    assert record.type is not None, "it got an answer"
    text = record.understood if record.session and record.understood else record.question
    return GapQuestion(
        text=text[:LONGEST_TEXT],
        type=record.type,
        confidence=record.confidence or "low",
        cited=record.pages,
        nearest=record.nearest,
        feedback=record.feedback.score if record.feedback else None,
        coverage=record.coverage,
    )


def described(gap: DetectedGap, suspects: Sequence[GapCandidate]) -> ReportedGap:
    """`gap`, found among `suspects`, as it is reported."""
    members = [suspects[index] for index in gap.members]
    texts = [gap.typical, *(member.question.text for member in members)]
    wordings = dict.fromkeys(map(_shown, texts))
    moments = [member.asked_at for member in members]
    nearest = gap.nearest
    return ReportedGap(
        name=gap.name,
        question=_shown(gap.typical),
        size=gap.size,
        wordings=tuple(wordings)[:MOST_WORDINGS],
        missing=tuple(word for word in gap.missing if not _is_part(word, gap.missing)),
        nearest=nearest and Page(title=nearest.title, page_url=nearest.page_url),
        first_asked=min(moments),
        last_asked=max(moments),
    )


def _is_part(word: str, words: Iterable[str]) -> bool:
    """Whether another of `words` holds `word`: of 积分 the characters are terms too."""
    return any(word in other for other in words if other != word)


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_WORDING else f"{line[: LONGEST_WORDING - 1]}…"
