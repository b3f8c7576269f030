"""Chunks -> those that fit a model's context window, best first, whole; or parts that each fit."""

import logging

from ingestion.language import estimate_tokens
from schemas.document import RetrievedChunk

MAX_OUTPUT_SHARE = 0.25
OUTPUT_TOKENS = 1_500
"""Tokens kept for the reply, but at most `MAX_OUTPUT_SHARE` of the window."""

TAG_TOKENS = 12
"""Tokens of the tags around a chunk."""

MAX_PARTS = 4
"""Calls that one answer may take: what stands behind so much text is no answer to the question."""

log = logging.getLogger(__name__)


def fit_chunks(chunks: list[RetrievedChunk], window: int, prompt: str) -> list[RetrievedChunk]:
    """The chunks, in order, that fit a window of `window` tokens beside `prompt` and the reply.

    `prompt` is what is never cut: question, schema and instructions. A chunk that does not fit is
    left out whole, and a smaller one after it may still come in; what is left out is logged.
    """
    reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
    room = window - reply - estimate_tokens(prompt)
    kept: list[RetrievedChunk] = []
    for retrieved in chunks:
        tokens = estimate_tokens(retrieved.chunk.text) + TAG_TOKENS
        if tokens <= room:
            kept.append(retrieved)
            room -= tokens
    if len(kept) < len(chunks):
        left_out = [r.chunk.id for r in chunks if r not in kept]
        log.info("left out of a window of %d tokens: %s", window, ", ".join(left_out))
    return kept


def split_chunks(
    chunks: list[RetrievedChunk], window: int, prompt: str
) -> list[list[RetrievedChunk]]:
    """`chunks` in parts of which each fits as `fit_chunks` says, at most `MAX_PARTS`.

    From the second on, a part leaves room for an answer beside it.
    """
    parts = [fit_chunks(chunks, window, prompt)]
    left = [retrieved for retrieved in chunks if retrieved not in parts[0]]
    while left and len(parts) < MAX_PARTS:
        reply = int(min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE))
        if not (part := fit_chunks(left, window - reply, prompt)):
            break
        parts.append(part)
        left = [retrieved for retrieved in left if retrieved not in part]
    return parts
