"""What was read of a store, remembered: questions ask for the same again and again.
Whether what a process knows of its collection is still so: another one may have written it.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from ingestion.store.client import milvus_errors
from schemas.errors import ApideskError, StoreUnavailable

CacheKey = TypeVar("CacheKey", bound=Hashable)
CacheValue = TypeVar("CacheValue")


class ReadThroughCache(Generic[CacheKey, CacheValue]):
    """Values by key, read once by `read`, which leaves out the keys that there are none of."""

    def __init__(
        self, read: Callable[[list[CacheKey]], Mapping[CacheKey, CacheValue]], most: int
    ) -> None:
        """Of more than `most` keys those are forgotten that nobody has asked for the longest."""
        self._read = read
        self._most = most
        self._lock = Lock()
        self.forget()

    def of(self, keys: Iterable[CacheKey]) -> dict[CacheKey, CacheValue]:
        """The values of `keys`, in their order; keys that there are none of are left out."""
        wanted = list(dict.fromkeys(keys))
        known = self._known  # another thread may begin it anew
        with self._lock:
            values = {key: known[key] for key in wanted if key in known}
        if missing := [key for key in wanted if key not in values]:
            found = self._read(missing)
            read = {key: found.get(key) for key in missing}
            with self._lock:
                known.update(read)
            values |= read
        return {key: value for key in wanted if (value := values[key]) is not None}

    def forget(self) -> None:
        """Read everything anew."""
        self._known: LRUCache[CacheKey, CacheValue | None] = LRUCache(self._most)


FRESH_SECONDS = 1.0
"""How long what is known of the collection goes unchecked; so long, too, a store that failed is left
alone.
"""


class Freshness:
    """Compares, once a second at most, what the store says of a collection with what was loaded."""

    def __init__(self, state: Callable[[], str | None], load: Callable[[], None]) -> None:
        """`state` asks the store, and is None where there is no collection; `load` ends in `loaded`."""
        self._state_now = state
        self._load = load
        self._state: str | None = None
        """What the store said when the collection was loaded; None where it has to be loaded."""
        self._checked = 0.0
        """When that was last compared (`time.monotonic`)."""
        self._failure: ApideskError | None = None
        """Why the last comparison failed."""
        self._loading = threading.RLock()

    def refresh(self) -> None:
        """Load anew what another process has written since, or what a store that was away forgot.

        Raises what loading raises.
        """
        if self._is_fresh():
            return
        with self._loading:
            if self._is_fresh():  # somebody else has done it
                return
            try:
                with self.store():
                    if self._state is None or self._state != self._state_now():
                        self._load()
                self._failure = None
            except ApideskError as error:
                self._failure = copy(error)
                raise
            finally:
                self._checked = time.monotonic()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Nobody else loads within the block. Raises StoreUnavailable for Milvus's errors."""
        with self._loading, self.store():
            yield

    def loaded(self, state: str) -> None:
        """The collection is loaded, as it was when the store said `state`."""
        self._state, self._checked, self._failure = state, time.monotonic(), None

    @contextmanager
    def store(self) -> Iterator[None]:
        """Milvus's errors as ours; after one the collection is loaded anew: a restart forgets that."""
        try:
            with milvus_errors():
                yield
        except StoreUnavailable:
            self._state = None
            raise

    def _is_fresh(self) -> bool:
        """Whether what is known was compared just now. Raises why it could not be."""
        if time.monotonic() - self._checked > FRESH_SECONDS:
            return False
        if self._failure is not None:
            raise copy(self._failure)  # one error raised by many threads would gather their stacks
        return self._state is not None
