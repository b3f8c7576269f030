"""Anchors of headings, and the URLs of sections made from them."""

from pathlib import Path

import pytest

from ingestion.sources.registry import read_source
from ingestion.text.markdown_blocks import AnchorRule, add_anchors, parse_blocks, strip_anchor
from schemas.document import SourceDocument
from schemas.platform import MarkdownSourceConfig, SourceLimits

PAGE = """# Orders

Lead.

## Ship an order (v2.0)

Text.

## `user_id` & C++ — what's new?

Text.

### Example

Text.

## 订单 发货，API

Text.

### Example

Text.

## 2024 changes {#changes-of-2024}

Text.
"""


@pytest.mark.parametrize(
    ("rule", "anchors"),
    [
        ("github", ["orders", "ship-an-order-v20", "user_id--c--whats-new", "example",
                    "订单-发货api", "example-1", "2024-changes"]),
        ("docusaurus", ["orders", "ship-an-order-v20", "user_id--c--whats-new", "example",
                        "订单-发货api", "example-1", "changes-of-2024"]),
        ("vitepress", ["orders", "ship-an-order-v2-0", "user-id-c-—-what-s-new", "example",
                       "订单-发货-api", "example-1", "changes-of-2024"]),
        ("mkdocs", ["orders", "ship-an-order-v20", "user_id-c-whats-new", "example",
                    "api", "example_1", "changes-of-2024"]),
    ],
)  # fmt: skip
def test_headings_have_the_anchors_of_the_generator(rule: AnchorRule, anchors: list[str]) -> None:
    blocks = list(add_anchors(parse_blocks(PAGE), rule))
    assert [block.anchor for block in blocks if block.kind == "heading"] == anchors


def test_anchor_is_made_from_decoded_entities() -> None:
    (block,) = add_anchors(parse_blocks("# Keys &amp; tokens"), "github")
    assert block.anchor == "keys--tokens"


@pytest.mark.parametrize(
    ("markdown", "anchors"),
    [
        ("# 订单\n# 发货", ["_1", "_2"]),
        ("# `a_1`\n# `a_1`\n# A\n# A", ["a_1", "a_2", "a", "a_3"]),
        ("# `v_09`\n# `v_09`", ["v_09", "v_10"]),
    ],
)
def test_numbers_of_anchors_are_those_of_mkdocs(markdown: str, anchors: list[str]) -> None:
    blocks = add_anchors(parse_blocks(markdown), "mkdocs")
    assert [block.anchor for block in blocks] == anchors


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://d.example/orders#ship-an-order", "https://d.example/orders"),
        ("https://d.example/orders#订单", "https://d.example/orders"),
        ("https://d.example/orders", "https://d.example/orders"),
        ("https://d.example/#/api?apiId=1", "https://d.example/#/api?apiId=1"),
        ("https://d.example/a.pdf#page=3", "https://d.example/a.pdf#page=3"),
    ],
)
def test_anchor_is_removed_but_not_a_route(url: str, page: str) -> None:
    assert strip_anchor(url) == page


def read_page(folder: Path, text: str, page_url: str) -> list[SourceDocument]:
    (folder / "orders.md").write_text(text, encoding="utf-8")
    source = MarkdownSourceConfig(
        name="guides", kind="markdown", path=folder, page_url=(page_url,), anchors="docusaurus"
    )
    documents = list(read_source(source, SourceLimits()))
    assert all(isinstance(document, SourceDocument) for document in documents)
    return [document for document in documents if isinstance(document, SourceDocument)]


def test_each_section_has_its_own_url(tmp_path: Path) -> None:
    (document,) = read_page(tmp_path, PAGE, "https://d.example/{page_path}#{anchor}")
    assert document.page_url == "https://d.example/orders"
    assert {section.heading: section.page_url for section in document.sections} == {
        (): "",
        ("Ship an order (v2.0)",): "https://d.example/orders#ship-an-order-v20",
        ("user_id & C++ — what's new?",): "https://d.example/orders#user_id--c--whats-new",
        ("user_id & C++ — what's new?", "Example"): "https://d.example/orders#example",
        ("订单 发货，API",): "https://d.example/orders#订单-发货api",
        ("订单 发货，API", "Example"): "https://d.example/orders#example-1",
        ("2024 changes",): "https://d.example/orders#changes-of-2024",
    }


def test_operations_of_one_page_have_urls_of_their_headings(tmp_path: Path) -> None:
    text = "".join(
        f"## {name}\n\n`POST /v1/{path}`\n\n| Parameter | Type | Description |\n| --- | --- | --- |\n"
        f"| id | string | The id |\n\n"
        for name, path in (("Create order", "create"), ("Cancel order", "cancel"))
    )
    documents = read_page(tmp_path, f"# Orders\n\n{text}", "https://d.example/{path}#{anchor}")
    assert {d.api_name: d.page_url for d in documents if d.api_name} == {
        "Create order": "https://d.example/orders#create-order",
        "Cancel order": "https://d.example/orders#cancel-order",
    }
