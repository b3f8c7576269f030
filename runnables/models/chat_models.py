"""The chat models named in Settings, opened."""

from dataclasses import dataclass
from functools import partial

from langchain_core.language_models import BaseChatModel

from ingestion.providers import ModelRole, connection_options, open_client
from runnables.models.chat_model import ChatModel, count_streams, wait_for_chunks
from runnables.models.concurrency import ConcurrencyLimiter
from schemas.settings import Settings

EXTRACTIVE = "extractive"
"""The name of the answerer that needs no model."""

DEFAULT_WINDOW = 8_192
"""Tokens, for a model of which nothing is known."""


@dataclass(frozen=True)
class ChatModels:
    """The models of a desk, by what they are for."""

    writers: tuple[ChatModel, ...]
    """Who writes answers: the chat model, then its fallback."""
    extraction_models: tuple[ChatModel, ...]
    """Who fills schemas: the structure model if there is one, else the writers."""

    @property
    def all(self) -> tuple[ChatModel, ...]:
        """Each model once."""
        return tuple({m.role.prefix: m for m in (*self.writers, *self.extraction_models)}.values())


def open_chat_models(
    settings: Settings, slots: ConcurrencyLimiter | None = None
) -> ChatModels | None:
    """The models named in Settings, or None for `extractive`; `slots` are shared with other models.

    Raises ConfigurationError when a name or its provider cannot be used.
    """
    if settings.chat_model == EXTRACTIVE:
        return None
    open_one = partial(_open, settings, slots or ConcurrencyLimiter(settings.max_concurrency))
    chat = open_one("CHAT")
    writers = (chat, open_one("CHAT_FALLBACK")) if settings.chat_fallback_model else (chat,)
    extraction_models = (open_one("STRUCTURE"),) if settings.structure_model else writers
    return ChatModels(writers, extraction_models)


def open_judge_model(
    settings: Settings, slots: ConcurrencyLimiter | None = None
) -> ChatModel | None:
    """The model that judges answers, or None where Settings name none; `slots` as for the others.

    Raises ConfigurationError when its name or its provider cannot be used.
    """
    if not settings.judge_model:
        return None
    return _open(settings, slots or ConcurrencyLimiter(settings.max_concurrency), "JUDGE")


def _open(settings: Settings, slots: ConcurrencyLimiter, prefix: str) -> ChatModel:
    from langchain.chat_models import init_chat_model

    name = prefix.lower()
    role = ModelRole(prefix, getattr(settings, f"{name}_model"))
    options = connection_options(
        getattr(settings, f"{name}_base_url"), getattr(settings, f"{name}_api_key")
    )
    options["temperature"] = 0
    if role.model.startswith("ollama:"):
        # Its server would silently cut what is longer than its own default.
        options["num_ctx"] = settings.chat_context_tokens or DEFAULT_WINDOW
    else:
        options["max_retries"] = 0  # ChatModel retries, within the deadline
    client: BaseChatModel = open_client(init_chat_model, role, options)
    count_streams(client, True)
    wait_for_chunks(client)
    known = (client.profile or {}).get("max_input_tokens")
    window = settings.chat_context_tokens or known or DEFAULT_WINDOW
    return ChatModel(role, client, window, slots)
