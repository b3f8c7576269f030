"""Embeds a stream of chunks in batches, with several requests at a time."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from langchain_core.embeddings import Embeddings
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from ingestion.providers import ModelRole, model_errors, retry_wait_s
from ingestion.store.client import batches
from ingestion.store.schema import Vector, embedded_text
from schemas.document import Chunk
from schemas.errors import ModelOutputInvalid, ModelTimeout, ModelUnavailable
from schemas.settings import Settings

MAX_ATTEMPTS = 5
"""Requests per batch while the provider is overloaded or unreachable."""


class ChunkEmbedder:
    """Embeds chunks with the model in Settings. Reads no more chunks ahead than it can send."""

    def __init__(self, model: Embeddings, settings: Settings) -> None:
        self._model = model
        self._role = ModelRole("EMBEDDING", settings.embedding_model or "")
        self._batch_size = settings.embedding_batch
        self._max_requests = settings.embedding_requests

    def embed(self, chunks: Iterable[Chunk]) -> Generator[tuple[list[Chunk], list[Vector]]]:
        """Yield `chunks` in batches, in their order, with a vector per chunk. Raises ModelError."""
        pending: deque[tuple[list[Chunk], Future[list[Vector]]]] = deque()
        with ThreadPoolExecutor(self._max_requests, thread_name_prefix="embed") as pool:
            try:
                for batch in batches(chunks, self._batch_size):
                    texts = [embedded_text(chunk) for chunk in batch]
                    pending.append((batch, pool.submit(self._request, texts)))
                    if len(pending) > self._max_requests:
                        yield _result(*pending.popleft())
                while pending:
                    yield _result(*pending.popleft())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def embed_texts(self, texts: Iterable[str]) -> list[Vector]:
        """Return the vectors of `texts`, in their order. Raises ModelError."""
        return [
            vector for batch in batches(texts, self._batch_size) for vector in self._request(batch)
        ]

    @retry(
        retry=retry_if_exception_type((ModelUnavailable, ModelTimeout)),
        wait=retry_wait_s,
        stop=stop_after_attempt(MAX_ATTEMPTS),
        reraise=True,
    )
    def _request(self, texts: list[str]) -> list[Vector]:
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
