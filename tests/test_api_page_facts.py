"""Scopes, faults, values and nesting that API pages state in labels, sentences and spacer cells."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.permissions import scopes_in, scopes_of_value
from ingestion.sources.formats.html_markdown import table_to_markdown
from ingestion.text.markdown_blocks import parse_table
from tests.api_page_lines import read_lines, read_operations

SPACER_CELLS = """<h1>Reserve a berth</h1>
<table>
<tr><th>HTTP method</th><th>Path</th><th>Required role</th></tr>
<tr><td>POST</td><td><tt>/berths/reserve</tt></td><td><tt>PORT_AGENT</tt> or <tt>PILOT</tt></td></tr>
</table>
<h2>Request</h2>
<table>
<tr><th colspan="3">Element</th><th>Type</th><th>M/O/C</th></tr>
<tr><td colspan="3">ship</td><td>Ship</td><td>M</td></tr>
<tr><td rowspan="3">&nbsp;</td><td colspan="2">imo</td><td>String(7)</td><td>M</td></tr>
<tr><td colspan="2">cargo</td><td>Cargo</td><td>O</td></tr>
<tr><td>&nbsp;</td><td>unit</td><td>Enum</td><td>C</td></tr>
<tr><td colspan="3">note</td><td>String</td><td>O</td></tr>
</table>
<h2>Faults</h2>
<table>
<tr><th>HTTP</th><th>Fault code</th><th>Meaning</th></tr>
<tr><td rowspan="2">409</td><td>PRT-11</td><td>Berth is taken</td></tr>
<tr><td>PRT-12</td><td>Ship is too long</td></tr>
</table>
"""

SHARED_SCOPE = """# Kites

Both calls need the permission `kite_read`.

## List kites % GET /kites

#### Query String Params

| Field | Type | Required |
| --- | --- | --- |
| wind | string | false |

## Rename a kite % POST /kites/rename

The caller needs `kites:write`, which `name` does not.

#### JSON Params

| Field | Type |
| --- | --- |
| name | string |

#### JSON Error Codes

| Code | Meaning |
| --- | --- |
| 7001 | Name is taken |
"""

CODES_OF_A_FIELD = """# 查询库位

`GET https://a.example/slots`

## 请求参数

- `X-Trace` (string, header, required)
- `order` (integer, optional) — 排序
    - `0`: 升序
    - `1`: 降序

**errcode 的合法值**

| 值 | 说明 |
| --- | --- |
| -1 | 系统繁忙 |
| 61001 | 库位不存在 |
"""

FIELDS_WITH_BLOCKS = """<main><h1>Book a tram</h1>
<div><span class="verb">POST</span><span class="path">/trams</span></div>
<section><h2>Body parameters</h2>
<div><div><code>line</code></div><div><span>string</span> <span>Required</span></div><div>Its name.</div></div>
<div><div><code>stop</code></div><div><span>object</span> <span>Optional</span></div><div>Where.</div>
  <div><div><div><code>code</code></div><div>string <b>Required</b></div><p>Its code.</p></div></div></div>
