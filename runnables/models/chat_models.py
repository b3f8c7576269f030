"""Opens the chat models named in the settings, and holds models that a program passes as objects."""

from dataclasses import dataclass
from functools import partial

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseChatModel

from ingestion.providers import ModelRole, connection_options, open_client
from runnables.models.chat_model import (
    ChatModel,
    ConcurrencyLimiter,
    disable_chunk_timeout,
    set_stream_usage,
)
from runnables.models.context_window import limit_output
from schemas.settings import Settings

EXTRACTIVE = "extractive"
"""Value of `APIDESK_CHAT_MODEL` that means no model: answers quote the documents."""

DEFAULT_CONTEXT_TOKENS = 8_192
"""Assumed context window of a model whose window is unknown, in tokens."""


@dataclass(frozen=True)
class ChatModels:
    """The open models, by task."""

    answer_models: tuple[ChatModel, ...]
    """Models that write answers: the chat model, then its fallback."""
    extraction_models: tuple[ChatModel, ...]
    """Models for structured output: the structure model or, if it is not set, the answer models."""

    @property
    def all(self) -> tuple[ChatModel, ...]:
        """All models without duplicates."""
        return tuple(
            {
                model.role.purpose: model
                for model in (*self.answer_models, *self.extraction_models)
            }.values()
        )


def open_chat_models(
    settings: Settings,
    limiter: ConcurrencyLimiter | None = None,
    chat_client: BaseChatModel | None = None,
) -> ChatModels | None:
    """Open the models named in the settings; return None for `extractive`.

    If `chat_client` is given, it is used as the chat model, and `settings.chat_model` must be its name. All
    models share `limiter` or, if it is None, a new limiter. Raises ConfigurationError if the name or
    provider of a model is invalid.
    """
    if settings.chat_model == EXTRACTIVE:
        return None
    limiter = limiter or ConcurrencyLimiter(settings.max_concurrency)
    open_role = partial(_open, settings, limiter)
    if chat_client is None:
        chat = open_role("CHAT")
    else:
        role = ModelRole("CHAT", settings.chat_model)
        chat = _chat_model(role, chat_client.model_copy(), settings, limiter)
    answer_models = (chat, open_role("CHAT_FALLBACK")) if settings.chat_fallback_model else (chat,)
    extraction_models = (open_role("STRUCTURE"),) if settings.structure_model else answer_models
    return ChatModels(answer_models, extraction_models)


def open_judge_model(
    settings: Settings, limiter: ConcurrencyLimiter | None = None
) -> ChatModel | None:
    """Open the model that judges answers; return None if the settings name none.

    If `limiter` is None, the model gets a new limiter. Raises ConfigurationError if the model's name or
    provider is invalid.
    """
    if not settings.judge_model:
        return None
    return _open(settings, limiter or ConcurrencyLimiter(settings.max_concurrency), "JUDGE")


def _open(settings: Settings, limiter: ConcurrencyLimiter, purpose: str) -> ChatModel:
    """Open the model of `purpose`, such as "CHAT_FALLBACK", with the settings that begin with this word."""
    from langchain.chat_models import init_chat_model

    name = purpose.lower()
    role = ModelRole(purpose, getattr(settings, f"{name}_model"))
    options = connection_options(
        getattr(settings, f"{name}_base_url"), getattr(settings, f"{name}_api_key")
    )
    options["temperature"] = 0
    if role.model.startswith("ollama:"):
        # Ollama silently truncates prompts that exceed its default context window.
        options["num_ctx"] = settings.chat_context_tokens or DEFAULT_CONTEXT_TOKENS
    else:
        options["max_retries"] = 0  # ChatModel retries within the deadline
    options |= settings.model_options.get(name, {})
    client: BaseChatModel = open_client(init_chat_model, role, options)
    return _chat_model(role, client, settings, limiter)


def _chat_model(
    role: ModelRole, client: BaseChatModel, settings: Settings, limiter: ConcurrencyLimiter
) -> ChatModel:
    """Configure `client`, and return it as the model of `role`."""
    set_stream_usage(client, True)
    disable_chunk_timeout(client)
    profile_window = (client.profile or {}).get("max_input_tokens")
    window = settings.chat_context_tokens or profile_window or DEFAULT_CONTEXT_TOKENS
    limit_output(client, settings.max_reply_tokens, window)
    return ChatModel(role, client, window, limiter)


@dataclass(frozen=True)
class CustomModels:
    """A chat model and a reranker that a program passes as objects.

    If a field is None, the settings determine the model or the reranker.
    """

    chat: BaseChatModel | None = None
    reranker: BaseDocumentCompressor | None = None


NO_CUSTOM_MODELS = CustomModels()


def client_name(client: BaseChatModel) -> str:
    """Return the name of a client's model as `provider:model`, such as `openai:gpt-4o-mini`."""
    provider = type(client).__name__.removeprefix("Chat").lower()
    model = getattr(client, "model_name", None) or getattr(client, "model", None)
    return f"{provider}:{model or client.get_name()}"
