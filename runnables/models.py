"""The chat model named in Settings."""

from typing import Any

from langchain_core.language_models import BaseChatModel

from ingestion.model_errors import first_line
from schemas.errors import ConfigurationError
from schemas.settings import Settings

EXTRACTIVE = "extractive"
"""The name of the answerer that needs no model."""


def open_chat_model(settings: Settings) -> BaseChatModel | None:
    """The model behind `APIDESK_CHAT_MODEL`, or None for `extractive`.

    Raises ConfigurationError when the name or its provider cannot be used.
    """
    if settings.chat_model == EXTRACTIVE:
        return None
    from langchain.chat_models import init_chat_model

    options: dict[str, Any] = {
        "temperature": 0,
        "timeout": settings.request_timeout,
        "max_retries": 2,
    }
    if settings.chat_base_url:
        options["base_url"] = settings.chat_base_url
    if settings.chat_api_key:
        options["api_key"] = settings.chat_api_key.get_secret_value()
    try:
        model: BaseChatModel = init_chat_model(settings.chat_model, **options)
    except Exception as error:  # each provider's package raises its own
        raise ConfigurationError(
            f"APIDESK_CHAT_MODEL={settings.chat_model}: {first_line(error)}"
        ) from None
    return model
