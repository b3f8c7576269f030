"""What the clients of model providers raise, as ModelError: the one boundary for that."""

from collections.abc import Iterator
from contextlib import contextmanager

from langchain_core.exceptions import OutputParserException

from schemas.errors import (
    ApideskError,
    ModelError,
    ModelOutputInvalid,
    ModelTimeout,
    ModelUnavailable,
)


@contextmanager
def model_errors(setting: str) -> Iterator[None]:
    """Within the block a provider's error becomes a ModelError; `setting` is the one to look at."""
    try:
        yield
    except ApideskError:
        raise
    except Exception as error:
        raise _model_error(error, setting) from error


def first_line(error: Exception) -> str:
    """What `error` says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _model_error(error: Exception, setting: str) -> ModelError:
    """Clients of different providers agree on names and status codes, not on classes."""
    name, status = type(error).__name__, getattr(error, "status_code", None)
    if isinstance(error, OutputParserException):
        return ModelOutputInvalid(f"the answer of the model of {setting} does not fit its schema")
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return ModelTimeout(f"the model of {setting} did not answer in time")
    if status in (401, 403):
        return ModelUnavailable(f"the provider of {setting} refuses the key")
    if status == 404:
        return ModelUnavailable(f"the provider of {setting} does not know the model")
    if status is not None:
        return ModelUnavailable(f"the provider of {setting} answered with status {status}")
    return ModelUnavailable(f"the provider of {setting} cannot be reached ({name})")
