"""The magic blocks, callouts and variables of ReadMe.com become Markdown."""

import json
from pathlib import Path

import pytest

from ingestion.sources.markdown import markdown_content
from ingestion.sources.readme_blocks import replace_magic_blocks
from tests.api_page_lines import read_lines


def block(kind: str, values: object) -> str:
    return f"[block:{kind}]\n{json.dumps(values, indent=2)}\n[/block]"


def plain(markdown: str) -> str:
    return markdown_content(markdown).parts[0].markdown


CELLS = {
    "h-0": "Name", "h-1": "Type", "h-2": "Text",
    "0-0": "`id`", "0-1": "a|b", "0-2": "The *id*.\n- one\n- two",
    "10-0": "`z`", "2-0": "`c`", "2-2": None, "x": "other",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values", "markdown"),
    [
        (
            "parameters",
            {"data": CELLS, "cols": 3, "rows": 11},
            "| Name | Type | Text |\n| --- | --- | --- |\n"
            "| `id` | a\\|b | The *id*.<br>- one<br>- two |\n| `c` |  |  |\n| `z` |  |  |",
        ),
        (
            "callout",
            {"type": "warning", "title": "Be \\_careful\\_", "body": "One.\n\nTwo."},
            "> **Be \\_careful\\_**\n>\n> One.\n>\n> Two.",
        ),
        ("callout", {"type": "info", "body": "One."}, "> **Info**\n>\n> One."),
        (
            "code",
            {
                "codes": [
                    {"code": "curl -d '{\"a\": \"\\n\"}'", "language": "curl", "name": "cURL"},
                    {"code": "a\n```\nb", "language": "text", "name": "Old file"},
                    {"code": "{}", "language": None},
                ]
            },
            "```curl\ncurl -d '{\"a\": \"\\n\"}'\n```\n\n"
            "**Old file**\n\n````text\na\n```\nb\n````\n\n```\n{}\n```",
        ),
        ("api-header", {"title": "Keys", "anchor": "k"}, "## Keys"),
        ("image", {"images": [{"image": ["https://a.example/1.png", "1.png"]}]}, ""),
        ("html", {"html": "<style>p {}</style><p>Two <b>words</b></p>"}, "Two **words**"),
        ("embed", {"url": "https://v.example/1", "title": "A film"}, "[A film](https://v.example/1)"),
        ("embed", {"url": "javascript:x()", "title": "A film"}, "A film"),
    ],
)  # fmt: skip
def test_magic_block_is_converted(kind: str, values: object, markdown: str) -> None:
    page = plain(f"# Page\n\n{block(kind, values)}\n\nEnd.")
    assert page == "\n\n".join(filter(None, ["# Page", markdown, "End."]))


@pytest.mark.parametrize(
    "text",
    [
        '[block:callout]\n{"body": \n[/block]',
        "[block:callout]\n[1]\n[/block]",
        "[block:callout]\n" + "[" * 5000 + "\n[/block]",
        '[block:callout]\n{"body": "never closed"}',
        '[block:unknown]\n{"body": "x"}\n[/block]',
        '```\n[block:callout]\n{"body": "x"}\n[/block]\n```',
    ],
    ids=["invalid", "no object", "deep", "open", "unknown", "code"],
)
def test_other_text_is_not_changed(text: str) -> None:
    assert replace_magic_blocks(text) == text


@pytest.mark.parametrize(
    "values", [{}, {"data": 1}, {"codes": [1, {}]}, {"title": 1, "html": [], "url": {}}]
)
@pytest.mark.parametrize("kind", ["parameters", "callout", "code", "api-header", "html", "embed"])
def test_values_of_other_types_are_left_out(kind: str, values: object) -> None:
    assert "[block" not in replace_magic_blocks(block(kind, values))


def test_cells_far_from_the_others_do_not_make_the_table_larger() -> None:
    data = {f"{n}-{n}": "x" for n in range(2_000)} | {"9999999-0": "x", "0-9999999": "x"}
    assert len(replace_magic_blocks(block("parameters", {"data": data}))) < 100_000


@pytest.mark.parametrize("part", ["[block:code]\n", "[block:code]", "[block:code]{[", "  \n "])
def test_long_pages_are_read_quickly(part: str) -> None:
    text = part * (20_000 // len(part))
    assert replace_magic_blocks(f"[block:code]{text}").endswith(text)


def test_table_below_a_call_has_the_parameters_of_the_operation(tmp_path: Path) -> None:
    cells = {
        "h-0": "Field", "h-1": "Type", "h-2": "Required", "h-3": "Description",
        "0-0": "`berth`", "0-1": "string", "0-2": "yes", "0-3": "Where\nit lies.",
        "1-0": "`days`", "1-1": "integer", "1-2": "no", "1-3": "",
    }  # fmt: skip
    page = f"# Book a berth\n\n`POST /v1/stays`\n\n{block('parameters', {'data': cells})}\n"
    lines = read_lines(page, tmp_path / "page.md")
    assert lines == ["POST /v1/stays Book a berth", "berth!", "days"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("> 🚧 Not exact\n>\n> Up to 60 s.", "> Not exact\n>\n> Up to 60 s."),
        ("> ❗️ Stop\n> 🚧 here", "> Stop\n> 🚧 here"),
        ("> ❌ No\n> ✅ Yes", "> ❌ No\n> ✅ Yes"),
        ("Use <<apiKey>> or <<URL>>.", "Use `<apiKey>` or `<URL>`."),
        ("An <<glossary:open invoice>>, `<<a>>`", "An open invoice, `<<a>>`"),
        ("1 << 2, a<<id>", "1 << 2, a<<id>"),
    ],
)
def test_callouts_and_variables_are_read(written: str, read: str) -> None:
    assert plain(f"# Page\n\n{written}") == f"# Page\n\n{read}"
