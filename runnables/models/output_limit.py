"""The limit on the length of a model's replies, set in the field that its client or server reads."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from runnables.models.context_window import reserved_output_tokens
from runnables.models.json_text import strip_thinking

_LIMIT_FIELDS = ("num_predict", "max_tokens")
"""The field of LangChain's Ollama client, and the field of its other clients."""

_CUT = ("length", "max_tokens")
"""Values with which providers say that a reply ended because it reached the limit."""


def limit_output(client: BaseChatModel, max_tokens: int, window: int) -> None:
    """Limit replies to `max_tokens` tokens, and to the share of the window that is reserved for them.

    A limit that is already set in the same field is kept. Without a limit, a small model may repeat itself
    until the deadline. A local server may even continue after the request has ended, until its window is
    full.
    """
    tokens = int(min(max_tokens, reserved_output_tokens(window)))
    limited: Any = client
    if getattr(client, "openai_api_base", None):
        # The client would send its own field as `max_completion_tokens`, which many servers ignore.
        limited.extra_body = {"max_tokens": tokens} | (limited.extra_body or {})
        return
    name = _limit_field(client)
    if name and getattr(client, name) is None:
        setattr(limited, name, tokens)


def lift_output_limit(client: BaseChatModel) -> bool:
    """Remove the limit, and return whether there was one."""
    limited: Any = client
    extra_body = dict(getattr(client, "extra_body", None) or {})
    if extra_body.pop("max_tokens", None) is not None:
        limited.extra_body = extra_body
        return True
    name = _limit_field(client)
    if name is None or getattr(client, name) is None:
        return False
    setattr(limited, name, None)
    return True


def is_cut_reasoning_reply(reply: AIMessage) -> bool:
    """Return whether the limit ended a reply that reports tokens for reasoning, or that has no text."""
    metadata = reply.response_metadata
    ends = (metadata.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    if not any(end in _CUT for end in ends):
        return False
    usage = reply.usage_metadata
    reasoned = usage and usage.get("output_token_details", {}).get("reasoning")
    return bool(reasoned) or not strip_thinking(reply.text)


def _limit_field(client: BaseChatModel) -> str | None:
    fields = type(client).model_fields
    return next((name for name in _LIMIT_FIELDS if name in fields), None)
