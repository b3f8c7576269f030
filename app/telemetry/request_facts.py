"""Facts for a request's line in the log, noted by whoever learns them while it is answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_facts: ContextVar[dict[str, object] | None] = ContextVar("request_facts", default=None)


@contextmanager
def log_context() -> Iterator[dict[str, object]]:
    """What is noted within the block, in tasks and threads that it begins as well."""
    facts: dict[str, object] = {}
    token = _facts.set(facts)
    try:
        yield facts
    finally:
        _facts.reset(token)


def bind_log_context(**facts: object) -> None:
    """Note `facts` for the request that is being answered, if there is one."""
    noted = _facts.get()
    if noted is not None:
        noted.update(facts)