<div><div><code>seats</code></div><div><span>integer</span></div><div>How many.</div></div>
</section></main>
"""

PAGES = {
    "fields with blocks": (
        "html",
        FIELDS_WITH_BLOCKS,
        ["POST /trams Book a tram", "line!", "stop", "stop.code!", "seats"],
    ),
    "spacer cells": (
        "html",
        SPACER_CELLS,
        [
            "POST /berths/reserve Reserve a berth",
            "ship!",
            "ship.imo!",
            "ship.cargo",
            "ship.cargo.unit",
            "note",
            "PRT-11",
            "PRT-12",
            "PORT_AGENT",
            "PILOT",
        ],
    ),
    "shared scope": (
        "md",
        SHARED_SCOPE,
        [
            "GET /kites List kites",
            "wind",
            "kite_read",
            "POST /kites/rename Rename a kite",
            "name",
            "7001",
            "kites:write",
        ],
    ),
    "codes of a field": (
        "md",
        CODES_OF_A_FIELD,
        ["GET https://a.example/slots 查询库位", "X-Trace!", "order", "-1", "61001"],
    ),
}
"""Suffix, page and expected lines by structure."""


@pytest.mark.parametrize("name", PAGES)
def test_structure_is_read(name: str, tmp_path: Path) -> None:
    suffix, text, expected = PAGES[name]
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected


def test_columns_without_title_stay_apart_if_both_have_text() -> None:
    table = "<table><tr><th>Port</th><th></th></tr><tr><td>Bay</td><td>2 m</td></tr></table>"
    assert table_to_markdown(table).splitlines()[-1] == "| Bay | 2 m |"


def test_table_whose_rows_are_named_has_an_empty_header() -> None:
    rows = "<tr><th><code>a</code></th><td>x</td></tr><tr><th><code>b</code></th><td>y</td></tr>"
    table = table_to_markdown(f"<table>{rows}</table>")
    assert parse_table(table) == [["", ""], ["`a`", "x"], ["`b`", "y"]]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("<td>Id<td colspan=2>yes", ["Id", "yes", "yes"]),
        ("<td colspan=3>From 2026", ["From 2026", "", ""]),
        ("<td rowspan=2>Id<td>a<td>b<tr><td colspan=2>yes", ["Id", "yes", "yes"]),
        (f"<td>Id<td colspan=2>{'x' * 201}", ["Id", "x" * 201, ""]),
    ],
    ids=["cell", "whole row", "rest of a spanned row", "long text"],
)
def test_cell_is_repeated_in_the_columns_that_it_spans(rows: str, expected: list[str]) -> None:
    table = f"<table><tr><td>Paper<td>Firm<td>Person<tr>{rows}</table>"
    assert parse_table(table_to_markdown(table))[-1] == expected


def test_cell_is_not_repeated_in_columns_without_a_title_of_their_own() -> None:
    head = "<tr><th>Paper</th><th colspan=2>Needed</th></tr>"
    row = "<tr><td>Id</td><td colspan=2>yes</td></tr><tr><td>Photo</td><td>yes</td><td>no</td></tr>"
    table = parse_table(table_to_markdown(f"<table>{head}{row}</table>"))
    assert table == [["Paper", "Needed", ""], ["Id", "yes", ""], ["Photo", "yes", "no"]]


def test_cell_is_repeated_in_a_table_whose_rows_are_named() -> None:
    rows = "<tr><th>Id</th><td>a</td><td>b</td></tr><tr><th>Photo</th><td colspan=2>yes</td></tr>"
    table = parse_table(table_to_markdown(f"<table>{rows}</table>"))
    assert table == [["", "", ""], ["Id", "a", "b"], ["Photo", "yes", "yes"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`admin` or `editor`. Without `max`, all boats sink.", [("admin", ""), ("editor", "")]),
        ("`admin`, `editor` 或 `viewer`。", [("admin", ""), ("editor", ""), ("viewer", "")]),
        ("`boats:read`: Reads boats. Not `boats`.", [("boats:read", "Reads boats. Not boats")]),
        ("`boats:read`. Users: `users:read`.", [("boats:read", ""), ("users:read", "")]),
        ("`reader`. It also needs the role `writer`.", [("reader", ""), ("writer", "")]),
        ("`admin`. `reader`.", [("admin", ""), ("reader", "")]),
        ("`write` or higher", [("write", "or higher")]),
    ],
)
def test_permissions_end_with_their_sentence(text: str, expected: list[tuple[str, str]]) -> None:
    for read in (scopes_in, scopes_of_value):
        assert [(scope.name, scope.description) for scope in read(text)] == expected


@pytest.mark.parametrize(
    ("title", "cell", "names"),
    [
        ("ACL Required", "`tide:write`", ["tide:write"]),
        ("Required ACL", "`tide:read,moon:read`", ["tide:read", "moon:read"]),
        ("Role needed", "`warden`<sup>1</sup>", ["warden"]),
        ("ACL Required", "`none`", []),
        ("权限", "`tide:read`", ["tide:read"]),
    ],
)
def test_column_of_an_endpoint_s_features_states_its_permissions(
    title: str, cell: str, names: list[str], tmp_path: Path
) -> None:
    table = f"| Cached | Paged | {title} |\n| --- | --- | --- |\n| `NO` | `none` | {cell} |"
    page = f"# Add a tide\n\n`POST /tides`\n\n{table}\n\n### Parameters\n\n- `hour` `(int: 0)` - An hour.\n"
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [(scope.name, scope.description) for scope in operation.permissions] == (
        [(name, "") for name in names]
    )
