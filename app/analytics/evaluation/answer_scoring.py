"""Scores answers against the facts of their questions."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from statistics import fmean

from app.analytics.evaluation.answer_result import (
    CONFIDENCES,
    AnswerScores,
    K,
    Outcome,
    Reliability,
    RetrievedSection,
    ScoredAnswer,
)
from app.analytics.evaluation.dataset import EvaluationQuestion, Fact
from app.analytics.evaluation.measures import GoldDocuments
from schemas.answer import Answer, Confidence, Source

_CITATION = re.compile(r"\[(\d+)\]")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")


def score_retrieval(
    question: EvaluationQuestion, gold: GoldDocuments, sources: Sequence[Source]
) -> ScoredAnswer:
    """Return the result of retrieval; only the first five of `sources` count."""
    relevant = frozenset[str]().union(*gold)
    retrieved = tuple(_section(source, relevant) for source in sources[:K])
    missing = missing_facts(question.facts, "\n\n".join(map(_source_text, sources[:K])))
    return ScoredAnswer(
        id=question.id,
        question=question.question,
        kind=question.kind,
        gold=question.gold,
        facts=question.facts,
        unanswerable=question.is_unanswerable,
        retrieved=retrieved,
        page=any(section.relevant for section in retrieved) if gold else None,
        evidence=not missing if question.facts else None,
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
            "degraded": answer.degraded,
        }
    )


def outcome_of(answer: Answer) -> Outcome:
    """Return whether `answer` refuses, says that the documents do not cover the question, or answers."""
    if answer.type == "unknown":
        return "refused"
    numbers = {source.number for source in answer.sources}
    cited = {int(number) for step in answer.answer for number in _CITATION.findall(step)}
    return "answered" if cited & numbers else "not_covered"


def answer_scores(results: Sequence[ScoredAnswer]) -> AnswerScores:
    """Return the shares over `results`."""
    answerable = [result for result in results if not result.unanswerable]
    unanswerable = [result for result in results if result.unanswerable]
    asked = [result for result in answerable if result.outcome]
    graded = [result for result in asked if result.right is not None]
    evidence = _share(result.evidence for result in answerable)
    right = _share(result.right for result in graded)
    said = [result for result in unanswerable if result.outcome]
    high = [result.outcome == "answered" and result.confidence == "high" for result in said]
    return AnswerScores(
        answerable=len(answerable),
        page=_share(result.page for result in answerable),
        evidence=evidence,
        right=right,
        right_of_evidence=right / evidence if right is not None and evidence else None,
        high_and_wrong=_share(r.confidence == "high" and not r.right for r in graded),
        refused=_share(result.outcome == "refused" for result in asked),
        not_covered=_share(result.outcome == "not_covered" for result in asked),
        unanswerable=len(unanswerable),
        honest=_share(r.outcome != "answered" or r.confidence == "low" for r in said),
        unanswerable_high=_share(high),
        reliability=tuple(_reliability(results, confidence) for confidence in CONFIDENCES),
    )


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
    """Return what a reader of the chunk sees: its headings, API and text."""
    return "\n".join([source.title, source.section, source.api_name, source.api_url, source.text])


def _without_citations(answer: Answer) -> str:
    numbers = {str(source.number) for source in answer.sources}
    text = "\n".join(answer.answer)
    return _CITATION.sub(lambda match: "" if match[1] in numbers else match[0], text)


def _share(values: Iterable[bool | None]) -> float | None:
    """Return the share of true values among those that are not None; None without any."""
    counted = [value for value in values if value is not None]
    return fmean(counted) if counted else None


def normalise_text(text: str) -> str:
    """Return `text` in NFKC and case-folded, with single spaces, without Markdown emphasis and escapes."""
    plain = _EMPHASIS.sub("", _ESCAPE.sub(r"\1", unicodedata.normalize("NFKC", text)))
    return _SPACE.sub(" ", plain).strip().casefold()


def missing_facts(facts: Sequence[Fact], text: str) -> list[Fact]:
    """Return the facts of which no alternative occurs in `text`. Both are normalised first."""
    normalised = normalise_text(text)
    return [
        fact
        for fact in facts
        if not any(normalise_text(alternative) in normalised for alternative in fact)
    ]
