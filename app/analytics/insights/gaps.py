"""Detects gaps, which are topics that users ask about and the documentation does not cover.

First, recorded questions that may reveal a gap are selected as candidates. Then the candidates are grouped
by meaning, and each group is checked. The answer to a single question does not show reliably whether there
is a gap: without a language model, for example, it may quote a passage that does not answer the question.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from app.analytics.insights.counts import day_of
from app.analytics.insights.gap_naming import TopicFinder, join_groups
from app.analytics.insights.grouping import (
    MAX_TEXTS,
    TextGroup,
    WordShares,
    group_texts,
)
from app.analytics.report_text import shorten
from runnables.question.query_analysis import Glossary
from schemas.answer import Confidence, Page
from schemas.insights import MAX_QUESTION_CHARS, Gap, QuestionRecord
from schemas.question import QuestionType

MIN_ANSWER_COVERAGE = 0.7
"""Coverage (see `GapQuestion.coverage`) below which a question with an unrated answer is a candidate.

Measured: the coverage is below 0.57 for three quarters of the questions about gaps, and for a quarter of
the questions that the documentation answers. The limit is higher than 0.57, so that fewer gaps are missed.
Answered questions among the candidates do no harm, because each group is checked later.
"""

MIN_ON_TOPIC_SHARE = 0.5
"""A group is about the platform if at least this share of its questions are on-topic.

Measured: 0.53 to 1 in groups about gaps, at most 0.36 in groups that are not about the platform.
"""

MIN_GAP_SIZE = 3
"""Minimum number of questions in a gap, because two questions can share a rare word by chance."""

MAX_WORDINGS = 50
"""Maximum number of wordings (distinct texts of questions) that are reported per gap."""

MAX_WORDING_CHARS = 300
"""Maximum length of a reported wording, in characters; longer wordings are truncated."""

IsDocumented = Callable[[str], bool]
"""Returns whether the documents contain a word or another form of it."""

HasPage = Callable[[Page], bool]
"""Returns whether the documents still contain a page."""


@dataclass(frozen=True)
class GapQuestion:
    """A question and properties of its answer."""

    text: str
    asked_at: datetime
    type: QuestionType
    confidence: Confidence
    cited: tuple[Page, ...] = ()
    nearest: Page | None = None
    """The page that the answer suggests or, without a suggestion, cites first."""
    feedback: int | None = None
    """The caller's rating: 1 (helpful) or -1 (not helpful); None if the answer is not rated."""
    coverage: float | None = None
    """Share (0 to 1) of the question's words that the cited chunks contain; rare words count more.

    None if unknown.
    """


def is_gap_candidate(question: GapQuestion) -> bool:
    """Return whether `question` may be about something that the documents do not cover.

    If the caller rated the answer, the rating decides. Off-topic questions are candidates, because a
    question about a topic that the documents lack can be mistaken for an off-topic question.
    """
    if question.feedback:
        return question.feedback < 0
    if question.type == "unknown" or _is_failed(question):
        return True
    if question.coverage is None:
        return question.confidence != "high"
    return question.coverage < MIN_ANSWER_COVERAGE


async def find_gaps(
    questions: Sequence[GapQuestion],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    document_word_shares: WordShares | None = None,
    is_documented: IsDocumented | None = None,
    glossary: Glossary | None = None,
    topic_finder: TopicFinder | None = None,
) -> list[TextGroup]:
    """Return the gaps among the candidates `questions`, the largest gap first.

    The members of a gap are indices into `questions`. `group_texts` explains `vectors`,
    `document_word_shares` and `glossary`. Words for which `is_documented` returns True are removed from
    `TextGroup.undocumented`. `topic_finder` asks a model to join groups with the same topic, and to name
    the topics.

    A group is a gap if it has at least `MIN_GAP_SIZE` questions, is about the platform, and meets one of
    these conditions:

    - At least half of the answers to its on-topic questions have low confidence, no citation or a negative
      rating.
    - Its questions share words that the documents lack, according to `document_word_shares`.
    """
    texts = [question.text for question in questions]
    groups = await asyncio.to_thread(
        group_texts, texts, vectors, document_word_shares=document_word_shares, glossary=glossary
    )
    if topic_finder:
        # Off-topic groups come last, because the last groups may not fit into the prompt.
        groups.sort(key=lambda group: _is_off_topic(group, questions))
        topics = await topic_finder.find_topics([_wordings(group, questions) for group in groups])
        groups = join_groups(groups, topics)
    groups = [group for group in groups if len(group.members) >= MIN_GAP_SIZE]
    if is_documented:
        groups = await asyncio.to_thread(_remove_documented_words, groups, is_documented)
    gaps = [
        group
        for group in groups
        if _is_undocumented([questions[member] for member in group.members], group)
    ]
    return sorted(gaps, key=lambda gap: (-len(gap.members), gap.members))


