"""Caches values read from the store, and reloads a collection after another process has written it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from ingestion.store.client import milvus_errors
from schemas.errors import ApideskError, StoreUnavailable

CacheValue = TypeVar("CacheValue")

CHECK_INTERVAL_S = 1.0
"""Minimum number of seconds between two checks for writes by other processes."""


class ReadThroughCache(Generic[CacheValue]):
    """Caches values by key, and reads those that are missing. For a key without a value, None is cached."""

    def __init__(
        self, read: Callable[[list[str]], Mapping[str, CacheValue]], max_keys: int
    ) -> None:
        """Create an empty cache of at most `max_keys` keys.

        `read` returns the values of the given keys, and omits keys without a value.
        """
        self._read = read
        self._max_keys = max_keys
        self._lock = Lock()
        self.clear()

    def get(self, keys: Iterable[str]) -> dict[str, CacheValue]:
        """Return the values of `keys` in the order of `keys`. Keys without a value are omitted."""
        wanted = list(dict.fromkeys(keys))
        entries = self._entries  # `clear` in another thread may replace `self._entries`
        with self._lock:
            values = {key: entries[key] for key in wanted if key in entries}
        if missing := [key for key in wanted if key not in values]:
            stored = self._read(missing)
            read = {key: stored.get(key) for key in missing}
            with self._lock:
                entries.update(read)
            values |= read
        return {key: value for key in wanted if (value := values[key]) is not None}

    def clear(self) -> None:
        """Remove every entry."""
        self._entries: LRUCache[str, CacheValue | None] = LRUCache(self._max_keys)


class CollectionReloader:
    """Reloads a collection when its version in the store differs from the loaded one."""

    def __init__(self, read_version: Callable[[], str | None], load: Callable[[], None]) -> None:
        """Create a reloader. The first call of `refresh` loads the collection.

        `read_version` returns None if there is no collection. `load` must call `mark_loaded`.
        """
        self._read_version = read_version
        self._load = load
        self._version: str | None = None
        """The loaded version; None if the collection must be loaded."""
        self._checked_at = 0.0
        """`time.monotonic` of the last check."""
        self._failure: ApideskError | None = None
        """Error of the last check, if it failed."""
        self._loading = threading.RLock()

    def refresh(self) -> None:
        """Reload the collection if another process wrote it or the store was restarted.

        The version is checked at most once per `CHECK_INTERVAL_S`. Raises the errors of `read_version` and
        `load`. After an error, every call raises the same error until the next check.
        """
        if self._is_fresh():
            return
        with self._loading:
            if self._is_fresh():  # another thread has refreshed it
                return
            try:
                with self.store_errors():
                    if self._version is None or self._version != self._read_version():
                        self._load()
                self._failure = None
            except ApideskError as error:
                self._failure = copy(error)
                raise
            finally:
                self._checked_at = time.monotonic()

    @contextmanager
    def exclusive_load(self) -> Iterator[None]:
        """Run the block, which loads the collection, while no other thread can load it.

        Raises Milvus's errors as StoreUnavailable.
        """
        with self._loading, self.store_errors():
            yield

    def mark_loaded(self, version: str) -> None:
        """Record that `version` of the collection is loaded."""
        self._version, self._checked_at, self._failure = version, time.monotonic(), None

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Raise Milvus's errors as StoreUnavailable.

        After such an error, the next check loads the collection again, because a store that was restarted
        has no loaded collections.
        """
        try:
            with milvus_errors():
                yield
        except StoreUnavailable:
            self._version = None
            raise

    def _is_fresh(self) -> bool:
        """Return whether a recent check found the loaded version current.

        If that check failed, its error is raised again.
        """
        if time.monotonic() - self._checked_at > CHECK_INTERVAL_S:
            return False
        if self._failure is not None:
            raise copy(self._failure)  # raising adds a traceback, so each caller gets a copy
        return self._version is not None
