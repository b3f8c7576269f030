"""Opens the embedding model, embeds chunks, and saves their vectors in case the ingestion run fails."""

import hashlib
import json
import logging
import sqlite3
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from tenacity import RetryCallState, retry, stop_after_attempt

from ingestion.local_models import LOCAL_PROVIDER, LocalEmbeddings, open_local_embeddings
from ingestion.providers import (
    ModelRole,
    connection_options,
    model_errors,
    open_client,
    retry_wait_s,
)
from ingestion.store.client import batches
from ingestion.store.schema import Vector, searchable_text
from ingestion.store.snapshot import MAX_VARIABLES, placeholders, snapshot_errors
from schemas.document import Chunk
from schemas.errors import ModelOutputInvalid, ModelTimeout, ModelUnavailable
from schemas.settings import Settings

_Embed = Callable[[list[str]], list[Vector]]

MAX_ATTEMPTS = 5
"""Maximum number of attempts per request. `_may_succeed_later` says which errors are retried."""

MAX_RETRY_WAIT_S = 60.0
"""Maximum number of seconds before a request is repeated, even if the server asks for more."""

FIRST_BATCH_SIZE = 4
"""Maximum number of texts in the first request, whose duration is measured."""

log = logging.getLogger(__name__)


def open_embeddings(settings: Settings) -> Embeddings | None:
    """Return the embedding model that APIDESK_EMBEDDING_MODEL names, or None if it is not set.

    Raises ConfigurationError if the model or its provider cannot be used.
    """
    if not settings.embedding_model:
        return None
    if settings.embedding_model.startswith(LOCAL_PROVIDER):
        return open_local_embeddings(settings)
    from langchain.embeddings import init_embeddings

    # OpenAI's client warns about each vector that is a list of lists. `check_vectors` reports these
    # vectors as an error, so the warning is not needed.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    options = connection_options(settings.embedding_base_url, settings.embedding_api_key)
    if settings.embedding_model.startswith(("openai:", "azure_openai:")):
        # Send texts, not token ids: many servers do not accept ids, and the tokenizer needs a download.
        options |= {
            "check_embedding_ctx_length": False,
            "timeout": settings.request_timeout,
            "max_retries": 0,  # ChunkEmbedder itself repeats failed requests
        }
    options |= settings.model_options.get("embedding", {})
    return open_client(init_embeddings, ModelRole("EMBEDDING", settings.embedding_model), options)


def _retry_wait_s(state: RetryCallState) -> float:
    """Return the seconds before the next attempt, at most MAX_RETRY_WAIT_S."""
    return min(retry_wait_s(state), MAX_RETRY_WAIT_S)


def _may_succeed_later(state: RetryCallState) -> bool:
    """Return whether to repeat a request.

    A request that timed out is repeated only if it has a single text. `_embed` splits larger requests.
    """
    error = state.outcome.exception() if state.outcome else None
    *_, texts = state.args  # the arguments of `_request`
    is_single = len(texts) == 1
    return isinstance(error, ModelUnavailable) or (is_single and isinstance(error, ModelTimeout))


