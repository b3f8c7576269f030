"""Tests of chunking: content, size limits, and stable ids."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from ingestion.chunking import API_SECTION_FACTOR, chunk_document
from ingestion.store.schema import MAX_SEARCH_TEXT_BYTES
from ingestion.text.language import estimate_tokens
from ingestion.text.markdown_blocks import parse_blocks
from schemas.document import Chunk, Section, SectionKind, SourceDocument

CAPS = [50, 400, 8_000]


def document(*sections: Section | str, **fields: object) -> SourceDocument:
    """A page; a string stands for a section of prose."""
    return SourceDocument.model_validate(
        {"id": "page", "source": "guides", "title": "Page", "language": "en"}
        | fields
        | {"sections": [s if isinstance(s, Section) else section(s) for s in sections]}
    )


def section(body: str, *heading: str, kind: SectionKind = "prose") -> Section:
    return Section(kind=kind, heading=heading, body=body)


def chunks(*sections: Section | str, max_tokens: int = 400, **fields: Any) -> list[Chunk]:
    return list(chunk_document(document(*sections, **fields), max_tokens))


def table(rows: int, columns: tuple[str, ...] = ("name", "说明")) -> str:
    cells = [[f"{column} {i}" for column in columns] for i in range(rows)]
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fence(lines: int, marker: str = "```") -> str:
    return "\n".join([f"{marker}json", *(f'"field_{i}": {i},' for i in range(lines)), marker])


# --- content


def test_chunk_contains_document_section_and_front_matter() -> None:
    (chunk,) = chunks(
        section("Send it.", "Orders", "Ship", kind="request_url"),
        title="Ship an order",
        service_id="orders",
        api_id="1110",
        api_name="Ship an order",
        api_url="/order/ship",
        page_url="https://open.example.com/#/api?apiId=1110",
        metadata={"version": "v1: new", "empty": ""},
    )
    front, _, body = chunk.text.removeprefix("---\n").partition("---\n")
    assert yaml.safe_load(front) == {
        "serviceId": "orders",
        "apiId": "1110",
        "apiName": "Ship an order",
        "apiUrl": "/order/ship",
        "pageUrl": "https://open.example.com/#/api?apiId=1110",
        "version": "v1: new",
    }
    assert body == "# Ship an order > Orders > Ship\n\nSend it."
    assert (chunk.section, chunk.kind, chunk.position) == ("Orders > Ship", "request_url", 0)
    assert (chunk.document_id, chunk.source, chunk.language) == ("page", "guides", "en")


@pytest.mark.parametrize(
    ("sections", "heading"),
    [(["Text"], "# Page\n"), ([section("Text", "Part")], "# Page > Part\n")],
    ids=["above the first heading", "below one"],
)
def test_chunk_text_has_the_heading_above_the_body(sections: list[Section], heading: str) -> None:
    (chunk,) = chunks(*sections)
    assert chunk.text.startswith(heading), "no empty front matter"


@pytest.mark.parametrize("sections", [[], [""], [" \n"]], ids=["none", "empty", "blank"])
def test_empty_page_has_no_chunks(sections: list[str]) -> None:
    assert chunks(*sections) == []


# --- splitting


@pytest.mark.parametrize(
    ("body", "kind", "max_tokens", "parts"),
    [
        pytest.param("word " * 10, "prose", 50, 1, id="short"),
        pytest.param("\n\n".join(["word " * 30] * 4), "prose", 80, 2, id="two blocks fit"),
        pytest.param(
            "\n\n".join(["word " * 30] * 4), "request_url", 80, 1, id="API sections: more"
        ),
        pytest.param("word " * 1_000, "prose", 50, 1, id="a paragraph is not cut"),
        pytest.param(fence(100), "prose", 50, 1, id="a fence is not cut"),
        pytest.param("- item\n" * 200, "prose", 50, 1, id="a list is not cut"),
        pytest.param(table(30), "request_parameters", 50, 1, id="table of an API"),
        pytest.param(table(30), "prose", 50, 6, id="table of a page"),
    ],
)
def test_sections_are_split_between_blocks(
    body: str, kind: SectionKind, max_tokens: int, parts: int
) -> None:
    found = chunks(section(body, kind=kind), max_tokens=max_tokens)
    assert len(found) == parts
    assert [chunk.position for chunk in found] == list(range(parts))


def random_section(rng: random.Random, name: int) -> Section:
    """A section of random blocks in which every line is unique."""

    def words(count: int) -> str:
        return " ".join(rng.choice(["订单发货", "order_ship", "the", "签名"]) for _ in range(count))

    def block(number: int) -> str:
        length, tag = rng.choice([1, 5, 40, 200]), f"{name}.{number}"
        return rng.choice(
            [
                f"paragraph {tag} {words(length)}",
                "\n".join(f"- item {tag}.{i} {words(3)}" for i in range(length)),
                table(length, (f"column {tag}", words(4))),
                fence(length, rng.choice(["```", "~~~~"])).replace("field", f"field_{tag}"),
                f"<details>{tag} {words(length)}</details>",
                f"[ref{tag}]: https://example.com/{tag}",
            ]
        )

    body = "\n\n".join(block(number) for number in range(rng.randrange(1, 6)))
    kind: SectionKind = rng.choice(["prose", "response_parameters"])
    return section(body, f"Part {rng.randrange(3)}", kind=kind)


def random_documents(seed: int) -> Iterator[SourceDocument]:
    rng = random.Random(seed)
    for _ in range(4):
        yield document(*(random_section(rng, name) for name in range(rng.randrange(1, 5))))


@pytest.mark.parametrize("max_tokens", CAPS)
@pytest.mark.parametrize("seed", range(3))
def test_chunks_contain_the_whole_page(seed: int, max_tokens: int) -> None:
    for page in random_documents(seed):
        found = list(chunk_document(page, max_tokens))
        bodies = [chunk.body for chunk in found]
        lines = {line for body in bodies for line in body.split("\n")}
        for part in page.sections:
            assert set(part.body.split("\n")) <= lines | {""}
            for block in parse_blocks(part.body):
                if block.kind == "fence":
                    assert any(block.text in body for body in bodies)
        assert len({chunk.id for chunk in found}) == len(found)
        assert [chunk.position for chunk in found] == list(range(len(found)))


@pytest.mark.parametrize("max_tokens", CAPS)
@pytest.mark.parametrize("seed", range(3))
def test_chunks_keep_tables_and_the_token_limit(seed: int, max_tokens: int) -> None:
    for page in random_documents(seed):
        headers = {
            "\n".join(block.text.split("\n")[:2])
            for part in page.sections
            for block in parse_blocks(part.body)
            if block.kind == "table"
        }
        for chunk in chunk_document(page, max_tokens):
            blocks = parse_blocks(chunk.body)
            for block in blocks:
                if block.text.startswith("|"):
                    assert block.kind == "table"
                    assert "\n".join(block.text.split("\n")[:2]) in headers
            if len(blocks) > 1:
                cap = max_tokens * (1 if chunk.kind == "prose" else API_SECTION_FACTOR)
                assert sum(estimate_tokens(block.text) for block in blocks) <= cap


# --- extreme pages


PATHOLOGICAL = {
    "fence of many lines": fence(8_000),
    "fence of one line": f"```\n{'x' * 100_000}\n```",
    "fence of blank lines": f"```\n{chr(10) * 100_000}x\n```",
    "fence left open": "~~~~\n" + "line\n" * 8_000 + "the last",
    "fence left open before a shorter one": "````\n" + "line\n" * 8_000 + "```",
    "fence left open before another": "```\n" + "line\n" * 8_000 + "```json",
    "indented code": "    ```\n" + "    code\n" * 8_000 + "    the last",
    "paragraph without spaces": "字" * 100_000,
    "paragraph of four-byte characters": "😀" * 100_000,
    "paragraphs of one letter": "a\n\n" * 9_000,
    "paragraphs of three bytes": "─\n\n" * 9_000,
    "list": "- 項目 ⑩\n" * 6_000,
    "table of many rows": table(3_000),
    "table of three-byte characters": table(1_500, ("カタカナ" * 5, "ひらがな" * 5)),
    "table with a huge row": f"{table(3)}\n| {'x' * 100_000} | y |\n| last | row |",
    "table with a huge header": table(3, ("x" * 100_000, "y")),
    "table with wide rows": table(3, ("─" * 11_000, "y")),
    "table with a large header": table(50, ("x" * 5_000, "y")),
    "html": "<div>\n" + "<p>text</p>\n" * 6_000 + "</div>",
    "odd line ends": "a\u2028b\x0cc\x85d " * 20_000,
}


@pytest.mark.acceptance
@pytest.mark.parametrize(("kind", "max_tokens"), [("prose", 50), ("response_parameters", 8_000)])
@pytest.mark.parametrize("body", PATHOLOGICAL.values(), ids=PATHOLOGICAL)
def test_every_chunk_fits_a_milvus_field_and_none_is_lost(
    body: str, kind: SectionKind, max_tokens: int
) -> None:
    found = chunks(section(body, "Part", kind=kind), max_tokens=max_tokens)
    assert max(len(chunk.text.encode()) for chunk in found) <= MAX_SEARCH_TEXT_BYTES
    assert len({chunk.id for chunk in found}) == len(found)
    lines = {line for chunk in found for line in chunk.body.split("\n")}
    assert {line for line in body.split("\n") if len(line) < 200} <= lines | {""}
    kept = sum(len("".join(chunk.body.split())) for chunk in found)
    assert kept >= len("".join(body.split()))


@pytest.mark.parametrize("marker", ["```", "~~~~~"])
def test_each_part_of_a_long_code_block_is_fenced(marker: str) -> None:
    found = chunks(fence(5_000, marker))
    assert len(found) > 1
    for chunk in found:
        (block,) = parse_blocks(chunk.body)
        assert block.kind == "fence"
        assert block.text.startswith(f"{marker}json\n")
        assert block.text.endswith(f"\n{marker}")


def test_each_part_of_a_long_table_has_its_header() -> None:
    found = chunks(table(500))
    assert len(found) > 1
    rows = [line for chunk in found for line in chunk.body.split("\n")[2:]]
    assert rows == table(500).split("\n")[2:]
    assert {tuple(c.body.split("\n")[:2]) for c in found} == {tuple(table(0).split("\n"))}


def test_long_header_of_a_table_without_rows_is_kept() -> None:
    header = table(0, tuple(f"column {i}" for i in range(900)))
    assert "column 899" in "".join(chunk.body for chunk in chunks(header))


# --- ids and hashes


def test_chunking_is_deterministic() -> None:
    for page in random_documents(seed=7):
        assert list(chunk_document(page, 400)) == list(chunk_document(page, 400))


def test_sections_with_the_same_heading_have_distinct_chunks() -> None:
    found = chunks(*(section(f"text {i}", "Notes") for i in range(200)))
    assert len({chunk.id for chunk in found}) == 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(document("x", id="a"), document("x", id="b"), id="document"),
        pytest.param(document("x", source="a"), document("x", source="b"), id="source"),
        pytest.param(document(section("x", "a")), document(section("x", "b")), id="heading"),
        pytest.param(document(section("x", "a", "b")), document(section("x", "ab")), id="path"),
        pytest.param(
            document(section("x", kind="request_headers")),
            document(section("x", kind="error_codes")),
            id="kind",
        ),
    ],
)
def test_different_sections_have_different_chunk_ids(
    one: SourceDocument, other: SourceDocument
) -> None:
    ids = [chunk.id for page in (one, other) for chunk in chunk_document(page, 400)]
    assert len(set(ids)) == 2


def test_edit_changes_one_hash_and_no_id() -> None:
    before = chunks(section("one", "A"), section("two", "B"))
    after = chunks(section("one", "A"), section("two, edited", "B"))
    assert [c.id for c in before] == [c.id for c in after]
    changed = [a.content_hash != b.content_hash for a, b in zip(before, after, strict=True)]
    assert changed == [False, True]


def test_new_section_keeps_the_ids_of_the_others() -> None:
    before = chunks(section("one", "A"), section("two", "B"))
    after = chunks(section("new", "New"), section("one", "A"), section("two", "B"))
    assert [c.id for c in after[1:]] == [c.id for c in before]


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"page_url": "https://other"},
        {"metadata": {"version": "v2"}},
        {"api_name": "Other"},
        {"language": "zh"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_content_hash_covers_every_stored_field(change: dict[str, Any]) -> None:
    (before,), (after,) = chunks("text"), chunks("text", **change)
    assert before.id == after.id
    assert before.content_hash != after.content_hash


def test_positions_are_consecutive() -> None:
    found = chunks("\n\n".join(f"{i:04} {'word ' * 30}" for i in range(50)), max_tokens=80)
    starts = [chunk.body[:4] for chunk in found]
    assert len(starts) > 10
    assert all(one < other for one, other in pairwise(starts))


@pytest.mark.parametrize("block", ["- Delete the kiln.\n- Keep the jars.", table(3), fence(3)])
def test_short_paragraph_stays_with_the_block_below_it(block: str) -> None:
    filler, governing = "word " * 60, "The following is **not** done. The list may grow."
    first, second = chunks(f"{filler}\n\n{governing}\n\n{block}", max_tokens=90)
    assert first.body.strip() == filler.strip()
    assert second.body == f"{governing}\n\n{block}"
