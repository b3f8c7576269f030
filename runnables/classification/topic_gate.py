"""Estimates, without a language model, how likely it is that a question is about the platform.

A logistic regression estimates the probability from the question's words, the words of the documents and
the chunks that a search finds.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from ingestion.store.collection import Collection
from ingestion.text.words import read_word_lists, split_words
from runnables.answer.confidence import topic_probability
from runnables.question.query_analysis import Glossary, Lexicon, general_lexicon, main_languages
from runnables.question.topic_scorer import TopicScorer
from runnables.retrieval.query_terms import QueryTerms
from schemas.document import Chunk
from schemas.question import ExtractedDetails

ON_TOPIC = 0.35
"""Probability below which a question is classified as off-topic without a model.

The probability assumes that questions on and off topic are equally frequent.
"""

CLEARLY_OFF_TOPIC = 0.1
"""Probability below which the reply to an off-topic question says that the question is off-topic.

At a higher probability, the reply says only that the documents do not cover the question.
"""

CERTAINLY_ON_TOPIC = 0.95
"""Minimum probability at which a question is answered even if a model classifies it as off-topic."""

_FIRST_PERSON = re.compile(
    r"\b(?:my|mine|me|myself)\b|我的|我家|(?:给|帮|提醒|告诉)我", re.IGNORECASE
)
"""Words with which askers refer to themselves.

They are about four times as frequent in general questions as in the questions of developers.
"""


_SERVICE_WORDS = re.compile(
    r"(?<![a-z])(?:slas?|slos?|service[- ]level|uptime|downtime|status page|data residency|data processing"
    r" agreement|gdpr|hipaa|soc ?2|iso ?27001"
    r"|sdks?|client librar(?:y|ies)|plug-?ins?|connectors?)(?![a-z])"
    r"|服务等级|可用性|宕机|停机|插件|连接器",
    re.IGNORECASE,
)
"""Words of questions about the platform as a service, such as its uptime, or about plugins and SDKs for it.

Everyday questions rarely contain these words.
"""


def estimate_on_topic(
    details: ExtractedDetails, collection: Collection, glossary: Glossary, chunks: Sequence[Chunk]
) -> float:
    """Return the probability that a question is about the platform.

    The result is at least `CLEARLY_OFF_TOPIC` for a question that `_SERVICE_WORDS` matches, such as "is
    there an SLA" or "is there a plugin". Its words say nothing about the subject of the documents, so a low
    score does not show that the question is off-topic. This does not apply if the feature `private` or
    `personal` is 1 (see `topic_features`).

    `chunks` are the question's search results. This function blocks: call it in a worker thread.
    """
    features = topic_features(details, collection, glossary, chunks)
    is_off_platform = features["private"] or features["personal"]
    is_about_service = _SERVICE_WORDS.search(details.text) is not None and not is_off_platform
    return max(topic_probability(features), CLEARLY_OFF_TOPIC if is_about_service else 0.0)


def topic_features(
    details: ExtractedDetails, collection: Collection, glossary: Glossary, chunks: Sequence[Chunk]
) -> dict[str, float]:
    """Return the features from which the probability is estimated.

    This function blocks: call it in a worker thread.

    - `topic`: the topic score of the question (see `TopicScorer`), with terms replaced by their equivalents
      in the glossary and the lexicon if these have a higher score (see `_gain_by_equivalents`)
    - `mean`: the mean topic score of the question's words
    - `private`: 1 if the question contains a word about private life or general knowledge that no document
      contains, otherwise 0
    - `personal`: 1 if `_FIRST_PERSON` matches in the question, otherwise 0
    - `share`: the largest weighted share of the question's words that a single chunk contains
    """
    topic = TopicScorer(collection.word_counts, collection.manifest.words)
    scores = topic.word_scores(details.text).values()
    gain = _gain_by_equivalents(
        details.text, topic, (glossary, general_lexicon(main_languages(collection)))
    )
    return {
        "topic": sum(scores) + gain,
        "mean": sum(scores) / max(len(scores), 1),
        "private": float(_has_private_word(details, collection)),
        "personal": float(_FIRST_PERSON.search(details.text) is not None),
        "share": _best_chunk_coverage(details, collection, glossary, chunks),
    }


def _gain_by_equivalents(
    text: str, topic: TopicScorer, lexicons: Iterable[Glossary | Lexicon]
) -> float:
    """Return the change of the topic score, in nats, if equivalent terms replace the terms of `text`.

    Of the terms in `text` that are equivalent to each other, only the one with the highest score is
    replaced, by the equivalent with the highest score. Here, a negative score counts as 0.
    """
    terms_by_group: defaultdict[Sequence[str], list[str]] = defaultdict(list)
    for lexicon in lexicons:
        for term, group in lexicon.groups(text):
            terms_by_group[group].append(term)

    def best_score(terms: Iterable[str]) -> float:
        return max(0.0, *map(topic.score, terms))

    return sum(best_score(group) - best_score(terms) for group, terms in terms_by_group.items())


def _has_private_word(details: ExtractedDetails, collection: Collection) -> bool:
    """Return whether the question contains one of `private_words` that no document contains."""
    parts = [part for word in private_words(details.text) for part in split_words(word)]
    counts = collection.word_counts(parts)
    return any(part not in counts for part in parts)


def private_words(text: str) -> list[str]:
    """Return the words of `text` about private life and general knowledge."""
    return [word for word, _ in _private_words().groups(text)]


def _best_chunk_coverage(
    details: ExtractedDetails, collection: Collection, glossary: Glossary, chunks: Sequence[Chunk]
) -> float:
    """Return the largest weighted share of the question's words that a single chunk contains, 0 to 1.

    If no word of the question has a weight, as in "2206 vs 2207", the result is 1 if a chunk contains an
    identifier of the question, otherwise 0.
    """
    terms = QueryTerms.of(details, None, collection, glossary)
    texts = [f"{c.title} {c.section} {c.api_name} {c.body}" for c in chunks]
    if not terms.weights:
        return float(any(terms.identifiers_in(text.lower()) for text in texts))
    return max((terms.share(terms.found_in(text)) for text in texts), default=0.0)


@cache
def _private_words() -> Glossary:
    """Return the words about private life and general knowledge."""
    return Glossary(
        {word: () for words in read_word_lists(__file__, "topic_gate").values() for word in words}
    )