class ChunkEmbedder:
    """Embeds chunks with the embedding model, in concurrent requests of one batch each.

    `embed` reads its chunks lazily, so that few batches are in memory at once.

    The first request is small. Its duration determines the size of the following requests and how many are
    sent at once. The aim is that every request ends within the time limit even if the server processes one
    request at a time.
    """

    def __init__(
        self, model: Embeddings, settings: Settings, saved: "SavedVectors | None" = None
    ) -> None:
        """Create an embedder for `model`.

        `saved` stores all vectors until `discard_saved_vectors` is called. If it is None, no vectors are
        stored.
        """
        self._model = model
        self._role = ModelRole("EMBEDDING", settings.embedding_model or "")
        # A local model uses its own threads, so several requests at once would only compete for them.
        is_local = isinstance(model, LocalEmbeddings)
        self._max_requests = 1 if is_local else settings.embedding_requests
        self._max_batch_size = settings.embedding_batch
        self._timeout_s = settings.request_timeout
        self._request_limit = 0
        """Maximum number of concurrent requests; 0 until the duration of a request has been measured."""
        self._batch_size = min(FIRST_BATCH_SIZE, self._max_batch_size)
        self._max_chars = settings.embedding_chars
        self._saved = saved

    def embed(self, chunks: Iterable[Chunk]) -> Generator[tuple[list[Chunk], list[Vector]]]:
        """Yield batches of `chunks` in order, each with one vector per chunk.

        Raises ModelError, and StoreUnavailable if the saved vectors cannot be read or stored.
        """
        requests: deque[tuple[list[Chunk], _BatchRequest]] = deque()
        iterator = iter(chunks)
        with ThreadPoolExecutor(self._max_requests, thread_name_prefix="embed") as pool:
            try:
                while batch := list(islice(iterator, self._batch_size)):
                    finished = []
                    while requests and len(requests) >= self._request_limit:
                        finished.append(self._collect(*requests.popleft()))
                    # Send before yielding, so that the model works while the caller uses the vectors.
                    requests.append((batch, self._send(pool, batch)))
                    yield from finished
                    if not self._request_limit:  # the duration determines the next batch size
                        yield self._collect(*requests.popleft())
                while requests:
                    yield self._collect(*requests.popleft())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def embed_queries(self, texts: Iterable[str]) -> list[Vector]:
        """Return the vector of each question in `texts`, in order. Raises ModelError."""
        # Only LocalEmbeddings has a method for several questions. With other models, `embed_documents`
        # embeds the questions as if they were passages. For OpenAI and Ollama, this makes no difference.
        embed = self._model.embed_documents
        if isinstance(self._model, LocalEmbeddings):
            embed = self._model.embed_queries
        requests = (self._embed(embed, batch) for batch in batches(texts, self._max_batch_size))
        return [vector for vectors in requests for vector in vectors]

    def discard_saved_vectors(self) -> None:
        """Delete the saved vectors. Call this when a run has ended without an error."""
        if self._saved is not None:
            self._saved.clear()

    def _send(self, pool: ThreadPoolExecutor, batch: list[Chunk]) -> "_BatchRequest":
        """Send the texts of `batch` to the model, except those with a saved vector."""
        texts = [searchable_text(self._truncated(chunk)) for chunk in batch]
        saved = self._saved.get(texts) if self._saved is not None else {}
        missing = [text for text in dict.fromkeys(texts) if text not in saved]
        vectors = pool.submit(self._embed, self._model.embed_documents, missing)
        return _BatchRequest(texts, saved, missing, vectors)

    def _collect(
        self, batch: list[Chunk], request: "_BatchRequest"
    ) -> tuple[list[Chunk], list[Vector]]:
        """Wait for the vectors of `batch`, save the new ones, and return all in the order of the chunks."""
        vectors = request.missing_vectors.result()
        if self._saved is not None and vectors:
            self._saved.put(request.missing, vectors)
        by_text = request.saved | dict(zip(request.missing, vectors, strict=True))
        return batch, [by_text[text] for text in request.texts]

    def _truncated(self, chunk: Chunk) -> Chunk:
        return chunk.model_copy(update={"body": chunk.body[: self._max_chars]})

    def _embed(self, embed: _Embed, texts: list[str]) -> list[Vector]:
        """Return the vectors of `texts`. A request that times out is split in two, repeatedly if needed."""
        if not texts:
            return []
        half, started = len(texts) // 2, time.monotonic()
        try:
            vectors = self._request(embed, texts)
        except ModelTimeout:
            if not half:
                raise ModelTimeout(
                    f"{self._role.setting}: one text takes longer than APIDESK_REQUEST_TIMEOUT: raise "
                    "this limit, or lower APIDESK_EMBEDDING_CHARS or APIDESK_EMBEDDING_REQUESTS"
                ) from None
            self._slow_down(half)
            return self._embed(embed, texts[:half]) + self._embed(embed, texts[half:])
        if not self._request_limit:
            self._set_pace((time.monotonic() - started) / len(texts))
        return vectors

    def _set_pace(self, seconds_per_text: float) -> None:
        """Set the size of requests and the maximum number of concurrent requests.

        Even if the server processes one request at a time, all concurrent requests together should take at
        most half of the time limit.
        """
        text_count = max(1, int(self._timeout_s / 2 / max(seconds_per_text, 1e-6)))
        self._batch_size = min(self._max_batch_size, text_count)
        self._request_limit = min(self._max_requests, max(1, text_count // self._batch_size))

    def _slow_down(self, batch_size: int) -> None:
        """Limit new batches of chunks to `batch_size` texts, and send one batch at a time.

        Then sleep for the time limit, so that the server can finish the request that timed out.
        """
        self._batch_size = min(self._batch_size, batch_size)
        self._request_limit = 1
        log.warning(
            "%s: no answer in time: new batches of chunks have at most %d texts, and each is sent after "
            "the answer to the previous one; see APIDESK_EMBEDDING_BATCH, APIDESK_EMBEDDING_REQUESTS and "
            "APIDESK_REQUEST_TIMEOUT",
            self._role.setting,
            self._batch_size,
        )
        time.sleep(self._timeout_s)

    @retry(
        retry=_may_succeed_later,
        wait=_retry_wait_s,
        stop=stop_after_attempt(MAX_ATTEMPTS),
        reraise=True,
    )
    def _request(self, embed: _Embed, texts: list[str]) -> list[Vector]:
        with model_errors(self._role):
            vectors = embed(texts)
        check_vectors(vectors, len(texts), self._role)
        return vectors


class _BatchRequest(NamedTuple):
    """The texts of a batch, with the vectors that were saved and the request for the missing vectors."""

    texts: list[str]
    saved: dict[str, Vector]
    """Vectors that were already saved, by text."""
    missing: list[str]
    """Texts without a saved vector."""
    missing_vectors: Future[list[Vector]]
    """The vectors of `missing`."""


def check_vectors(vectors: Sequence[Sequence[object]], text_count: int, role: ModelRole) -> None:
    """Raise ModelOutputInvalid unless there is one vector per text, and all have the same length."""
    if any(isinstance(number, list) for vector in vectors for number in vector[:1]):
        raise ModelOutputInvalid(
            f"{role.setting}: the server returns a vector per token instead of one per text: start it "
            "with pooling (llama.cpp: --pooling mean), or choose an embedding model"
        )
    if len(vectors) != text_count:
        raise ModelOutputInvalid(
            f"{role.setting}: the server returned {len(vectors)} vectors for {text_count} texts"
        )
    if len({len(vector) for vector in vectors}) > 1:
        raise ModelOutputInvalid(
            f"{role.setting}: the server returned vectors of different lengths"
        )


class SavedVectors:
    """A file with texts and their vectors. If a run fails, the next run can use the vectors in the file.

    Use an object in one thread only. `get` and `put` raise StoreUnavailable if the file cannot be used.
    """

    def __init__(self, path: Path, model: str) -> None:
        """Use the file at `path`.

        `model` identifies the model and its options, such as the length of the vectors. Vectors of other
        models are ignored.
        """
        self._path = path
        self._model = model

    @classmethod
    def next_to_snapshot(cls, settings: Settings) -> "SavedVectors | None":
        """Return the saved vectors, in a file next to the snapshot (store/snapshot.py) of a local store.

        Returns None with a Milvus server: a run then usually writes to the existing collection, which
        therefore already contains the vectors of a run that did not finish.
        """
        if not settings.embedded:
            return None
        path = Path(f"{settings.milvus_uri}.{settings.collection}.vectors")
        options = json.dumps(settings.model_options.get("embedding"), sort_keys=True, default=str)
        return cls(path, f"{settings.embedding_model}\n{settings.embedding_base_url}\n{options}")

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of `texts`, by text; texts without a vector are omitted."""
        if not self._path.exists():
            return {}
        keys = {self._key(text): text for text in texts}
        vectors: dict[str, Vector] = {}
        with snapshot_errors(self._path), closing(self._open()) as connection:
            for batch in batches(keys, MAX_VARIABLES):
                condition = f"key IN {placeholders(batch)}"
                for key, data in connection.execute(
                    f"SELECT * FROM vector WHERE {condition}", batch
                ):
                    vectors[keys[key]] = np.frombuffer(data, np.float32).tolist()
        return vectors

    def put(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store the vector of each of `texts`."""
        rows = [
            (self._key(text), np.array(vector, np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with snapshot_errors(self._path), closing(self._open()) as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def clear(self) -> None:
        """Delete all vectors."""
        self._path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, components BLOB) WITHOUT ROWID"
        )
        return connection

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._model}\n{text}".encode()).digest()
