"""The embedding model named in Settings."""

from typing import Any

from langchain_core.embeddings import Embeddings

from ingestion.model_errors import first_line
from schemas.errors import ConfigurationError
from schemas.settings import Settings


def open_embeddings(settings: Settings) -> Embeddings | None:
    """The model behind `APIDESK_EMBEDDING_MODEL`, or None where none is named.

    Raises ConfigurationError when the name or its provider cannot be used.
    """
    if not settings.embedding_model:
        return None
    from langchain.embeddings import init_embeddings

    provider = settings.embedding_model.partition(":")[0]
    options: dict[str, Any] = {}
    if settings.embedding_base_url:
        options["base_url"] = settings.embedding_base_url
    if settings.embedding_api_key:
        options["api_key"] = settings.embedding_api_key.get_secret_value()
    if provider == "openai":
        # Texts are sent as texts: token ids would need tables from the network and are OpenAI's alone.
        options["check_embedding_ctx_length"] = False
        options["timeout"] = settings.request_timeout
    try:
        return init_embeddings(settings.embedding_model, **options)
    except Exception as error:
        raise ConfigurationError(
            f"APIDESK_EMBEDDING_MODEL={settings.embedding_model}: {first_line(error)}"
        ) from None
