"""Models that a program passes as objects, instead of the models that the settings name.

This is a separate module because chat models and rerankers both need it.
"""

from dataclasses import dataclass

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class CustomModels:
    """A chat model and a reranker; None means that the settings choose."""

    chat: BaseChatModel | None = None
    reranker: BaseDocumentCompressor | None = None


NO_CUSTOM_MODELS = CustomModels()


def client_name(client: BaseChatModel) -> str:
    """Return the name of a client's model as `provider:model`, such as `openai:gpt-4o-mini`."""
    provider = type(client).__name__.removeprefix("Chat").lower()
    model = getattr(client, "model_name", None) or getattr(client, "model", None)
    return f"{provider}:{model or client.get_name()}"
