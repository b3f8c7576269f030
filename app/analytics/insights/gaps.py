"""Detects gaps: topics that users ask about and the documentation does not cover.

A single answer is weak evidence, because without a language model the closest passage is quoted even if
it does not answer the question. So questions become candidates on weak evidence, and a gap is decided for
a group of candidates.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.analytics.insights.grouping import TextGroup, group_texts
from app.analytics.insights.terms import WordShares
from runnables.retrieval.glossary import Glossary
from schemas.answer import Confidence, Page
from schemas.question import QuestionType

MIN_COVERAGE = 0.7
"""Share of a question's content words that the cited chunks must contain, else it is a candidate.

Measured: three of four answered questions reach 0.57, but only one of four questions about gaps.
"""

MIN_ON_TOPIC_SHARE = 0.5
"""Share of a group's questions that must be on topic for the group to be about the platform.

Measured: 0.53 to 1 for groups about gaps, at most 0.36 for groups of off-topic questions.
"""

MIN_GAP_SIZE = 3
"""Minimum number of questions in a gap: two questions can share a rare word by chance."""


@dataclass(frozen=True)
class GapQuestion:
    """A question and properties of its answer."""

    text: str
    type: QuestionType
    confidence: Confidence
    cited: tuple[Page, ...] = ()
    nearest: Page | None = None
    """The nearest page, as suggested by an answer without citations."""
    feedback: int | None = None
    """The caller's rating: positive, negative, or None."""
    coverage: float | None = None
    """Share of the question's content words in the cited chunks; None if it was not recorded."""


@dataclass(frozen=True)
class DetectedGap:
    """A topic that is asked about and not covered."""

    representative: str
    """The question most similar to all others of the gap."""
    size: int
    members: tuple[int, ...]
    """Indices into the input questions."""
    nearest: Page | None
    """The page that most of the answers point to."""
    missing: tuple[str, ...]
    """Terms that the questions share and the documents lack."""
    name: str = ""
    """Name given by a chat model; empty without one."""


def is_gap_candidate(question: GapQuestion) -> bool:
    """Whether `question` may be about something that the documents do not cover.

    Off-topic questions are candidates, because the topic gate also rejects topics that the documents
    lack. The caller's rating takes precedence.
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
            each,
            members=tuple(candidates[member] for member in each.members),
            representative=candidates[each.representative],
        )
        for each in groups
    ]


def select_gaps(
    groups: Sequence[TextGroup],
    questions: Sequence[GapQuestion],
    *,
    documented: WordShares | None = None,
    min_size: int = MIN_GAP_SIZE,
) -> list[DetectedGap]:
    """Select the groups of `group_candidates` that are gaps, the largest first."""
    gaps = [
        _detected_gap(each, questions)
        for each in groups
        if len(each.members) >= min_size
        and _is_missing([questions[member] for member in each.members], each, documented)
    ]
    return sorted(gaps, key=lambda gap: (-gap.size, gap.members))


def _is_missing(
    members: Sequence[GapQuestion], group: TextGroup, documented: WordShares | None
) -> bool:
    """Whether the group is about the platform and the documents lack its topic."""
    on_topic = [question for question in members if question.type != "unknown"]
    if len(on_topic) < MIN_ON_TOPIC_SHARE * len(members):
        return False
    failed = sum(map(_is_failed, on_topic)) * 2 >= len(on_topic)
    return failed or (documented is not None and bool(group.undocumented))


def _is_failed(question: GapQuestion) -> bool:
    """Whether the answer has low confidence, no citation or a negative rating."""
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
