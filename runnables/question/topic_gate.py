"""Decides without a model whether a question is about the platform.

A high topic score suffices if the question has no word of private life and does not speak of the asker's
own affairs. For other questions, a logistic regression estimates the probability.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from ingestion.store.collection import Collection
from ingestion.text.words import read_word_lists, split_words
from runnables.answer.confidence import topic_probability
from runnables.question.query_terms import QueryTerms
from runnables.question.topic_scorer import TopicScorer
from runnables.retrieval.query_analysis import Glossary, general_lexicon
from schemas.document import Chunk
from schemas.question import ExtractedDetails

ON_TOPIC = 0.65
"""Probability below which a question is refused.

The probability assumes that questions on and off topic are equally frequent.
"""

SURE_TOPIC_SCORE = 8.0
"""Topic score above which a question that is not private is about the platform."""

_FIRST_PERSON = re.compile(
    r"\b(?:my|mine|me|myself)\b|我的|我家|(?:给|帮|提醒|告诉)我", re.IGNORECASE
)
"""Words for the asker as a person, about four times as frequent in general questions as in developers'."""


def estimate_on_topic(
    details: ExtractedDetails,
    expanded: str,
    collection: Collection,
    glossary: Glossary,
    chunks: Sequence[Chunk],
) -> float:
    """Return the probability that a question is about the platform; 1 if it certainly is.

    `expanded` is the question with equivalent terms, and `chunks` are its search results. Blocks the event
    loop.
    """
    features = topic_features(details, expanded, collection)
    if is_sure(features):
        return 1.0
    return topic_probability(
        {**features, "share": stated_share(details, collection, glossary, chunks)}
    )


def topic_features(
    details: ExtractedDetails, expanded: str, collection: Collection
) -> dict[str, float]:
    """Return the features of a question that do not depend on chunks. Blocks the event loop.

    These are its topic score (with equivalent terms, if they raise the score), the mean score of its words,
    whether it has a word of private life, and whether it mentions the asker.
    """
    topic = TopicScorer(collection.word_counts, collection.manifest.words)
    scores = topic.word_scores(details.text).values()
    equivalents = general_lexicon().equivalents(details.text)
    return {
        "topic": max(sum(scores), topic.score(" ".join([expanded, *equivalents]))),
        "mean": sum(scores) / max(len(scores), 1),
        "private": float(_has_private_word(details, collection)),
        "personal": float(_FIRST_PERSON.search(details.text) is not None),
    }


def is_sure(features: Mapping[str, float]) -> bool:
    """Return whether a question with these features is certainly about the platform."""
    private = features["private"] or features["personal"]
    return features["topic"] > SURE_TOPIC_SCORE and not private


def _has_private_word(details: ExtractedDetails, collection: Collection) -> bool:
    """Return whether the question has a word of private life that the documents do not contain.

    Blocks the event loop.
    """
    words = {word: split_words(word) for word, _ in _private_life().groups(details.text)}
    counts = collection.word_counts([part for parts in words.values() for part in parts])
    return any(part not in counts for parts in words.values() for part in parts)


def stated_share(
    details: ExtractedDetails, collection: Collection, glossary: Glossary, chunks: Sequence[Chunk]
) -> float:
    """Return the largest weighted share of the question's words that a single chunk contains, 0 to 1.

    Blocks the event loop.
    """
    terms = QueryTerms.of(details, None, collection, glossary)
    texts = (f"{c.title} {c.section} {c.api_name} {c.body}" for c in chunks)
    return max((terms.share(terms.found_in(text)) for text in texts), default=0.0)


@cache
def _private_life() -> Glossary:
    """Return the words of private life and general knowledge."""
    return Glossary(
        {word: () for words in read_word_lists(__file__, "topic_gate").values() for word in words}
    )
