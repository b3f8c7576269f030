"""Opens LangChain clients for `provider:model`, and converts their errors to ModelError."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import SecretStr
from tenacity import RetryCallState, wait_random_exponential

from schemas.errors import (
    ApideskError,
    ConfigurationError,
    ContextExceeded,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.settings import PREFIX

Client = TypeVar("Client")

AZURE = "azure_openai"
"""The provider whose clients have the argument `azure_endpoint` instead of `base_url`."""

PROVIDER_EXTRAS = {"anthropic", "deepseek", "ollama"}
"""Providers whose package is installed by an apidesk extra of the same name."""

RETRYABLE_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""HTTP statuses after which the same request may succeed later."""

PLACEHOLDER_KEY = "none"
"""Placeholder for the key if only `base_url` is set: clients require a key, most local servers do not."""

MAX_MESSAGE_CHARS = 200
"""Number of characters after which a provider's error message is cut off."""

_KEY = re.compile(r"\b(?:sk-|key-|Bearer\s+)\S+", re.IGNORECASE)
"""Matches an API key in a provider's error message."""

_CONTEXT_EXCEEDED = re.compile(
    r"context (?:length|size|window)\D{0,20}?(?:is |of )?\(?(\d{3,8})\b", re.IGNORECASE
)
"""Matches the context window in messages of OpenAI, vLLM and llama.cpp about a prompt that is too long."""

log = logging.getLogger(__name__)
"""Logs providers' error messages. They may quote a question, so `app.telemetry.logs` masks them."""

_backoff = wait_random_exponential(multiplier=0.25, max=8)


@dataclass(frozen=True)
class ModelRole:
    """A configured model and its use, such as chat or embedding."""

    purpose: str
    """The use of the model, as in `APIDESK_CHAT_MODEL`.

    One of `CHAT`, `CHAT_FALLBACK`, `STRUCTURE`, `JUDGE` and `EMBEDDING`.
    """
    model: str
    """`provider:model`."""

    @property
    def setting(self) -> str:
        """The setting that names the model, with its value: `APIDESK_CHAT_MODEL=openai:NAME`."""
        return f"{PREFIX}{self.purpose}_MODEL={self.model}"

    @property
    def labels(self) -> dict[str, str]:
        """Attributes that identify the model in traces and metrics."""
        return {"role": self.purpose.lower(), "model": self.model}

    @property
    def window_setting(self) -> str:
        """The setting that limits the length of the texts that the model reads."""
        return PREFIX + ("CHUNK_TOKENS" if self.purpose == "EMBEDDING" else "CHAT_CONTEXT_TOKENS")

    def error_message(self, problem: str, suffix: str) -> str:
        """Return a message with the problem and the setting to check, `APIDESK_<purpose>_<suffix>`."""
        return f"{self.setting}: {problem}; check {PREFIX}{self.purpose}_{suffix}"


def open_client(factory: Callable[..., Client], role: ModelRole, options: dict[str, Any]) -> Client:
    """Return a client for the model of `role`, created by `factory` with `options`.

    `factory` is LangChain's init_chat_model or init_embeddings. A client with a `base_url` needs no key,
    except for Azure. Raises ConfigurationError if the client cannot be created; its message names the
    setting and, if needed, the extra to install.
    """
    provider, _, name = role.model.partition(":")
    if not provider or not name:  # LangChain would guess the provider
        raise ConfigurationError(
            f"{role.setting}: must have the form provider:model, such as openai:NAME"
        )
    if provider == AZURE and "base_url" in options:
        options = {**options, "azure_endpoint": options["base_url"]}
        del options["base_url"]
    try:
        return _create_client(factory, role, options)
    # langchain-community raises AttributeError if a package is missing.
    except (ImportError, AttributeError) as error:
        if provider not in PROVIDER_EXTRAS:
            raise ConfigurationError(f"{role.setting}: {_first_line(error)}") from None
        command = f"pip install 'apidesk[{provider}]'"
        raise ConfigurationError(f"{role.setting} needs a package: {command}") from None
    except Exception as error:  # each provider's package raises its own errors
        if _is_missing_key(error) and "base_url" in options and "api_key" not in options:
            return open_client(factory, role, {**options, "api_key": PLACEHOLDER_KEY})
        raise ConfigurationError(f"{role.setting}: {_reason(error, role)}") from None


def _create_client(
    factory: Callable[..., Client], role: ModelRole, options: dict[str, Any]
) -> Client:
    """Call `factory`. Raises ValueError if Anthropic's client has no key."""
    client = factory(role.model, **options)
    # Anthropic's client itself reports a missing key only with the first request.
    if getattr(client, "anthropic_api_key", None) == SecretStr(""):
        raise ValueError("no api_key")
    return client


