"""Use of a model's context window: the chunks that fit it, and the limit on the length of replies.

Chunks that do not fit in one prompt together can be distributed over several prompts, with one model call
for each. A chunk itself is never cut.
"""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from ingestion.text.language import estimate_tokens
from runnables.models.json_text import strip_thinking
from schemas.document import RetrievedChunk

OUTPUT_TOKENS = 1_500
"""Number of tokens reserved for the reply; fewer in a small window (see `MAX_OUTPUT_SHARE`)."""

MAX_OUTPUT_SHARE = 0.25
"""Maximum share of the window that is reserved for the reply."""

TAG_TOKENS = 12
"""Estimated number of tokens in the tags around a chunk."""

MAX_CONTEXT_PARTS = 4
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
    """Return the chunks that fit in `window` tokens, together with the rest of the prompt and the reply.

    `prompt_tokens` is the number of tokens in the rest of the prompt: the question, the schema and the
    instructions, which are never cut. `select_chunks` describes which chunks are omitted.
    """
    return select_chunks(chunks, window - reserved_output_tokens(window) - prompt_tokens)


def select_chunks(chunks: list[RetrievedChunk], max_tokens: float) -> list[RetrievedChunk]:
    """Return the chunks that take at most `max_tokens` tokens together.

    The order of the chunks is kept. A chunk that does not fit is omitted as a whole, and its id is logged;
    a smaller chunk after it may still fit.
    """
    tokens_left = max_tokens
    fitting: list[RetrievedChunk] = []
    for retrieved in chunks:
        tokens = estimate_tokens(retrieved.chunk.text) + TAG_TOKENS
        if tokens <= tokens_left:
            fitting.append(retrieved)
            tokens_left -= tokens
    if len(fitting) < len(chunks):
        omitted = [retrieved.chunk.id for retrieved in _without(chunks, fitting)]
        log.debug("chunks that do not fit in %d tokens: %s", max_tokens, ", ".join(omitted))
    return fitting


def split_chunks(
    chunks: list[RetrievedChunk], window: int, prompt_tokens: int
) -> list[list[RetrievedChunk]]:
    """Split `chunks` into at most `MAX_CONTEXT_PARTS` parts, each of which fits the window.

    Later parts get less room than the first, because their prompts also contain the answer so far. Chunks
    that fit in none of the parts are omitted.
    """
    parts = [fit_chunks(chunks, window, prompt_tokens)]
    remaining = _without(chunks, parts[0])
    while remaining and len(parts) < MAX_CONTEXT_PARTS:
        part = fit_chunks(remaining, window - int(reserved_output_tokens(window)), prompt_tokens)
        if not part:
            break
        parts.append(part)
        remaining = _without(remaining, part)
    return parts


def _without(chunks: list[RetrievedChunk], others: list[RetrievedChunk]) -> list[RetrievedChunk]:
    ids = {retrieved.chunk.id for retrieved in others}  # comparing whole chunks is slow
    return [retrieved for retrieved in chunks if retrieved.chunk.id not in ids]


# --- length of replies ----------------------------------------------------------------------------

_LIMIT_FIELDS = ("num_predict", "max_tokens")
"""Fields for the limit: `num_predict` of LangChain's Ollama client, `max_tokens` of its other clients."""

_CUT = ("length", "max_tokens")
"""Finish reasons of replies that the limit cut off."""


def limit_output(client: BaseChatModel, max_tokens: int, window: int) -> None:
    """Limit replies to `max_tokens` tokens, and to the share of the window that is reserved for them.

    If the field for the limit is already set, its value is kept. Without a limit, a small model may repeat
    itself until the deadline. A local server may even continue after the request has ended, until its
    window is full.
    """
    tokens = int(min(max_tokens, reserved_output_tokens(window)))
    untyped: Any = client  # the fields depend on the provider
    if getattr(client, "openai_api_base", None):
        # The client would send its own field as `max_completion_tokens`, which many servers ignore.
        limit = untyped.max_tokens or tokens
        untyped.extra_body = {"max_tokens": limit} | (untyped.extra_body or {})
        return
    name = _limit_field(client)
    if name and getattr(client, name) is None:
        setattr(untyped, name, tokens)


def lift_output_limit(client: BaseChatModel) -> bool:
    """Remove the limit on the length of replies, and return whether there was one."""
    untyped: Any = client
    extra_body = dict(getattr(client, "extra_body", None) or {})
    if extra_body.pop("max_tokens", None) is not None:
        untyped.extra_body = extra_body
        return True
    name = _limit_field(client)
    if name is None or getattr(client, name) is None:
        return False
    setattr(untyped, name, None)
    return True


def lower_output_limit(client: BaseChatModel, window: int) -> None:
    """Lower the limit on the length of replies, if there is one, to the share of `window` for replies."""
    untyped: Any = client
    tokens = int(reserved_output_tokens(window))
    extra_body = getattr(client, "extra_body", None) or {}
    name = _limit_field(client)
    if limit := extra_body.get("max_tokens"):
        untyped.extra_body = extra_body | {"max_tokens": min(limit, tokens)}
    elif name and (limit := getattr(client, name)):
        setattr(untyped, name, min(limit, tokens))


def finish_reason(reply: AIMessage) -> str | None:
    """Return why a reply ended, such as "stop" or "length"; None if the provider does not say why."""
    metadata = reply.response_metadata
    ends = (metadata.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    return next(filter(None, ends), None)


def is_cut_reply(reply: AIMessage) -> bool:
    """Return whether `reply` was cut off at the limit on its length."""
    return finish_reason(reply) in _CUT


def is_cut_reasoning_reply(reply: AIMessage) -> bool:
    """Return whether `reply` was cut off at the limit on its length while the model was reasoning.

    The model was reasoning if the reply reports reasoning tokens, or has no text apart from thinking.
    """
    if not is_cut_reply(reply):
        return False
    usage = reply.usage_metadata
    reasoned = usage and usage.get("output_token_details", {}).get("reasoning")
    return bool(reasoned) or not strip_thinking(reply.text)


def _limit_field(client: BaseChatModel) -> str | None:
    fields = type(client).model_fields
    return next((name for name in _LIMIT_FIELDS if name in fields), None)
