"""Model providers by name: `provider:model` -> a LangChain client, from the settings of its role."""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import SecretStr

from ingestion.model_errors import ModelRole, first_line
from schemas.errors import ConfigurationError

Client = TypeVar("Client")

EXTRAS = {"anthropic", "deepseek", "ollama"}
"""Providers whose package comes with an extra of the same name."""


def open_client(make: Callable[..., Client], role: ModelRole, options: dict[str, Any]) -> Client:
    """What `make` (init_chat_model, init_embeddings) makes of the role's model with `options`.

    Raises ConfigurationError in one line: which setting, and which extra to install.
    """
    provider, _, name = role.model.partition(":")
    if not provider or not name:  # LangChain would guess
        raise ConfigurationError(
            f"{role.setting}: name it as provider:model, such as openai:gpt-4o-mini"
        )
    try:
        client = make(role.model, **options)
    except ImportError as error:
        if provider not in EXTRAS:
            raise ConfigurationError(f"{role.setting}: {first_line(error)}") from None
        needed = f"pip install 'apidesk[{provider}]'"
        raise ConfigurationError(f"{role.setting} needs a package: {needed}") from None
    except Exception as error:  # each provider's package raises its own
        raise ConfigurationError(f"{role.setting}: {_reason(error, role)}") from None
    # Anthropic's client misses its key only when it is asked.
    if getattr(client, "anthropic_api_key", None) == SecretStr(""):
        raise ConfigurationError(f"{role.setting}: {_no_key(role)}")
    return client


def connection_options(base_url: str | None, api_key: SecretStr | None) -> dict[str, Any]:
    """Address and key as all LangChain clients take them."""
    options: dict[str, Any] = {}
    if base_url:
        options["base_url"] = base_url
    if api_key:
        options["api_key"] = api_key.get_secret_value()
    return options


def _reason(error: Exception, role: ModelRole) -> str:
    """What is wrong, without repeating what a client was given: that may hold a key."""
    said = str(error).lower()
    if "api_key" in said or "api key" in said or "credentials" in said:
        return _no_key(role)
    if isinstance(error, ValueError) and "provider" in str(error):
        return f"no provider is called {role.model.partition(':')[0]}"
    return f"cannot be used ({type(error).__name__})"


def _no_key(role: ModelRole) -> str:
    return f"no key; set APIDESK_{role.prefix}_API_KEY or the provider's own variable"