def connection_options(base_url: str | None, api_key: SecretStr | None) -> dict[str, Any]:
    """Return the address and the key as keyword arguments of a LangChain client."""
    options: dict[str, Any] = {}
    if base_url:
        options["base_url"] = base_url
    if api_key:
        options["api_key"] = api_key.get_secret_value()
    return options


@contextmanager
def model_errors(role: ModelRole) -> Iterator[None]:
    """Convert a provider's error within the block to a ModelError that names the model's setting."""
    try:
        yield
    except ApideskError:
        raise
    except Exception as error:
        raise model_error(error, role) from error


def model_error(error: Exception, role: ModelRole) -> ModelError:
    """Return the ModelError for `error`, based on its class and its status code.

    The provider's own message may quote the prompt, so it is not part of the ModelError's text.
    """
    name, status = type(error).__name__, getattr(error, "status_code", None)
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return ModelTimeout(f"{role.setting}: no answer in time")
    if status in (401, 403):
        message = role.error_message("the provider refuses the key", "API_KEY")
        return ModelRefused(message, status)
    if status == 404:
        message = role.error_message("the provider does not know this model", "MODEL")
        return ModelRefused(message, status)
    if isinstance(status, int) and status > 0:
        failure = _status_error(error, status, role)
        if message := _provider_message(error):
            log.warning("%s: the provider answers %d: %s", role.setting, status, message)
            failure.provider_message = message
        return failure
    if "Connect" in name or "Network" in name or isinstance(error, OSError):
        return ModelUnavailable(role.error_message("the provider cannot be reached", "BASE_URL"))
    return ModelUnavailable(role.error_message(f"the reply cannot be read ({name})", "BASE_URL"))


def _status_error(error: Exception, status: int, role: ModelRole) -> ModelError:
    """Return the ModelError for a response with a status other than 401, 403 and 404."""
    problem = f"the provider answers {status}"
    if window := context_window_in(error):
        message = f"{role.setting}: {problem}; check {role.window_setting}"
        return ContextExceeded(message, status, window)
    if status not in RETRYABLE_STATUS and status >= 400:
        return ModelRefused(role.error_message(problem, "MODEL"), status)
    if status == 429:
        problem = "too many requests"
    return ModelUnavailable(f"{role.setting}: {problem}", _retry_after_s(error), status)


def context_window_in(error: Exception) -> int | None:
    """Return the context window, in tokens, from an error about a prompt that is too long.

    Returns None for other errors.
    """
    is_refusal = getattr(error, "status_code", None) in (400, 413, 422, 500)
    match = _CONTEXT_EXCEEDED.search(str(error)) if is_refusal else None
    return int(match.group(1)) if match else None


def retry_wait_s(state: RetryCallState) -> float:
    """Return the seconds before the next attempt: the provider's Retry-After, or else a random backoff."""
    error = state.outcome.exception() if state.outcome else None
    retry_after = error.retry_after if isinstance(error, ModelError) else None
    return retry_after if retry_after is not None else _backoff(state)


def _retry_after_s(error: Exception) -> float | None:
    """Return the seconds in the reply's Retry-After header, or None if it has no valid one."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if isinstance(headers, Mapping) else None
    try:
        seconds = float(value or "nan")
    except ValueError:  # a date; the supported providers send seconds
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _provider_message(error: Exception) -> str:
    """Return the message in the body of an error response; empty if there is none.

    API keys are replaced by an ellipsis. Only the message is returned, because the other fields of the body
    may repeat the request.
    """
    body = getattr(error, "body", None)
    for name in ("error", "message", "detail"):
        if isinstance(body, Mapping):
            body = body.get(name, body)
    if not isinstance(body, str) or not body.strip():
        return ""
    return _KEY.sub("…", " ".join(body.split()))[:MAX_MESSAGE_CHARS]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _reason(error: Exception, role: ModelRole) -> str:
    """Describe `error` without the client's own message, which may contain a key."""
    if role.model.startswith(AZURE) and "OPENAI_API_VERSION" in str(error):
        return f"no api_version; set {PREFIX}MODEL_OPTIONS or OPENAI_API_VERSION"
    if _is_missing_key(error):
        return f"no key; set {PREFIX}{role.purpose}_API_KEY or the provider's own variable"
    if isinstance(error, ValueError) and "provider" in str(error):
        return f"no provider is called {role.model.partition(':')[0]}"
    return f"cannot be used ({type(error).__name__})"


def _is_missing_key(error: Exception) -> bool:
    message = str(error).lower()
    return "api_key" in message or "api key" in message or "credentials" in message
