"""Tests of the fuzzy lookup of documents by name."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from ingestion.store.catalogue import CatalogueBuilder
from runnables.question.query_analysis import Glossary
from runnables.retrieval.name_index import NameIndex, parse_name
from schemas.document import CatalogueEntry, SourceDocument
from schemas.platform import SourceLimits

DATA = Path(__file__).parent / "data"
SAMPLES = Path(__file__).parents[1] / "samples" / "platform.toml"


@pytest.fixture(scope="module")
def names() -> NameIndex:
    """Index of the sample platform's documents."""
    catalogue = CatalogueBuilder()
    for source in read_platform(SAMPLES).sources:
        for document in read_source(source, SourceLimits(), {}):
            assert isinstance(document, SourceDocument)
            catalogue.add(chunk.model_dump() for chunk in chunk_document(document, 400))
    glossary = tomllib.loads((DATA / "glossary_samples.toml").read_text(encoding="utf-8"))
    return NameIndex(list(catalogue.entries()), Glossary(glossary["glossary"]))


def cases(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / file).read_text(encoding="utf-8").splitlines()]


def resolved(names: NameIndex, name: str) -> list[str]:
    return [entry.document_id for entry in names.resolve(name)]


@pytest.mark.parametrize("file", ["fuzzy_names.jsonl", "fuzzy_names_held_out.jsonl"])
def test_right_document_is_first_in_95_percent(names: NameIndex, file: str) -> None:
    asked = [case for case in cases(file) if case["gold"]]
    missed = [c for c in asked if not {*resolved(names, c["name"])[:1]} & {*c["gold"]}]
    assert len(missed) <= 0.05 * len(asked), missed


@pytest.mark.parametrize(
    "name", [c["name"] for c in cases("fuzzy_names.jsonl") if not c["gold"]]
    + ["", " ", "？！", "接口", "API", "v2", "的", "a" * 100_000, "面" * 100_000, "😀", "\x00", "/", "{}"],
)  # fmt: skip
def test_unknown_name_resolves_to_no_document(names: NameIndex, name: str) -> None:
    assert resolved(names, name) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("快递面单取号", ["1174", "1175"]),
        ("快递面单取号 V1", ["1174"]),
        ("快递面单取号 version 2.0", ["1175"]),
        ("快递面单取号第2版", ["1175"]),
        ("快递面单取号2.0版", ["1175"]),
        ("快递面单取号2.1版", []),
        ("快递面单取号版本2.1", []),
        ("快递面单取号2", ["1175"]),
        ("快递面单取号V3", []),
        ("waybill create v2", ["1175"]),
        ("/dop/api/v1/waybill/create", ["1174"]),
        ("订单详情查询 v2", []),
    ],
)
def test_versions_are_not_confused(names: NameIndex, name: str, expected: list[str]) -> None:
    apis = [document for document in resolved(names, name) if document.isdigit()]
    assert apis[: len(expected)] == expected if expected else not apis


@pytest.mark.parametrize("version", ["第2版", "2.0版", "版本2", "V2"])
def test_version_is_no_word_of_a_name(version: str) -> None:
    words, versions = parse_name(f"库存{version}")
    assert (words, set(versions)) == (("库", "存"), {"2"})


@pytest.mark.parametrize(
    "name",
    [
        "1402", "/dop/api/v1/inventory/sync", "/DOP/api/v1/inventory/sync/", "inventory/sync",
        "POST https://api.open.example.com/gateway/dop/api/v1/inventory/sync?x=1",
        "https://open.example.com/#/api?apiId=1402", "接口 /dop/api/v1/inventory/sync 的文档",
    ],
)  # fmt: skip
def test_address_or_id_resolves_to_its_document(names: NameIndex, name: str) -> None:
    assert resolved(names, name)[:1] == ["1402"]


@pytest.mark.parametrize("service", ["order", "refund", "Inventory", "message"])
def test_service_resolves_to_its_documents(names: NameIndex, service: str) -> None:
    found = names.resolve(service, 10)
    assert found[0].service_id == service.lower()
    assert len({entry.document_id for entry in found}) == len(found)


def test_resolve_returns_at_most_limit_documents(names: NameIndex) -> None:
    assert [len(names.resolve("查询", limit)) for limit in (1, 2, 3)] == [1, 2, 3]


def entry(title: str, **fields: str) -> CatalogueEntry:
    values = {"source": "s", "document_id": title, "title": title, "kind": "page", "language": "en"}
    return CatalogueEntry.model_validate(values | fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("list docs", "List Documents"),
        ("Delete Document", "Delete Document"),
        ("delet documnt", "Delete Document"),
        ("api docs", "API docs"),
        ("web hook", "Webhooks"),
        ("sendmessage", "Send Message"),
        ("OAuth2", "OAuth 2.0"),
        ("signing v1", "Signing v1.2"),
        ("signing v1.3", "Signing v1.3"),
    ],
)
def test_generic_words_count_if_names_contain_them(name: str, expected: str) -> None:
    titles = ["List Documents", "Delete Document", "API docs", "Webhooks", "Send Message",
              "OAuth 2.0", "Signing v1.2", "Signing v1.3"]  # fmt: skip
    found = NameIndex([entry(title) for title in titles], Glossary({})).resolve(name)
    assert found[0].title == expected


def test_empty_index_resolves_nothing() -> None:
    assert NameIndex([], Glossary({})).resolve("anything") == []
