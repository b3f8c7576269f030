"""What the documentation does not answer: topics that people ask about and it does not hold.

A single answer says little of that. Without a language model the desk quotes what comes closest, and calls
it sound; so a question is suspected on weak evidence, and its group decides. Figures: docs/insights.md.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.analytics.insights.grouping import TextGroup, group
from app.analytics.insights.terms import WordShares
from runnables.grounding.support import coverage
from runnables.retrieval.query_analysis import Glossary
from schemas.answer import Confidence, Page
from schemas.question import QuestionType

__all__ = [
    "DetectedGap",
    "GapQuestion",
    "coverage",
    "find_gaps",
    "gaps_of",
    "group_suspects",
    "is_gap",
]

COVERED = 0.7
"""Part of a question's telling words that what is cited holds when the question is answered.

Plain questions that the documents answer reach 0.57 in three of four cases, those about gaps in one of
four. It only picks suspects.
"""

ON_TOPIC = 0.5
"""Part of a group's questions that the topic gate let through when the group is about the platform.

Of groups about gaps it let 0.53 to 1 through, of groups of off-topic questions at most 0.36.
"""

SMALLEST = 3
"""Questions that make a gap; two have a rare word in common by chance."""


@dataclass(frozen=True)
class GapQuestion:
    """A question, and how its answer turned out."""

    text: str
    type: QuestionType
    confidence: Confidence
    cited: tuple[Page, ...] = ()
    nearest: Page | None = None
    """Where to look instead, as the answer named it."""
    feedback: int | None = None
    """Above 0 where the caller was content, below where not."""
    coverage: float | None = None
    """What `coverage` gave for it, where that was kept."""


@dataclass(frozen=True)
class DetectedGap:
    """A topic that is asked about and not answered."""

    typical: str
    """The wording that is most like all others."""
    size: int
    members: tuple[int, ...]
    """Places among the questions that were given."""
    nearest: Page | None
    """The page that most of its answers came to."""
    missing: tuple[str, ...]
    """Words that its questions share and the documents do not hold."""
    name: str = ""
    """What a model calls it, where one was asked."""


def is_gap(question: GapQuestion) -> bool:
    """Whether `question` may be about something that the documents do not answer.

    Refused ones may be: a topic that the documents do not hold is off topic to the gate. What the caller
    said of the answer counts above all else.
    """
    if question.feedback:
        return question.feedback < 0
    if question.type == "unknown" or _failed(question):
        return True
    if question.coverage is None:
        return question.confidence != "high"
    return question.coverage < COVERED


def find_gaps(
    questions: Sequence[GapQuestion],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
    smallest: int = SMALLEST,
) -> list[DetectedGap]:
    """The gaps that `questions` show, the largest first. Arguments as `group` takes them.

    Give the newest questions first: of the suspects no more than `grouping.MOST_TEXTS` are grouped.
    Without `documented` only answers that failed tell a gap.
    """
    groups = group_suspects(questions, vectors, documented=documented, glossary=glossary)
    return gaps_of(groups, questions, documented=documented, smallest=smallest)


def group_suspects(
    questions: Sequence[GapQuestion],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
) -> list[TextGroup]:
    """The suspects of `questions` grouped by meaning; members are places among `questions`."""
    suspects = [index for index, question in enumerate(questions) if is_gap(question)]
    groups = group(
        [questions[index].text for index in suspects],
        [vectors[index] for index in suspects] if vectors else None,
        documented=documented,
        glossary=glossary,
    )
    return [
        replace(
            each,
            members=tuple(suspects[member] for member in each.members),
            typical=suspects[each.typical],
        )
        for each in groups
    ]


def gaps_of(
    groups: Sequence[TextGroup],
    questions: Sequence[GapQuestion],
    *,
    documented: WordShares | None = None,
    smallest: int = SMALLEST,
) -> list[DetectedGap]:
    """Those of `groups` that show a gap, the largest first; `groups` are as `group_suspects` gives them."""
    found = [
        _gap(each, questions)
        for each in groups
        if len(each.members) >= smallest
        and _is_missing([questions[member] for member in each.members], each, documented)
    ]
    return sorted(found, key=lambda gap: (-gap.size, gap.members))


def _is_missing(
    members: Sequence[GapQuestion], found: TextGroup, documented: WordShares | None
) -> bool:
    """Whether a group is about the platform, and the documents do not hold its topic."""
    on_topic = [question for question in members if question.type != "unknown"]
    if len(on_topic) < ON_TOPIC * len(members):
        return False
    failed = sum(map(_failed, on_topic)) * 2 >= len(on_topic)
    return failed or (documented is not None and bool(found.undocumented))


def _failed(question: GapQuestion) -> bool:
    """Whether an answer was given up, or complained about."""
    disliked = question.feedback is not None and question.feedback < 0
    return disliked or question.confidence == "low" or not question.cited


def _gap(found: TextGroup, questions: Sequence[GapQuestion]) -> DetectedGap:
    pages = Counter(page for index in found.members for page in _pages(questions[index]))
    return DetectedGap(
        typical=questions[found.typical].text,
        size=len(found.members),
        members=found.members,
        nearest=max(pages, key=pages.__getitem__, default=None),
        missing=found.undocumented,
        name=found.name,
    )


def _pages(question: GapQuestion) -> tuple[Page, ...]:
    return (question.nearest,) if question.nearest else question.cited[:1]
