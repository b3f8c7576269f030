"""The errors that apidesk raises.

    ApideskError
    ├── ConfigurationError        a setting or platform.toml is wrong
    │   └── CollectionMismatch    the collection was created with other settings, or not by apidesk
    ├── SourceError               a document cannot be read
    ├── IngestionError            a run cannot start or finish
    │   ├── IngestionRunning      another run is in progress
    │   ├── IngestionStopped      the run was stopped
    │   └── DeletionsRefused      a rebuild would lose documents
    ├── QuestionError             the question is invalid
    │   ├── QuestionTooLong
    │   └── UnknownModel          /v1 has no model of this name
    ├── ServiceBusy               the limit of concurrent questions is reached
    ├── ServerStopping            the server is stopping and does not complete the answer
    ├── ModelError                the language or embedding model failed
    │   ├── ModelUnavailable      the model cannot be reached or is overloaded
    │   ├── ModelRefused          a key, a name or a parameter is wrong; a retry would fail too
    │   │   └── ContextExceeded   the prompt and the reply exceed the context window
    │   ├── ModelTimeout
    │   │   └── ModelNotCalled    no time was left for a call
    │   ├── ModelBusy             the limit of concurrent calls is reached
    │   └── ModelOutputInvalid
    ├── AccessError               the caller is not allowed to do this
    │   ├── Unauthorized          no key, or an invalid one
    │   ├── Forbidden             the key lacks the scope, or no key is configured and the caller is remote
    │   └── RateLimited           the caller exceeded a rate limit
    └── StoreError                the store cannot be read or written
        ├── StoreUnavailable
        ├── StoreLocked           the Milvus Lite file cannot be opened
        └── CollectionMissing

Each message is one line that names the problem and, if the reader can fix it, the fix.
"""

from typing import ClassVar


class ApideskError(Exception):
    """Base class of all errors. `code` is stable; `retryable` says whether a later attempt may succeed."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False


class ConfigurationError(ApideskError):
    """A setting, an option or platform.toml is invalid; the message names the entry."""

    code = "bad_configuration"


class CollectionMismatch(ConfigurationError):
    """The collection was created by another program, or with settings that differ from the current ones."""

    code = "collection_mismatch"


class SourceError(ApideskError):
    """A source or one of its documents cannot be read.

    The function that catches the error adds the name of the file to the message.
    """

    code = "bad_source"


class IngestionError(ApideskError):
    """An ingestion run cannot start or finish."""

    code = "ingestion_error"


class IngestionRunning(IngestionError):
    """Another run is in progress; the message names its host and process."""

    code = "ingestion_running"
    retryable = True


class IngestionStopped(IngestionError):
    """The run was stopped early; the next run completes the update."""

    code = "ingestion_stopped"
    retryable = True


class DeletionsRefused(IngestionError):
    """A rebuild would lose documents that could not be found or read."""

    code = "deletes_refused"


class QuestionError(ApideskError):
    """The question is invalid; `field` names the request field."""

    code = "invalid_input"

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class QuestionTooLong(QuestionError):
    """The question is longer than `APIDESK_MAX_QUESTION_CHARS`."""

    code = "too_large"


class UnknownModel(QuestionError):
    """The OpenAI-compatible API has no model of this name; the message lists the names."""

    code = "model_not_found"

    def __init__(self, message: str) -> None:
        super().__init__(message, field="model")


class ServiceBusy(ApideskError):
    """The limit of concurrent questions is reached."""

    code = "busy"
    retryable = True


class ServerStopping(ApideskError):
    """The server is stopping and does not complete the answer."""

    code = "stopping"
    retryable = True


class ModelError(ApideskError):
    """A model failed; `retry_after` is the delay that the provider asks for, in seconds."""

    code = "model_error"
    provider_message = ""
    """The provider's own message, which may quote the request. Show it only to the operator."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """The model cannot be reached or is overloaded; `status` is that of the HTTP reply, if any."""

    code = "model_unavailable"
    retryable = True

    def __init__(
        self, message: str, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message, retry_after)
        self.status = status


class ModelRefused(ModelError):
    """The provider refuses the key, the model's name or the request."""

    code = "model_refused"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ContextExceeded(ModelRefused):
    """The prompt and the reply exceed the context window of `window` tokens."""

    def __init__(self, message: str, status: int, window: int) -> None:
        super().__init__(message, status)
        self.window = window


class ModelTimeout(ModelError):
    """The model did not reply within the time limit."""

    code = "model_timeout"
    retryable = True


class ModelNotCalled(ModelTimeout):
    """The model was not called, because no time was left."""


class ModelBusy(ModelError):
    """No slot for a concurrent call became free before the deadline."""

    code = "model_busy"
    retryable = True


class ModelOutputInvalid(ModelError):
    """The model replied, but the reply cannot be used: for example, it does not match the schema."""

    code = "model_output_invalid"
    retryable = True


class AccessError(ApideskError):
    """The caller is not allowed to do this."""


class Unauthorized(AccessError):
    """The request has no key, or one that is unknown, revoked or expired."""

    code = "unauthorized"


class Forbidden(AccessError):
    """The key lacks the required scope, or no key is configured and the request comes from another host."""

    code = "forbidden"


class RateLimited(AccessError):
    """The caller exceeded a rate limit; `retry_after` is in seconds."""

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreError(ApideskError):
    """The store cannot be read or written."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """Milvus, the local index file or the database cannot be reached or used.

    The command line also raises it if it sends a question to a running server on this machine, and the
    server does not answer.
    """

    code = "store_unavailable"
    retryable = True


class StoreLocked(StoreError):
    """The local index file is open in another process, or is not a Milvus Lite file."""

    code = "store_locked"


class CollectionMissing(StoreError):
    """No documents are indexed."""

    code = "collection_missing"
