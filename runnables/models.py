"""The chat model named in Settings, and what its failures mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel

from schemas.errors import (
    ApideskError,
    ConfigurationError,
    ModelError,
    ModelOutputInvalid,
    ModelTimeout,
    ModelUnavailable,
)
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
            f"APIDESK_CHAT_MODEL={settings.chat_model}: {_first_line(error)}"
        ) from None
    return model


@contextmanager
def model_errors(setting: str) -> Iterator[None]:
    """What a provider's client raises, as ModelError; `setting` is the one to look at."""
    try:
        yield
    except ApideskError:
        raise
    except Exception as error:
        raise _model_error(error, setting) from error


def _model_error(error: Exception, setting: str) -> ModelError:
    """Clients of different providers agree on names and status codes, not on classes."""
    if isinstance(error, OutputParserException):
        return ModelOutputInvalid(f"the answer of the model of {setting} does not fit its schema")
    name, status = type(error).__name__, getattr(error, "status_code", None)
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return ModelTimeout(f"the model of {setting} did not answer in time")
    if status in (401, 403):
        return ModelUnavailable(f"the provider of {setting} refuses the key")
    if status == 404:
        return ModelUnavailable(f"the provider of {setting} does not know the model")
    if status is not None:
        return ModelUnavailable(f"the provider of {setting} answered with status {status}")
    return ModelUnavailable(f"the provider of {setting} cannot be reached ({name})")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