def _remove_documented_words(
    groups: Iterable[TextGroup], is_documented: IsDocumented
) -> list[TextGroup]:
    return [
        replace(
            group,
            undocumented=tuple(word for word in group.undocumented if not is_documented(word)),
        )
        for group in groups
    ]


def _is_off_topic(group: TextGroup, questions: Sequence[GapQuestion]) -> bool:
    return all(questions[member].type == "unknown" for member in group.members)


def _wordings(group: TextGroup, questions: Sequence[GapQuestion]) -> list[str]:
    """Return the distinct texts of the group, the representative one first."""
    members = [group.representative, *group.members]
    return list(dict.fromkeys(questions[member].text for member in members))


def _is_undocumented(questions: Sequence[GapQuestion], group: TextGroup) -> bool:
    """Return whether `group`, which consists of `questions`, is about the platform and not documented."""
    on_topic = [question for question in questions if question.type != "unknown"]
    if len(on_topic) < MIN_ON_TOPIC_SHARE * len(questions):
        return False
    failed = sum(map(_is_failed, on_topic)) * 2 >= len(on_topic)
    return failed or bool(group.undocumented)


def _is_failed(question: GapQuestion) -> bool:
    """Return whether the answer has low confidence, no citation or a negative rating."""
    return question.feedback == -1 or question.confidence == "low" or not question.cited


class GapCandidates:
    """Collects the newest gap candidates, at most `MAX_TEXTS`. Records must be added oldest first.

    If one caller repeats a question in the same words on the same day, the question counts once, so that
    retries and monitoring scripts do not create gaps. Sessions with the same API key count as different
    callers, because many people can share the key of a web page.
    """

    def __init__(self) -> None:
        self.total = 0
        """Number of candidates that were added, including those that newer ones have replaced."""
        self._newest: deque[GapQuestion] = deque(maxlen=MAX_TEXTS)
        self._day: date | None = None
        """The day of the record that was added last."""
        self._seen: set[tuple[str, str | None, str]] = set()
        """The questions of this day, as caller, session and text."""

    def add(self, record: QuestionRecord) -> None:
        """Add `record` if it is a gap candidate."""
        if record.type is None or not is_gap_candidate(question := gap_question(record)):
            return
        if self._is_new(record, question.text):
            self.total += 1
            self._newest.append(question)

    @property
    def newest_first(self) -> list[GapQuestion]:
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
    """Return the `GapQuestion` for the record of an answered question.

    In a session, the text is the standalone question, `record.understood`, if there is one.
    """
    assert record.type is not None, "the question must have been answered"
    text = record.understood if record.session and record.understood else record.question
    return GapQuestion(
        text=text[:MAX_QUESTION_CHARS],
        asked_at=record.asked_at,
        type=record.type,
        confidence=record.confidence or "low",
        cited=record.pages,
        nearest=record.nearest,
        feedback=record.feedback.score if record.feedback else None,
        coverage=record.coverage,
    )


def report_gap(
    group: TextGroup, questions: Sequence[GapQuestion], has_page: HasPage | None = None
) -> Gap:
    """Return `group` as a gap of the report. The members of `group` are indices into `questions`.

    The nearest page of the gap is the most frequent `nearest` page of its members. Deleted pages, for which
    `has_page` returns False, are skipped.
    """
    members = [questions[index] for index in group.members]
    wordings = dict.fromkeys(
        shorten(text, MAX_WORDING_CHARS) for text in _wordings(group, questions)
    )
    times = [member.asked_at for member in members]
    counts = Counter(member.nearest for member in members if member.nearest)
    pages = [page for page in counts if has_page is None or has_page(page)]
    nearest = max(pages, key=counts.__getitem__, default=None)
    missing = group.undocumented
    return Gap(
        name=group.name,
        question=shorten(questions[group.representative].text, MAX_WORDING_CHARS),
        size=len(members),
        wordings=tuple(wordings)[:MAX_WORDINGS],
        missing=tuple(word for word in missing if not _is_substring(word, missing)),
        nearest=nearest,
        first_asked=min(times),
        last_asked=max(times),
    )


def _is_substring(word: str, words: Iterable[str]) -> bool:
    """Return whether another of `words` contains `word`, as 积分 contains 积 and 分."""
    return any(word in other for other in words if other != word)
