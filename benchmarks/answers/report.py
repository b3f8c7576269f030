"""Formats the scores of the sets as Markdown tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.analytics.evaluation.answer_result import AnswerResult, AnswerScores
from app.analytics.evaluation.answer_scoring import answer_scores
from benchmarks.answers.run import OffTopic
from benchmarks.document import table

ANSWERABLE = (
    "answerable",
    "n",
    "page@5",
    "evidence@5",
    "answer",
    "answer/evidence",
    "high and wrong",
    "refused",
    "not covered",
)
UNANSWERABLE = ("unanswerable", "n", "refused, not covered or low", "high")


@dataclass(frozen=True)
class Scored:
    """The scores of every set that was measured, and of all their questions together."""

    sets: Mapping[str, AnswerScores]
    total: AnswerScores

    @classmethod
    def of(cls, results: Mapping[str, Sequence[AnswerResult]]) -> "Scored":
        """Return the scores of the results of each set."""
        sets = {name: answer_scores(found) for name, found in results.items()}
        return cls(sets, answer_scores([each for found in results.values() for each in found]))

    def rows(self) -> list[tuple[str, AnswerScores]]:
        """Return the sets in order, then the total."""
        return [*self.sets.items(), ("total", self.total)]


def answerable_table(scored: Scored) -> str:
    """Return the table of the questions that the documents answer."""
    return table(ANSWERABLE, [_answerable_row(*row) for row in scored.rows()])


def unanswerable_table(scored: Scored) -> str:
    """Return the table of the questions that the documents do not answer."""
    rows = [
        [name, str(s.unanswerable), _figure(s.honest), _figure(s.unanswerable_high)]
        for name, s in scored.rows()
        if s.unanswerable
    ]
    return table(UNANSWERABLE, rows)


def reliability_table(scored: Scored) -> str:
    """Return the table of right answers by confidence, over all questions."""
    rows = [
        [level.confidence, str(level.answers), _figure(level.right)]
        for level in scored.total.reliability
    ]
    return table(["confidence", "answers", "right"], rows)


def off_topic_table(measured: OffTopic) -> str:
    """Return the table of the questions about other things."""
    head = ["over the samples", "n", "let through", "answered", "refused"]
    off = ["off-topic", str(measured.off_topic), _figure(measured.let_through)]
    on = ["on-topic", str(measured.on_topic), "", "", _figure(measured.refused)]
    return table(head, [[*off, _figure(measured.answered), ""], on])


def tables(scored: Scored | None, off_topic: OffTopic | None) -> str:
    """Return all tables for which there are figures."""
    parts = []
    if scored:
        parts.append(answerable_table(scored))
        if scored.total.honest is not None:
            parts.append(unanswerable_table(scored))
        if scored.total.right is not None:
            parts.append(reliability_table(scored))
    if off_topic:
        parts.append(off_topic_table(off_topic))
    return "\n\n".join(parts)


def _answerable_row(name: str, scores: AnswerScores) -> list[str]:
    shares = (
        scores.page,
        scores.evidence,
        scores.right,
        scores.right_of_evidence,
        scores.high_and_wrong,
        scores.refused,
        scores.not_covered,
    )
    return [name, str(scores.answerable), *map(_figure, shares)]


def _figure(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"
