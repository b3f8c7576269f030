"""How much of a text a reranker reads."""

from bisect import bisect_right

from ingestion.language import estimate_tokens

QUESTION_TOKENS = 250
"""Of a question; what is longer leaves a reranker no room for the passage."""


def truncate_to_tokens(text: str, tokens: int) -> str:
    """The beginning of `text` that is worth at most `tokens`."""
    text = text[: 4 * tokens]  # four characters are one token at least
    lengths = range(len(text) + 1)
    return text[: bisect_right(lengths, tokens, key=lambda n: estimate_tokens(text[:n])) - 1]
