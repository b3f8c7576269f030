"""What the clients of model providers raise, as ModelError: the one boundary for that."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tenacity import RetryCallState, wait_random_exponential

from schemas.errors import ApideskError, ModelError, ModelRefused, ModelTimeout, ModelUnavailable
from schemas.settings import PREFIX

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
