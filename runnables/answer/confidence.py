"""The calibrated probabilities behind refusals and the confidence of quoted answers.

One logistic regression estimates the probability that a question is about the platform. Another one
estimates the probability that an answer is right. `benchmarks/fit_answers` fits both to questions that the
documents answer and to questions that they do not answer; docs/explanation/answers.md has the figures.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runnables.answer.passages import RankedPassage, is_http_status
from runnables.coefficients import (
    ANSWER_INTERCEPT,
    ANSWER_WEIGHTS,
    TOPIC_INTERCEPT,
    TOPIC_WEIGHTS,
)
from runnables.retrieval.query_terms import QueryTerms
from schemas.answer import Confidence

HIGH = 0.89
"""Minimum probability for the confidence `high`.

Of the cross-validated answers with at least this probability, nine in ten are right.
"""

MEDIUM = 0.45
"""Minimum probability for the confidence `medium`."""

MIN_PROBABILITY_IF_DEFINED = 0.9
"""Minimum probability of an answer that defines an error code.

It applies if the question names only the code and its API. It does not apply to an HTTP status of an API
that the question does not name, because other APIs return the same status for other reasons. The value is
chosen, not measured.
"""

MAX_PROBABILITY_IF_MISSING = 0.4
"""Maximum probability of an answer if the question has an identifier that no document contains.

It is chosen, not measured. It is below `MEDIUM`, so the confidence is low.
"""

MAX_PROBABILITY_IF_UNCLEAR = 0.8
"""Maximum probability of an answer that probably does not say what the developer wants to know.

Such an answer quotes only what the developer pasted into the question, or lists the fields that a pasted
request may lack, or says what an HTTP status means for one of several APIs although the question names no
path. The value is chosen, not measured. It is below `HIGH`.
"""

NOT_COVERED = 0.01
"""Probability below which the answer says that the documents do not cover the question."""

ON_TOPIC_SHARE = 0.75
"""Assumed share of a platform's questions that are on topic.

