"""Scores answers by rules, and lets a judge model grade them.

The judge compares an answer with the facts that a right answer states.
`apidesk evaluate --answers --json` prints an `AnswerEvaluation`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from app.analytics.evaluation.dataset import EvaluationQuestion, Fact, GoldDocuments
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_judge_model
from runnables.models.structured_output import StructuredOutputCall
from runnables.run_context import with_deadline
from schemas.answer import Answer, Confidence, Source
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.errors import ConfigurationError, ModelError
from schemas.model_output import ModelOutput
from schemas.settings import Settings

SCORED_CHUNKS = 5
"""Number of retrieved chunks that are searched for the facts, and compared with the gold documents."""

Outcome = Literal["answered", "not_covered", "refused"]
"""How the service dealt with a question.

- `refused`: The answer says that the question is off-topic, and suggests no pages.
- `answered`: Any other answer that cites a source.
- `not_covered`: Any other answer that cites no source.
"""

CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)

CITATION = re.compile(r"\[(\d+)\]")
"""A citation in an answer, such as [1]."""

_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")

Grade = Literal["correct", "partly", "wrong"]

GRADES: tuple[Grade, ...] = get_args(Grade)


class RetrievedSection(ApiModel):
    """A retrieved chunk."""

    document: str
    """Document key: `source/document_id`."""
    title: str
    section: str
    relevant: bool
    """Whether the chunk belongs to a gold document."""


class ScoredAnswer(ApiModel):
    """A question, its retrieved chunks and, if the question was asked, its answer."""

    id: str
    question: str
    kind: str
    gold: tuple[str, ...]
    facts: tuple[Fact, ...]
    unanswerable: bool
    """Whether the question has neither gold documents nor facts. If so, a right answer cites no source."""
    retrieved: tuple[RetrievedSection, ...]
    """The first five chunks."""
    has_page: bool | None = Field(alias="page")
    """Whether the first five chunks include a gold document; None if the question has no gold document."""
    has_evidence: bool | None = Field(alias="evidence")
    """Whether the first five chunks state all facts; None if the question has no facts."""
    missing_evidence: tuple[Fact, ...]
    """The facts that the first five chunks do not state."""
    outcome: Outcome | None = None
    """None if only retrieval was measured. In this case, the fields below have their default values."""
    confidence: Confidence | None = None
    right: bool | None = None
    """Whether the answer is right.

    - Answerable question: whether the answer states all facts; None if the question has no facts.
    - Unanswerable question: whether the outcome is `refused` or `not_covered`.
    """
    missing_facts: tuple[Fact, ...] = ()
    """The facts that the answer does not state."""
    steps: tuple[str, ...] = ()
    """The steps of the answer."""
    grounded: bool | None = None
    """Whether no step is `unsupported` and no fact `unverified`; None if the outcome is not `answered`."""
    grade: Grade | None = None
    """The judge's grade; None if the judge failed or was not asked."""
    judge_failure: str | None = None
    """Why the judge gave no grade; None if the judge gave a grade or was not asked."""
    degraded: str | None = None
    """The code of a DegradedReason; None if the answer is not degraded."""

    @property
    def is_honest(self) -> bool:
        """Whether the answer does not claim to know: refused, not covered, or confidence `low`."""
        return self.outcome != "answered" or self.confidence == "low"


class Reliability(ApiModel):
    """How reliable a confidence level is: the share of right answers among the answers with this level.

    Only answers that cite a source are counted, and only if the question has facts or is unanswerable.
    """

    confidence: Confidence
    answers: int
    """Number of counted answers with this level."""
    right: float | None
    """Share of right answers; None if there are no answers."""


class AnswerScores(ApiModel):
    """The scores of a set of questions, as counts and shares.

    A question counts only for the shares that apply to it. For example, a question without facts does not
    count for `right`. A share is None if no question counts for it.
    """

    answerable: int
    """Number of answerable questions, which have gold documents or facts."""
    page: float | None
    """Share of the answerable questions whose first five chunks include a gold document."""
    evidence: float | None
    """Share of the answerable questions whose first five chunks state all facts."""
    right: float | None
    """Share of the answerable questions whose answer states all facts."""
    right_of_evidence: float | None
    """`right` divided by `evidence`; can exceed 1. None if either is None, or if `evidence` is 0."""
    high_and_wrong: float | None
    """Share of the answerable questions whose answer has confidence `high`, but is not right."""
    refused: float | None
    """Share of the answerable questions that were refused as off-topic."""
    not_covered: float | None
    """Share of the answerable questions that were not refused, but whose answer cites no source."""
    grounded: float | None
    """Share of grounded answers among the answers that cite a source."""
    correct: float | None
    """Share of the answerable questions whose answer the judge grades as correct.

    An answer that cites no source is not correct. Questions for which the judge failed do not count. None
    if no answer has a grade.
    """
    agreement: float | None
    """Share of the graded answers for which the judge (`correct`) and the facts (`right`) agree."""
    unanswerable: int
    """Number of unanswerable questions, which have neither gold documents nor facts."""
    honest: float | None
    """Share of unanswerable questions that were refused, not covered or answered with confidence `low`."""
    unanswerable_high: float | None
    """Share of the unanswerable questions that were answered with confidence `high`."""
    reliability: tuple[Reliability, ...]
    """One entry per confidence level, highest first."""


