"""Opens the embedding model and embeds chunks with it."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from langchain_core.embeddings import Embeddings
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from ingestion.local_models import LOCAL_PROVIDER, LocalEmbeddings, open_local_embeddings
from ingestion.providers import (
    ModelRole,
    connection_options,
    model_errors,
    open_client,
    retry_wait_s,
)
from ingestion.store.client import batches
from ingestion.store.schema import Vector, embedded_text
from schemas.document import Chunk
from schemas.errors import ModelOutputInvalid, ModelTimeout, ModelUnavailable
from schemas.settings import Settings

MAX_ATTEMPTS = 5
"""Maximum number of requests per batch while the provider is overloaded or unreachable."""


def open_embeddings(settings: Settings) -> Embeddings | None:
    """Return a client of `APIDESK_EMBEDDING_MODEL`, or None if it is not set.

    Raises ConfigurationError if the model or its provider cannot be used.
    """
    if not settings.embedding_model:
        return None
    if settings.embedding_model.startswith(LOCAL_PROVIDER):
        return open_local_embeddings(settings)
    from langchain.embeddings import init_embeddings

    options = connection_options(settings.embedding_base_url, settings.embedding_api_key)
    if settings.embedding_model.startswith(("openai:", "azure_openai:")):
        # Send texts, not token ids: only OpenAI accepts ids, and its token tables need a download.
        options |= {
            "check_embedding_ctx_length": False,
            "timeout": settings.request_timeout,
            "max_retries": 0,  # they would multiply with the retries of ChunkEmbedder
        }
    options |= settings.model_options.get("embedding", {})
    return open_client(init_embeddings, ModelRole("EMBEDDING", settings.embedding_model), options)


class ChunkEmbedder:
    """Embeds chunks with the embedding model. Does not read more chunks ahead than it can send."""

    def __init__(self, model: Embeddings, settings: Settings) -> None:
        self._model = model
        self._role = ModelRole("EMBEDDING", settings.embedding_model or "")
        self._batch_size = settings.embedding_batch
        # A local model uses its own threads, so several requests at once would only compete for them.
        is_local = isinstance(model, LocalEmbeddings)
        self._max_requests = 1 if is_local else settings.embedding_requests
        self._max_chars = settings.embedding_chars

    def embed(self, chunks: Iterable[Chunk]) -> Generator[tuple[list[Chunk], list[Vector]]]:
        """Yield batches of `chunks` in order, each with one vector per chunk. Raises ModelError."""
        pending: deque[tuple[list[Chunk], Future[list[Vector]]]] = deque()
        with ThreadPoolExecutor(self._max_requests, thread_name_prefix="embed") as pool:
            try:
                for batch in batches(chunks, self._batch_size):
                    texts = [embedded_text(self._truncated(chunk)) for chunk in batch]
                    request = pool.submit(self._request, self._model.embed_documents, texts)
                    pending.append((batch, request))
                    if len(pending) > self._max_requests:
                        yield _result(*pending.popleft())
                while pending:
                    yield _result(*pending.popleft())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def embed_queries(self, texts: Iterable[str]) -> list[Vector]:
        """Return the vectors of the questions `texts` in order. Raises ModelError."""
        # LangChain has no method for several questions; its clients embed both kinds of text alike.
        embed = self._model.embed_documents
        if isinstance(self._model, LocalEmbeddings):
            embed = self._model.embed_queries
        requests = (self._request(embed, batch) for batch in batches(texts, self._batch_size))
        return [vector for vectors in requests for vector in vectors]

    def _truncated(self, chunk: Chunk) -> Chunk:
        return chunk.model_copy(update={"body": chunk.body[: self._max_chars]})

    @retry(
        retry=retry_if_exception_type((ModelUnavailable, ModelTimeout)),
        wait=retry_wait_s,
        stop=stop_after_attempt(MAX_ATTEMPTS),
        reraise=True,
    )
    def _request(
        self, embed: Callable[[list[str]], list[Vector]], texts: list[str]
    ) -> list[Vector]:
        with model_errors(self._role):
            vectors = embed(texts)
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ModelOutputInvalid(
                f"{self._role.setting}: {len(vectors)} vectors for {len(texts)} texts, or of "
                "several lengths"
            )
        return vectors


def _result(batch: list[Chunk], vectors: Future[list[Vector]]) -> tuple[list[Chunk], list[Vector]]:
    return batch, vectors.result()
