"""The embedding model named in Settings, and how many texts are embedded at once."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from langchain_core.embeddings import Embeddings
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from ingestion.collection_schema import Vector, embedded_text
from ingestion.milvus import batches
from ingestion.model_errors import ModelRole, model_errors, wait_as_told
from ingestion.providers import connection_options, open_client
from schemas.document import Chunk
from schemas.errors import ModelOutputInvalid, ModelTimeout, ModelUnavailable
from schemas.settings import Settings

ATTEMPTS = 5
"""Requests that one batch may cost while the provider is overloaded or out of reach."""


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
        options |= {
            "check_embedding_ctx_length": False,
            "timeout": settings.request_timeout,
            "max_retries": 0,  # ours would multiply with them
        }
    return open_client(init_embeddings, ModelRole("EMBEDDING", settings.embedding_model), options)


class ChunkEmbedder:
    """Embeds a stream of chunks: several requests at a time, and no more read than they can take."""

    def __init__(self, model: Embeddings, settings: Settings) -> None:
        self._model = model
        self._role = ModelRole("EMBEDDING", settings.embedding_model or "")
        self._size = settings.embedding_batch
        self._requests = settings.embedding_requests

    def embed(self, chunks: Iterable[Chunk]) -> Generator[tuple[list[Chunk], list[Vector]]]:
        """`chunks` in batches, in their order, each with its vectors. Raises ModelError."""
        waiting: deque[tuple[list[Chunk], Future[list[Vector]]]] = deque()
        with ThreadPoolExecutor(self._requests, thread_name_prefix="embed") as pool:
            try:
                for batch in batches(chunks, self._size):
                    texts = [embedded_text(chunk) for chunk in batch]
                    waiting.append((batch, pool.submit(self._vectors, texts)))
                    if len(waiting) > self._requests:
                        yield _result(*waiting.popleft())
                while waiting:
                    yield _result(*waiting.popleft())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def embed_texts(self, texts: Iterable[str]) -> list[Vector]:
        """The vectors of `texts`, in their order. Raises ModelError."""
        return [vector for batch in batches(texts, self._size) for vector in self._vectors(batch)]

    @retry(
        retry=retry_if_exception_type((ModelUnavailable, ModelTimeout)),
        wait=wait_as_told,
        stop=stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    def _vectors(self, texts: list[str]) -> list[Vector]:
        with model_errors(self._role):
            vectors = self._model.embed_documents(texts)
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ModelOutputInvalid(
                f"{self._role.setting}: {len(vectors)} vectors for {len(texts)} texts, or of "
                "several lengths"
            )
        return vectors


def _result(batch: list[Chunk], vectors: Future[list[Vector]]) -> tuple[list[Chunk], list[Vector]]:
    return batch, vectors.result()
