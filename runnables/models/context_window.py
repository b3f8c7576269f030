"""Selection of the chunks that fit a model's context window, in one part or several."""

import logging
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from ingestion.text.language import estimate_tokens
from schemas.document import RetrievedChunk

OUTPUT_TOKENS = 1_500
"""Number of tokens reserved for the reply, unless that exceeds `MAX_OUTPUT_SHARE`."""

MAX_OUTPUT_SHARE = 0.25
"""Maximum share of the window that is reserved for the reply."""

TAG_TOKENS = 12
"""Estimated number of tokens in the tags around a chunk."""

MAX_PARTS = 4
"""Maximum number of parts into which chunks are split; each part takes one model call."""

log = logging.getLogger(__name__)


def reserved_output_tokens(window: int) -> float:
    """Return how many tokens of a context window are reserved for the reply."""
    return min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)


def count_prompt_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return the estimated number of tokens of a prompt."""
    return sum(estimate_tokens(message.text) for message in messages)


def fit_chunks(
    chunks: list[RetrievedChunk], window: int, prompt_tokens: int
) -> list[RetrievedChunk]:
    """Return the chunks that fit a window of `window` tokens together with the prompt and the reply.

    `prompt_tokens` is the length of the prompt without chunks, which is never cut: the question, the schema
    and the instructions. The order of the chunks is kept. A chunk that does not fit is omitted as a whole,
    and its id is logged; a smaller chunk after it may still fit.
    """
    tokens_left = window - reserved_output_tokens(window) - prompt_tokens
    fitting: list[RetrievedChunk] = []
    for retrieved in chunks:
        tokens = estimate_tokens(retrieved.chunk.text) + TAG_TOKENS
        if tokens <= tokens_left:
            fitting.append(retrieved)
            tokens_left -= tokens
    if len(fitting) < len(chunks):
        omitted = [retrieved.chunk.id for retrieved in _without(chunks, fitting)]
        log.debug("chunks that do not fit in a window of %d tokens: %s", window, ", ".join(omitted))
    return fitting


def split_chunks(
    chunks: list[RetrievedChunk], window: int, prompt_tokens: int
) -> list[list[RetrievedChunk]]:
    """Split `chunks` into at most `MAX_PARTS` parts, each of which fits the window.

    The second and later parts leave room for the previous answer in the prompt. Chunks that fit in no
    part are omitted.
    """
    parts = [fit_chunks(chunks, window, prompt_tokens)]
    remaining = _without(chunks, parts[0])
    while remaining and len(parts) < MAX_PARTS:
        part = fit_chunks(remaining, window - int(reserved_output_tokens(window)), prompt_tokens)
        if not part:
            break
        parts.append(part)
        remaining = _without(remaining, part)
    return parts


def _without(chunks: list[RetrievedChunk], others: list[RetrievedChunk]) -> list[RetrievedChunk]:
    """Return the chunks whose ids are not among those of `others`."""
    ids = {retrieved.chunk.id for retrieved in others}  # comparing whole chunks is slow
    return [retrieved for retrieved in chunks if retrieved.chunk.id not in ids]
