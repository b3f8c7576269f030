"""Every error that apidesk raises on purpose.

    ApideskError
    ├── ConfigurationError        a setting or platform.toml is wrong
    │   └── CollectionMismatch    the collection was made with other settings
    ├── SourceError               a document cannot be read
    ├── IngestionError            the ingestion job cannot do what it is asked
    │   ├── IngestionRunning      another run is under way
    │   ├── IngestionStopped      somebody stopped it
    │   └── DeletesRefused        too much of a source has vanished for a rebuild
    ├── QuestionError             the question cannot be taken as it is
    │   ├── QuestionTooLong
    │   └── UnknownModel          no model of /v1 has the name
    ├── DeskBusy                  more questions than can be answered at once
    ├── ServerStopping            the server ends before the answer is there
    ├── ModelError                the language or embedding model failed
    │   ├── ModelUnavailable      retrying can help
    │   ├── ModelRefused          a key, a name or a parameter is wrong: retrying cannot help
    │   ├── ModelTimeout
    │   ├── ModelBusy             its calls under way are as many as may be
    │   └── ModelOutputInvalid
    ├── AccessError               the caller may not do this
    │   ├── Unauthorized          no key, or none that counts
    │   ├── Forbidden             the key lacks the scope; without keys, a request from elsewhere
    │   └── RateLimited           too much of it in too little time
    └── StoreError                Milvus failed
        ├── StoreUnavailable
        ├── StoreLocked           another process holds the embedded store
        └── CollectionMissing

The message of each is one sentence for the person who has to act on it.
"""

from typing import ClassVar


class ApideskError(Exception):
    """The root. `code` is stable and meant for programs; `retryable` says whether waiting can help."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False


class ConfigurationError(ApideskError):
    """A setting or the platform profile is wrong; the message names it."""

    code = "bad_configuration"


class CollectionMismatch(ConfigurationError):
    """The collection was made with other settings than the ones in force."""

    code = "collection_mismatch"


class SourceError(ApideskError):
    """A source or one of its documents cannot be read; the message names it."""

    code = "bad_source"


class IngestionError(ApideskError):
    """The ingestion job cannot do what it is asked."""

    code = "ingestion_error"


class IngestionRunning(IngestionError):
    """Another run is under way; the message says whose."""

    code = "ingestion_running"
    retryable = True


class IngestionStopped(IngestionError):
    """The run was stopped before its end; the next one goes on from there."""

    code = "ingestion_stopped"
    retryable = True


class DeletionsRefused(IngestionError):
    """Much of a source has vanished, and a rebuild would lose it."""

    code = "deletes_refused"


class QuestionError(ApideskError):
    """The question cannot be taken as it is."""

    code = "invalid_input"

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class QuestionTooLong(QuestionError):
    """The question is longer than `APIDESK_MAX_QUESTION_CHARS`."""

    code = "too_large"


class UnknownModel(QuestionError):
    """The desk is no model of this name; the message lists those that it is."""

    code = "model_not_found"

    def __init__(self, message: str) -> None:
        super().__init__(message, field="model")


class ServiceBusy(ApideskError):
    """As many questions are being answered as may be at once."""

    code = "busy"
    retryable = True


class ServerStopping(ApideskError):
    """The server ends before the answer is there."""

    code = "stopping"
    retryable = True


class ModelError(ApideskError):
    """The language or embedding model failed; `retry_after` is in seconds, where the provider said."""

    code = "model_error"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """The model cannot be reached or is overloaded."""

    code = "model_unavailable"
    retryable = True


class ModelRefused(ModelError):
    """The provider refuses the key, the model's name or the request."""

    code = "model_refused"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ModelTimeout(ModelError):
    """The model took longer than the request may."""

    code = "model_timeout"
    retryable = True


class ModelBusy(ModelError):
    """No call could be made in time: as many are under way as may be at once."""

    code = "model_busy"
    retryable = True


class ModelOutputInvalid(ModelError):
    """The model answered, but not with what its schema asks for."""

    code = "model_output_invalid"
    retryable = True


class AccessError(ApideskError):
    """The caller may not do this."""


class Unauthorized(AccessError):
    """The request has no key, or one that is unknown, revoked or expired."""

    code = "unauthorized"


class Forbidden(AccessError):
    """The key lacks the scope; or no key is configured, and the request comes from elsewhere."""

    code = "forbidden"


class RateLimited(AccessError):
    """The caller has used up what is theirs; `retry_after` is in seconds."""

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreError(ApideskError):
    """Milvus failed."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """Milvus, or the database, cannot be reached."""

    code = "store_unavailable"
    retryable = True


class StoreLocked(StoreError):
    """Another process holds the embedded store, which serves one process at a time."""

    code = "store_locked"


class CollectionMissing(StoreError):
    """Nothing has been indexed yet."""

    code = "collection_missing"
