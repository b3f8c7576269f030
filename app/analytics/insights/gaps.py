"""Detects gaps, which are topics that users ask about and the documentation does not cover.

First, recorded questions that may reveal a gap are selected as candidates. Then the candidates are grouped
by meaning, and each group is checked. A single answer is not enough evidence: without a language model,
the closest passage is quoted even if it does not answer the question.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from app.analytics.insights.counts import day_of
from app.analytics.insights.grouping import MAX_TEXTS, TextGroup, group_texts
from app.analytics.insights.terms import MAX_QUESTION_CHARS, WordShares
from runnables.retrieval.query_analysis import Glossary
from schemas.answer import Confidence, Page
from schemas.insights import Gap as ReportedGap
from schemas.insights import QuestionRecord
from schemas.question import QuestionType

MIN_COVERAGE = 0.7
"""Minimum share of a question's content words in the cited chunks. Below it, the question is a candidate.

Measured: three quarters of the answered questions reach 0.57, but only a quarter of those about gaps.
"""

MIN_ON_TOPIC_SHARE = 0.5
"""Minimum share of on-topic questions at which a group is about the platform.

Measured: 0.53 to 1 in groups about gaps, at most 0.36 in groups of off-topic questions.
"""

MIN_GAP_SIZE = 3
"""Minimum number of questions in a gap, because two questions can share a rare word by chance."""

MAX_WORDINGS = 50
"""Maximum number of wordings that are reported per gap."""

MAX_WORDING_CHARS = 300
"""Maximum length of a reported wording, in characters; longer wordings are truncated."""


@dataclass(frozen=True)
class GapQuestion:
    """A question and properties of its answer."""

    text: str
    type: QuestionType
    confidence: Confidence
    cited: tuple[Page, ...] = ()
    nearest: Page | None = None
    """The nearest page, which an answer without citations suggests."""
    feedback: int | None = None
    """The caller's rating: positive, negative, or None."""
    coverage: float | None = None
    """Share of the question's content words in the cited chunks; None if it was not recorded."""


@dataclass(frozen=True)
class DetectedGap:
    """A topic that users ask about and the documents do not cover."""

    representative: str
    """The question most similar to all others of the gap."""
    size: int
    members: tuple[int, ...]
    """Indices into the input questions."""
    nearest: Page | None
    """The page that the most answers cite first or suggest; None if no answer has a page."""
    missing: tuple[str, ...]
    """Terms that the questions share and the documents lack."""
    name: str = ""
    """The chat model's name for the topic; empty if there is no chat model."""


def is_gap_candidate(question: GapQuestion) -> bool:
    """Return whether `question` may be about something that the documents do not cover.

    Off-topic questions are candidates, because the topic gate also rejects topics that the documents
    lack. If the caller rated the answer, the rating decides.
    """
    if question.feedback:
        return question.feedback < 0
    if question.type == "unknown" or _is_failed(question):
        return True
    if question.coverage is None:
        return question.confidence != "high"
    return question.coverage < MIN_COVERAGE


def find_gaps(
    questions: Sequence[GapQuestion],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
    min_size: int = MIN_GAP_SIZE,
) -> list[DetectedGap]:
    """Detect the gaps among `questions`, the largest first; see `group_texts` for the arguments.

    Pass the newest questions first, because at most `grouping.MAX_TEXTS` candidates are grouped.
    Without `documented`, only failed answers reveal a gap.
    """
    groups = group_candidates(questions, vectors, documented=documented, glossary=glossary)
    return select_gaps(groups, questions, documented=documented, min_size=min_size)


def group_candidates(
    questions: Sequence[GapQuestion],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
) -> list[TextGroup]:
    """Group the candidates among `questions` by meaning; members are indices into `questions`."""
    candidates = [index for index, question in enumerate(questions) if is_gap_candidate(question)]
    groups = group_texts(
        [questions[index].text for index in candidates],
        [vectors[index] for index in candidates] if vectors else None,
        documented=documented,
        glossary=glossary,
    )
    return [
        replace(
            group,
            members=tuple(candidates[member] for member in group.members),
            representative=candidates[group.representative],
        )
        for group in groups
    ]


def select_gaps(
    groups: Sequence[TextGroup],
    questions: Sequence[GapQuestion],
    *,
    documented: WordShares | None = None,
    min_size: int = MIN_GAP_SIZE,
) -> list[DetectedGap]:
    """Return the gaps among `groups`, which come from `group_candidates`, the largest gap first."""
    gaps = [
        _detected_gap(group, questions)
        for group in groups
        if len(group.members) >= min_size
        and _is_missing([questions[member] for member in group.members], group, documented)
    ]
    return sorted(gaps, key=lambda gap: (-gap.size, gap.members))


def _is_missing(
    members: Sequence[GapQuestion], group: TextGroup, documented: WordShares | None
) -> bool:
    """Return whether the group is about the platform and the documents lack its topic."""
    on_topic = [question for question in members if question.type != "unknown"]
    if len(on_topic) < MIN_ON_TOPIC_SHARE * len(members):
        return False
    failed = sum(map(_is_failed, on_topic)) * 2 >= len(on_topic)
    return failed or (documented is not None and bool(group.undocumented))


def _is_failed(question: GapQuestion) -> bool:
    """Return whether the answer has low confidence, no citation or a negative rating."""
    disliked = question.feedback is not None and question.feedback < 0
    return disliked or question.confidence == "low" or not question.cited


def _detected_gap(group: TextGroup, questions: Sequence[GapQuestion]) -> DetectedGap:
    pages = Counter(page for index in group.members for page in _pages(questions[index]))
    return DetectedGap(
        representative=questions[group.representative].text,
        size=len(group.members),
        members=group.members,
        nearest=max(pages, key=pages.__getitem__, default=None),
        missing=group.undocumented,
        name=group.name,
    )


def _pages(question: GapQuestion) -> tuple[Page, ...]:
    return (question.nearest,) if question.nearest else question.cited[:1]


@dataclass(frozen=True)
class GapCandidate:
    """A question that may reveal a gap."""

    question: GapQuestion
    asked_at: datetime


class GapCandidates:
    """Collects the newest gap candidates, at most `MAX_TEXTS`. Records are added oldest first.

    If one caller repeats a question in the same words on the same day, it counts once, because retries
    and monitors would otherwise create a gap. A caller is an API key together with its session, if there
    is one, because many people can share the key of a web page.
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
    """Convert the record of an answered question; a follow-up is converted in its condensed form."""
    assert record.type is not None, "the question must have been answered"
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
    """Convert `gap` to its format in the report; the members of `gap` are indices into `candidates`."""
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
    """Return whether another word contains `word`, as 积分 contains the terms 积 and 分."""
    return any(word in other for other in words if other != word)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WORDING_CHARS else f"{line[: MAX_WORDING_CHARS - 1]}…"
