"""Questions with a name and a version that are written together, while the documents separate them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ingestion.text.words import with_indexed_versions
from runnables.question.extract_details import extract_details
from runnables.retrieval.exact_search import missing_identifiers
from schemas.question import Filters
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import open_collection, write
from tests.small_platform import quoted_page

PAGE = """
# Protocols

## Encryption

Connections are accepted with TLS 1.2 and TLS 1.3. TLS 1.1 has been switched off.

## Delivery

Messages are delivered with QoS 0 or QoS 1. QoS 2 closes the connection.

## Batch import

Rows of a CSV file are imported in the order of the file, and a broken row is skipped.
"""


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("is TLS1.2 supported?", "TLS 1.2 and TLS 1.3"),
        ("tls1.1还能用吗", "TLS 1.1 has been switched off"),
        ("支持qos2不", "QoS 2 closes the connection"),
        ("is qos2 supported?", "QoS 2 closes the connection"),
    ],
)
def test_version_after_a_name_without_a_space(tmp_path: Path, question: str, fact: str) -> None:
    answer = quoted_page(tmp_path, PAGE, question)
    assert fact in answer
    assert "does not contain" not in answer
    assert "没有" not in answer


def test_only_an_unknown_name_with_a_version_is_missing(tmp_path: Path) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "m.db")), "embedded")
    write(collection, page("protocols", PAGE))
    details = extract_details("tls1.2, TLS1.3 or zmtp3.1?")
    assert missing_identifiers(collection, details, Filters()) == ["zmtp3.1"]
    collection.close()


@pytest.mark.parametrize(
    ("indexed", "text", "expected"),
    [
        ("mqtt 5", "does mqtt5.0 work?", "does mqtt 5.0 work?"),
        ("mqtt", "MQTT5", "MQTT 5"),
        ("mqtt5", "MQTT 5 吗", "MQTT5 吗"),
        ("mqtt mqtt5", "mqtt5 or MQTT 5", "mqtt5 or MQTT 5"),
        ("", "mqtt5", "mqtt5"),
        ("bil", "BIL0017", "BIL0017"),
        ("sha rs", "sha256 and rs256", "sha256 and rs256"),
        ("api", "api2.example.com/api2/x", "api2.example.com/api2/x"),
        ("line", "line2_total", "line2_total"),
    ],
)
def test_names_and_versions_are_written_as_in_the_index(
    indexed: str, text: str, expected: str
) -> None:
    def word_counts(words: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(set(words) & set(indexed.split()), 1)

    assert with_indexed_versions(text, word_counts) == expected
