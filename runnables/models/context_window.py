"""Fits chunks into a model's context window, whole and best first, or in several parts."""

import logging

from ingestion.text.language import estimate_tokens
from schemas.document import RetrievedChunk

OUTPUT_TOKENS = 1_500
"""Tokens reserved for the reply, but at most `MAX_OUTPUT_SHARE` of the window."""

MAX_OUTPUT_SHARE = 0.25

TAG_TOKENS = 12
"""Tokens of the tags around a chunk."""

MAX_PARTS = 4
"""Parts of one answer, each a model call."""

log = logging.getLogger(__name__)


def reserved_output_tokens(window: int) -> float:
    """Return the tokens of a window of `window` tokens that are reserved for the reply."""
    return min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)


def fit_chunks(chunks: list[RetrievedChunk], window: int, prompt: str) -> list[RetrievedChunk]:
    """Return the chunks, in order, that fit a window of `window` tokens with `prompt` and the reply.

    `prompt` is the text that is never cut: question, schema and instructions. A chunk that does not fit
    is left out whole and logged; a smaller one after it may still fit.
    """
    tokens_left = window - reserved_output_tokens(window) - estimate_tokens(prompt)
    fitting: list[RetrievedChunk] = []
    for retrieved in chunks:
        tokens = estimate_tokens(retrieved.chunk.text) + TAG_TOKENS
        if tokens <= tokens_left:
            fitting.append(retrieved)
            tokens_left -= tokens
    if len(fitting) < len(chunks):
        left_out = [r.chunk.id for r in chunks if r not in fitting]
        log.info("left out of a window of %d tokens: %s", window, ", ".join(left_out))
    return fitting


def split_chunks(
    chunks: list[RetrievedChunk], window: int, prompt: str
) -> list[list[RetrievedChunk]]:
    """Return `chunks` in at most `MAX_PARTS` parts that each fit, as `fit_chunks` does.

    All parts but the first leave room for the previous answer in the prompt.
    """
    parts = [fit_chunks(chunks, window, prompt)]
    left = [retrieved for retrieved in chunks if retrieved not in parts[0]]
    while left and len(parts) < MAX_PARTS:
        part = fit_chunks(left, window - int(reserved_output_tokens(window)), prompt)
        if not part:
            break
        parts.append(part)
        left = [retrieved for retrieved in left if retrieved not in part]
    return parts
