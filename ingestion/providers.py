"""What the clients of model providers raise, as ModelError: the one boundary for that.
Model providers by name: `provider:model` -> a LangChain client, from the settings of its role.
The embedding model named in Settings, and how many texts are embedded at once.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr
from tenacity import (
    RetryCallState,
    retry,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from ingestion.store.client import batches
from ingestion.store.schema import Vector, embedded_text
from schemas.document import Chunk
from schemas.errors import (
    ApideskError,
    ConfigurationError,
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.settings import PREFIX, Settings

RETRYABLE_STATUS = {408, 409, 425, 429, 500, 502, 503, 504, 529}

_backoff = wait_random_exponential(multiplier=0.25, max=8)


@dataclass(frozen=True)
class ModelRole:
    """What a model is for, and by that the settings that name it."""

    prefix: str
    """`CHAT`, `CHAT_FALLBACK`, `STRUCTURE`, `JUDGE` or `EMBEDDING`."""
    model: str
    """`provider:model`."""

    @property
    def setting(self) -> str:
        """The setting that names the model, with its value."""
        return f"{PREFIX}{self.prefix}_MODEL={self.model}"

    @property
    def labels(self) -> dict[str, str]:
        """What tells the model apart in traces and metrics."""
        return {"role": self.prefix.lower(), "model": self.model}

    def sentence(self, what: str, where: str) -> str:
        """What went wrong, and which setting of this role to look at."""
        return f"{self.setting}: {what}; check {PREFIX}{self.prefix}_{where}"


@contextmanager
def model_errors(role: ModelRole) -> Iterator[None]:
    """Within the block a provider's error becomes a ModelError that names the setting to look at."""
    try:
        yield
    except ApideskError:
        raise
    except Exception as error:
        raise model_error(error, role) from error


def model_error(error: Exception, role: ModelRole) -> ModelError:
    """`error` as a ModelError. Clients of different providers agree on names and on status codes."""
    name, status = type(error).__name__, getattr(error, "status_code", None)
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return ModelTimeout(f"{role.setting}: no answer in time")
    if status in (401, 403):
        return ModelRefused(role.sentence("the provider refuses the key", "API_KEY"), status)
    if status == 404:
        return ModelRefused(role.sentence("the provider does not know this model", "MODEL"), status)
    if isinstance(status, int) and status not in RETRYABLE_STATUS and status >= 400:
        return ModelRefused(role.sentence(f"the provider answers {status}", "MODEL"), status)
    if isinstance(status, int) and status > 0:
        what = "too many requests" if status == 429 else f"the provider answers {status}"
        return ModelUnavailable(f"{role.setting}: {what}", _retry_after(error))
    if "Connect" in name or "Network" in name or isinstance(error, OSError):
        return ModelUnavailable(role.sentence("the provider cannot be reached", "BASE_URL"))
    return ModelUnavailable(role.sentence(f"the reply cannot be read ({name})", "BASE_URL"))


def wait_as_told(state: RetryCallState) -> float:
    """Seconds before the next try: what the provider asks for, else exponential with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ModelError) else None
    return asked if asked is not None else _backoff(state)


def first_line(error: Exception) -> str:
    """What `error` says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _retry_after(error: Exception) -> float | None:
    """Seconds that the provider asks to wait, from the reply's Retry-After."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if isinstance(headers, Mapping) else None
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:  # a date, which the providers here do not send
        return None


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
