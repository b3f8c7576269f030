"""Decides without a model whether a question is about the platform.

A topic score above its threshold suffices. For other questions, a logistic regression over the topic score
and the share of the question that one chunk states estimates the probability.
"""

from collections.abc import Sequence

from ingestion.store.collection import Collection
from runnables.answer.confidence import topic_probability
from runnables.question.query_terms import QueryTerms
from runnables.question.topic_scorer import TOPIC_THRESHOLD, TopicScorer
from schemas.document import Chunk
from schemas.question import ExtractedDetails

ON_TOPIC = 0.85
"""Probability below which a question is refused. It counts both kinds of questions as equally frequent."""


def estimate_on_topic(
    details: ExtractedDetails, expanded: str, collection: Collection, chunks: Sequence[Chunk]
) -> float:
    """Return the probability that a question is about the platform; 1 if its topic score is high.

    Blocks the event loop.

    `expanded` is the question with equivalent terms, and `chunks` are what a search for it found.
    """
    score = topic_score(details, expanded, collection)
    if score > TOPIC_THRESHOLD:
        return 1.0
    return topic_probability(topic_features(score, details, collection, chunks))


def topic_score(details: ExtractedDetails, expanded: str, collection: Collection) -> float:
    """Return the topic score of a question, with or without its equivalent terms. Blocks the event loop."""
    topic = TopicScorer(collection.word_counts, collection.manifest.words)
    return max(topic.score(details.text), topic.score(expanded))


def topic_features(
    score: float, details: ExtractedDetails, collection: Collection, chunks: Sequence[Chunk]
) -> dict[str, float]:
    """Return the topic score, and the largest share of the question that one chunk states.

    Blocks the event loop.
    """
    terms = QueryTerms.of(details, None, collection)
    shares = (terms.share(terms.found_in(f"{c.title} {c.section} {c.body}")) for c in chunks)
    return {"topic": score, "share": max(shares, default=0.0)}