class AnswerEvaluation(ApiModel):
    """The result of `apidesk evaluate --answers`."""

    platform: str
    documents: int
    repeated: int = 0
    """Number of questions that were left out, because they repeat an earlier one in the file."""
    answered_by: str
    """The configured chat model, or `extractive`."""
    judge: str | None
    """The model that graded the answers; None if there is no judge."""
    scores: AnswerScores
    grades: dict[Grade, int] | None
    """Number of answers with each grade; None if there is no judge."""
    experiments: tuple[str, ...] = ()
    """Names of the LangSmith experiments."""
    questions: tuple[ScoredAnswer, ...]


def score_retrieval(
    question: EvaluationQuestion, gold: GoldDocuments, sources: Sequence[Source]
) -> ScoredAnswer:
    """Return the result of retrieval; only the first five of `sources` count."""
    relevant = frozenset[str]().union(*gold)
    retrieved = tuple(_section(source, relevant) for source in sources[:SCORED_CHUNKS])
    missing = missing_facts(question.facts, "\n\n".join(map(_source_text, sources[:SCORED_CHUNKS])))
    return ScoredAnswer(
        id=question.id,
        question=question.question,
        kind=question.kind,
        gold=question.gold,
        facts=question.facts,
        unanswerable=question.has_no_answer,
        retrieved=retrieved,
        has_page=any(section.relevant for section in retrieved) if gold else None,
        has_evidence=not missing if question.facts else None,
        missing_evidence=tuple(missing),
    )


def score_answer(result: ScoredAnswer, answer: Answer) -> ScoredAnswer:
    """Return `result` with the scores of `answer`."""
    outcome = outcome_of(answer)
    missing = missing_facts(result.facts, _without_citations(answer))
    right = not missing if result.facts else None
    if result.unanswerable:
        right = outcome != "answered"
    return result.model_copy(
        update={
            "outcome": outcome,
            "confidence": answer.confidence,
            "right": right,
            "missing_facts": tuple(missing),
            "steps": tuple(answer.answer),
            "grounded": not (answer.unsupported or answer.unverified)
            if outcome == "answered"
            else None,
            "degraded": answer.degraded,
        }
    )


def outcome_of(answer: Answer) -> Outcome:
    """Return the outcome of `answer`, as defined by `Outcome`."""
    if answer.type == "unknown" and not answer.nearest:
        return "refused"
    numbers = {source.number for source in answer.sources}
    cited = {int(number) for step in answer.answer for number in CITATION.findall(step)}
    return "answered" if cited & numbers else "not_covered"


def answer_scores(results: Sequence[ScoredAnswer]) -> AnswerScores:
    """Compute the scores of all `results` together."""
    answerable = [result for result in results if not result.unanswerable]
    unanswerable = [result for result in results if result.unanswerable]
    asked = [result for result in answerable if result.outcome]
    with_facts = [result for result in asked if result.right is not None]
    evidence = _share(result.has_evidence for result in answerable)
    right = _share(result.right for result in with_facts)
    asked_unanswerable = [result for result in unanswerable if result.outcome]
    return AnswerScores(
        answerable=len(answerable),
        page=_share(result.has_page for result in answerable),
        evidence=evidence,
        right=right,
        right_of_evidence=right / evidence if right is not None and evidence else None,
        high_and_wrong=_share(r.confidence == "high" and not r.right for r in with_facts),
        refused=_share(result.outcome == "refused" for result in asked),
        not_covered=_share(result.outcome == "not_covered" for result in asked),
        grounded=_share(result.grounded for result in results),
        correct=_correct(with_facts),
        agreement=_share((r.grade == "correct") == r.right for r in with_facts if r.grade),
        unanswerable=len(unanswerable),
        honest=_share(r.is_honest for r in asked_unanswerable),
        unanswerable_high=_share(
            r.outcome == "answered" and r.confidence == "high" for r in asked_unanswerable
        ),
        reliability=tuple(_reliability(results, confidence) for confidence in CONFIDENCES),
    )