`topic_probability` assumes a share of 0.5, which `refusal_confidence` corrects.
"""


def refusal_confidence(on_topic: float) -> Confidence:
    """Return the confidence of a refusal.

    `on_topic` is the result of `topic_probability` for the question.
    """
    odds = on_topic / max(1 - on_topic, 1e-9) * ON_TOPIC_SHARE / (1 - ON_TOPIC_SHARE)
    return confidence_of(1 / (1 + odds))


def confidence_of(probability: float) -> Confidence:
    """Return the confidence of an answer that is right with this probability."""
    if probability >= HIGH:
        return "high"
    return "medium" if probability >= MEDIUM else "low"


def answer_probability(features: Mapping[str, float]) -> float:
    """Return the probability that an answer with these features is right."""
    return _probability(ANSWER_INTERCEPT, ANSWER_WEIGHTS, features)


def topic_probability(features: Mapping[str, float]) -> float:
    """Return the probability that a question with these features is about the platform."""
    return _probability(TOPIC_INTERCEPT, TOPIC_WEIGHTS, features)


@dataclass(frozen=True)
class Quotes:
    """The passages that an answer quotes, and those that it could have quoted."""

    terms: QueryTerms
    """The terms of the whole question."""
    passages: Sequence[RankedPassage]
    ranked: Sequence[Sequence[RankedPassage]]
    """All passages for each part of the question, best first."""
    asks_for_missing: bool = False
    """Whether the question asks what a pasted request lacks, or what is wrong with it.

    Quotes can only list the fields that may be missing.
    """


def quotes_probability(quotes: Quotes, missing_identifiers: Collection[str]) -> float:
    """Return the probability that `quotes` answer the question, 0 to 1.

    `missing_identifiers` are the identifiers of the question that no document contains. They limit the
    probability to `MAX_PROBABILITY_IF_MISSING`, or to 0 if the question is only about them. A question is
    about more if it has other words, or if a quote states one of its error numbers (see
    `_states_error_number`).
    """
    if not quotes.passages:
        return 0.0
    terms, probability = quotes.terms, answer_probability(answer_features(quotes))
    if missing_identifiers:
        has_others = terms.has_other_words(missing_identifiers) or _states_error_number(quotes)
        return min(probability, MAX_PROBABILITY_IF_MISSING) if has_others else 0.0
    if quotes.asks_for_missing or all(passage.is_only_pasted for passage in quotes.passages):
        return min(probability, MAX_PROBABILITY_IF_UNCLEAR)
    defining = [passage for passage in quotes.passages if passage.codes]
    names_api = any("/" in name for name in terms.identifiers)
    if not names_api and _is_ambiguous(quotes):
        return min(probability, MAX_PROBABILITY_IF_UNCLEAR)
    if not (names_api or terms.has_other_words(terms.identifiers)):
        defining = [each for each in defining if not _defines_status_of_api(each)]
    names = [*terms.identifiers, *(passage.chunk.api_name for passage in defining)]
    if defining and "difference" not in terms.needs and not terms.has_other_words(names):
        return max(probability, MIN_PROBABILITY_IF_DEFINED)
    return probability


def _states_error_number(quotes: Quotes) -> bool:
    """Return whether a quoted passage states an error number of the question, such as the status 503.

    Passages about a single API do not count, because the question may be about another API.
    """
    numbers = {name for name in quotes.terms.identifiers if name.isdecimal()}
    return any(
        numbers & quotes.terms.identifiers_in(passage.text.lower())
        for passage in quotes.passages
        if not passage.chunk.api_url
    )


def _is_ambiguous(quotes: Quotes) -> bool:
    """Return whether the quotes only define an HTTP status of an API, and several APIs define one."""
    passages = [passage for ranked in quotes.ranked for passage in ranked if passage.codes]
    apis = {each.chunk.document_key for each in passages if _defines_status_of_api(each)}
    defines = (passage.codes and _defines_status_of_api(passage) for passage in quotes.passages)
    return len(apis) > 1 and all(defines)


def _defines_status_of_api(passage: RankedPassage) -> bool:
    """Return whether `passage`, which defines a code, only defines HTTP statuses of a single API."""
    return bool(passage.chunk.api_url) and all(map(is_http_status, passage.codes))


def answer_features(quotes: Quotes) -> dict[str, float]:
    """Return the features of an answer that quotes at least one passage.

    - `first`: the probability that the best passage is right; if the question has several parts, each part
      has a best passage, and the smallest of their probabilities counts; 0 if a part has no passage
    - `share`: the weighted share of the question's words that the passages or their headings contain; if
      the question has no words, 1 if they contain an identifier of the question, otherwise 0
    - `found`: log(1 + n), where n is the number of the question's words in the passages or their headings
      plus the number of its identifiers in the passages
    """
    terms, passages = quotes.terms, quotes.passages
    words = frozenset[str]().union(*(passage.words for passage in passages))
    text = "\n".join(passage.text for passage in passages).lower()
    stated = sum(identifier in text for identifier in terms.identifiers)
    is_stated = stated > 0 or any(passage.named for passage in passages)
    return {
        "first": min(first_probability(ranked) if ranked else 0.0 for ranked in quotes.ranked),
        "share": terms.share(words) if terms.weights else float(is_stated),
        "found": math.log1p(len(words) + stated),
    }


def first_probability(ranked: Sequence[RankedPassage]) -> float:
    """Return the probability that the first passage is right, assuming that one of `ranked` is.

    A passage's relevance is in log-odds, so the probabilities are the softmax of the relevance. If the
    first passage defines an error code of the question, the probabilities of all passages that define one
    are added. If the first passage is from the section of an identifier that the question names (see
    `is_asked_section`), only passages from such sections are compared.
    """
    first, first_weight, total = ranked[0], 0.0, 0.0
    for passage in ranked:
        if passage.is_asked_section >= first.is_asked_section:
            weight = math.exp(passage.relevance - first.relevance)
            total += weight
            if passage is first or (first.codes and passage.codes):
                first_weight += weight
    return first_weight / total


def _probability(
    intercept: float, weights: Mapping[str, float], features: Mapping[str, float]
) -> float:
    logit = intercept + sum(weight * features[name] for name, weight in weights.items())
    return 1 / (1 + math.exp(-logit))
