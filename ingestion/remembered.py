"""What was read of a store, remembered: questions ask for the same again and again."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

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
