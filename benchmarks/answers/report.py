"""Formats the scores of the sets as Markdown tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.analytics.evaluation.answer_scoring import AnswerScores, ScoredAnswer, answer_scores
from benchmarks.answers.run import Measured, RefusalFigures
from benchmarks.answers.sets import EVERYDAY, Part
from benchmarks.document import prose, table

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

PART_TITLES: dict[Part, str] = {"work": "Working part", "measure": "Measuring part"}

INTRODUCTION = """
    Written by `make bench-answers`: answers without a model to developers' questions, which were written by
    people who had not seen the code ([the sets](../../benchmarks/questions/README.md)). The working part
    is for development. No decision is based on the measuring part.
"""

MEASURES = """
    The columns are shares of questions. page@5: one of the first five chunks is from a page that answers
    the question. evidence@5: these chunks state all facts that a right answer states. answer: the answer
    states all facts. answer/evidence: answer divided by evidence@5. high and wrong: the confidence is
    `high`, but the answer does not state all facts. refused: the question was refused as off-topic. not
    covered: the answer cites no source. The shares by confidence include the unanswerable questions.
    answered: a passage was quoted. all facts are read: the chunks that a model reads state all facts.
"""


@dataclass(frozen=True)
class Scored:
    """The scores of every set that was measured, and of all their questions together."""

    sets: Mapping[str, AnswerScores]
    total: AnswerScores

    @classmethod
    def of(cls, results: Mapping[str, Sequence[ScoredAnswer]]) -> "Scored":
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
    """Return the table of the share of right answers by confidence, over all questions."""
    rows = [
        [level.confidence, str(level.answers), _figure(level.right)]
        for level in scored.total.reliability
    ]
    return table(["confidence", "answers", "right"], rows)


def refusals_table(refusals: Mapping[str, RefusalFigures]) -> str:
    """Return the table of the off-topic questions, and of the on-topic questions asked with them."""
    rows = []
    for name, figures in refusals.items():
        topic = "on-topic" if name == EVERYDAY else "off-topic"
        shares = map(_figure, (figures.refused, figures.answered))
        rows.append([f"{topic}: {name}", str(figures.questions), *shares])
    return table(["over the samples", "n", "refused", "answered"], rows)


def tables(measured: Measured) -> str:
    """Return all tables for which there are results."""
    parts = []
    if measured.results:
        scored = Scored.of(measured.results)
        parts.append(answerable_table(scored))
        if scored.total.honest is not None:
            parts.append(unanswerable_table(scored))
        if scored.total.right is not None:
            parts.append(reliability_table(scored))
    if measured.refusals:
        parts.append(refusals_table(measured.refusals))
    if measured.evidence:
        head = ["APIDESK_EVIDENCE_TOKENS", *(f"{tokens:,}" for tokens in measured.evidence)]
        shares = ["all facts are read", *map(_figure, measured.evidence.values())]
        parts.append(table(head, [shares]))
    return "\n\n".join(parts)


def document_text(parts: Sequence[Measured]) -> str:
    """Return the section of docs/explanation/answers.md."""
    sections = [f"### {PART_TITLES[measured.part]}\n\n{tables(measured)}" for measured in parts]
    return "\n\n".join([prose(INTRODUCTION), *sections, prose(MEASURES)])


def retrieval_table(parts: Sequence[Measured]) -> str:
    """Return the table of page@5 and evidence@5 by set, with two columns for each part."""
    scored = [Scored.of(measured.results) for measured in parts]
    head = ["set"]
    for measured in parts:
        head += [f"{measured.part}: n", "page@5", "evidence@5"]
    rows = []
    for same in zip(*(each.rows() for each in scored), strict=True):
        shares = [
            cell
            for _, s in same
            for cell in (str(s.answerable), _figure(s.page), _figure(s.evidence))
        ]
        rows.append([same[0][0], *shares])
    return table(head, rows)


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
