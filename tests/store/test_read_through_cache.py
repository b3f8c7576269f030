"""The cache of what was read from a collection."""

from ingestion.store.cache import ReadThroughCache


def test_cache_reads_each_key_once_until_cleared() -> None:
    asked: list[str] = []

    def read(words: list[str]) -> dict[str, int]:
        asked.extend(words)
        return {word: 0 for word in words if word != "nowhere"}

    counts = ReadThroughCache(read, max_keys=3)
    assert counts.get(["签名", "nowhere"]) == {"签名": 0}
    assert asked == ["签名", "nowhere"]
    assert counts.get(["nowhere", "签名"]) == {"签名": 0}
    assert asked == ["签名", "nowhere"]
    assert list(counts.get(["订单", "发货", "签名", "订单"])) == ["订单", "发货", "签名"]
    assert asked == ["签名", "nowhere", "订单", "发货"]
    counts.get(["nowhere"])  # evicted as the least recently used key
    assert asked[-1] == "nowhere"
    counts.clear()
    counts.get(["签名"])
    assert asked[-2:] == ["nowhere", "签名"]


def test_cache_drops_values_read_before_a_concurrent_clear() -> None:
    def read(keys: list[str]) -> dict[str, int]:
        values.clear()
        return dict.fromkeys(keys, len(reads))

    reads: list[int] = []
    values = ReadThroughCache(read, max_keys=3)
    assert values.get(["a"]) == {"a": 0}
    reads.append(1)
    assert values.get(["a"]) == {"a": 1}
