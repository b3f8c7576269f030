"""The embedding model named in Settings."""

from langchain_core.embeddings import Embeddings

from ingestion.model_errors import ModelRole
from ingestion.providers import connection_options, open_client
from schemas.settings import Settings


def open_embeddings(settings: Settings) -> Embeddings | None:
    """The model behind `APIDESK_EMBEDDING_MODEL`, or None where none is named.

    Raises ConfigurationError when the name or its provider cannot be used.
    """
    if not settings.embedding_model:
        return None
    from langchain.embeddings import init_embeddings

    options = connection_options(settings.embedding_base_url, settings.embedding_api_key)
    if settings.embedding_model.startswith("openai:"):
        # Texts are sent as texts: token ids would need tables from the network and are OpenAI's alone.
        options |= {"check_embedding_ctx_length": False, "timeout": settings.request_timeout}
    return open_client(init_embeddings, ModelRole("EMBEDDING", settings.embedding_model), options)