def question_scores(result: ScoredAnswer) -> dict[str, float]:
    """Return the scores that apply to one question, by the names shown in LangSmith."""
    scores = {
        "page": result.has_page,
        "evidence": result.has_evidence,
        "right": result.right,
        "grounded": result.grounded,
        "correct": result.grade == "correct" if result.grade else None,
    }
    return {name: float(value) for name, value in scores.items() if value is not None}


def _correct(results: Sequence[ScoredAnswer]) -> float | None:
    """Return the share of correct answers, or None if there are no grades."""
    if not any(result.grade for result in results):
        return None
    return _share(r.grade == "correct" for r in results if r.judge_failure is None)


def _reliability(results: Sequence[ScoredAnswer], confidence: Confidence) -> Reliability:
    rights = [
        result.right
        for result in results
        if result.confidence == confidence
        and result.outcome == "answered"
        and result.right is not None
    ]
    return Reliability(confidence=confidence, answers=len(rights), right=_share(rights))


def _section(source: Source, relevant: frozenset[str]) -> RetrievedSection:
    document = f"{source.source}/{source.document_id}"
    return RetrievedSection(
        document=document,
        title=source.title,
        section=source.section,
        relevant=document in relevant,
    )


def _source_text(source: Source) -> str:
    return "\n".join([source.title, source.section, source.api_name, source.api_url, source.text])


def _without_citations(answer: Answer) -> str:
    numbers = {str(source.number) for source in answer.sources}
    text = "\n".join(answer.answer)
    return CITATION.sub(lambda match: "" if match[1] in numbers else match[0], text)


def _share(values: Iterable[bool | None]) -> float | None:
    """Return the share of true values among those that are not None, or None if all are None."""
    counted = [value for value in values if value is not None]
    return fmean(counted) if counted else None


def normalise_text(text: str) -> str:
    """Normalise `text`: NFKC, case-folded, with single spaces, without Markdown emphasis and escapes."""
    plain = _EMPHASIS.sub("", _ESCAPE.sub(r"\1", unicodedata.normalize("NFKC", text)))
    return _SPACE.sub(" ", plain).strip().casefold()


def missing_facts(facts: Sequence[Fact], text: str) -> list[Fact]:
    """Return the facts that `text` does not state.

    A text states a fact if it contains one of the fact's alternatives. The text and the alternatives are
    compared in the form that `normalise_text` returns.
    """
    normalised = normalise_text(text)
    return [
        fact
        for fact in facts
        if not any(normalise_text(alternative) in normalised for alternative in fact)
    ]


# --- the judge ------------------------------------------------------------------------------------


class AnswerGrade(ModelOutput):
    """The reply of the judge."""

    grade: Grade = Field(description="correct, partly or wrong")


class Judgement(NamedTuple):
    """The grade of one answer, or the reason why there is none."""

    grade: Grade | None
    failure: str | None
    """The message of the ModelError; None if there is a grade."""


class AnswerJudge:
    """Lets `model` grade answers, within `timeout_s` seconds per answer."""

    def __init__(self, model: ChatModel, language: Language, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall("grade", "grade", language, AnswerGrade)

    @property
    def name(self) -> str:
        """The model's `provider:model`."""
        return self._model.name

    async def judge(self, question: str, facts: Sequence[Fact], steps: Sequence[str]) -> Judgement:
        """Grade the answer that consists of `steps`. If the model fails, `Judgement.failure` is set."""
        variables = {"facts": facts, "question": question, "written": "\n".join(steps)}
        config = with_deadline({}, self._timeout_s)
        try:
            reply = await self._output.ask(self._model, variables, config)
        except ModelError as error:
            return Judgement(None, str(error))
        return Judgement(reply.value.grade, None)


def open_answer_judge(
    settings: Settings, model: str | None, language: Language
) -> AnswerJudge | None:
    """Return a judge that calls `model` or, by default, APIDESK_JUDGE_MODEL; None if neither is set.

    The prompt of the judge is in `language`. Raises ConfigurationError if the model is invalid.
    """
    if model is not None:
        settings = settings.model_copy(update={"judge_model": model})
    opened = open_judge_model(settings)
    if opened is None and model is not None:
        raise ConfigurationError("--judge: must not be empty")
    return AnswerJudge(opened, language, settings.request_timeout) if opened else None


def count_grades(grades: Iterable[Grade | None]) -> dict[Grade, int]:
    """Return how often each grade occurs in `grades`. None is not counted."""
    counts = Counter(grades)
    return {grade: counts[grade] for grade in GRADES}
