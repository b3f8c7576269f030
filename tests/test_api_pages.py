"""API operations in Markdown, MDX and HTML pages, recognised by their content."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ingestion.sources.api_pages.calls import example_call
from ingestion.sources.api_pages.operation import PageOperation
from ingestion.sources.api_pages.page import read_operations
from ingestion.sources.registry import EmptyFile, read_source
from ingestion.text.markdown_blocks import parse_blocks
from schemas.document import Parameter, SourceDocument
from schemas.platform import FilesSourceConfig, MarkdownSourceConfig, SourceLimits
from tests.api_page_lines import SEVERAL

LABELLED_TABLE = """# 创建工单

基本 | &nbsp;
---|---
HTTP URL | https://api.acme.example/open/v1/tickets/:ticket_id
HTTP Method | POST
权限要求 | 创建工单(ticket:ticket:write)

## 请求体

名称 | 类型 | 必填 | 描述
---|---|---|---
title | string | 是 | 标题
owner | object | 否 | 负责人
&nbsp;&nbsp;└ user\\_id | string | 是 | 用户

## 响应

名称 | 类型 | 描述
---|---|---
code | int | 错误码
data | object | 数据
&emsp;└ items | object[] | 列表
&emsp;&emsp;└ id | string | 编号

## 错误码

HTTP 状态码 | 错误码 | 描述 | 排查建议
---|---|---|---
400 | 1300021 | 参数错误 | 检查参数
"""

LABELS = """# 查询账单

**请求方式**：【GET】/v3/bills

| 字段名 | 变量名 | 类型 | M/O |
| --- | --- | --- | --- |
| 账单日期 | bill_date | string | M |
| 类型 | bill_type | string | O |
"""

EXAMPLE = """# Search

```bash
curl -X POST https://api.acme.example/v1/search -d '{"q": "x"}'
```

## Request body

| Name | Type | Required |
| --- | --- | --- |
| q | string | yes |
"""

EXAMPLE_WITH_URLS_IN_DATA = """# Search

```bash
curl -X POST -H 'Referer: https://shop.example' -d '
{"site": "https://shop.example/a"}
' https://api.acme.example/v1/search
```

## Request body

| Name | Type | Required |
| --- | --- | --- |
| q | string | yes |
"""

TUTORIAL = """# Quickstart

```bash
curl -X POST http://localhost:19530/v1/collections -d '{}'
```

```bash
curl http://localhost:19530/v1/collections
```

## Set up index parameters

| Parameter | Type | Description |
| --- | --- | --- |
| index_type | string | The index. |
"""

MDX = """---
title: Get a call
api: "GET /v1/calls/{call_id}"
---
<ParamField path="call_id" type="string" required>The call.</ParamField>

<ResponseField name="segments" type="object[]">
  <Expandable><ResponseField name="text" type="string" /></Expandable>
</ResponseField>
"""

HTML = """<html><body><h1>suppressions/delete</h1>
<dl><dt>HTTP method</dt><dd>DELETE</dd><dt>Request URL</dt><dd>https://a.example/1/{address}</dd></dl>
<table><tr><th>Name</th><th>Type</th><th>Mandatory</th></tr>
<tr><td>reason</td><td>object</td><td>N</td></tr>
<tr><td>&nbsp;&nbsp;text</td><td>string</td><td>Y</td></tr></table></body></html>"""


def read(markdown: str) -> tuple[PageOperation, ...]:
    return read_operations(parse_blocks(markdown), "Page").operations


def names(parameters: Sequence[Parameter], parent: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the dotted name of each parameter, and whether it is required."""
    for parameter in parameters:
        yield parent + parameter.name, parameter.required is True
        yield from names(parameter.children, f"{parent}{parameter.name}.")


def test_page_with_a_table_of_facts() -> None:
    (operation,) = read(LABELLED_TABLE)
    assert (operation.method, operation.name) == ("POST", "Page")
    assert operation.document("t", "s", "zh").url == "/open/v1/tickets/:ticket_id"
    assert dict(names(operation.request_parameters)) == {
        "ticket_id": True,
        "title": True,
        "owner": False,
        "owner.user_id": True,
    }
    assert [name for name, _ in names(operation.response_parameters)] == [
        "code",
        "data",
        "data.items",
        "data.items.id",
    ]
    (error,) = operation.error_codes
    assert (error.code, error.message) == ("1300021", "参数错误 (HTTP 400)")
    assert error.remedy == "检查参数"
    assert [scope.name for scope in operation.permissions] == ["ticket:ticket:write"]


def test_several_operations_on_one_page() -> None:
    listing, creation = read(SEVERAL)
    assert (listing.name, creation.name) == ("List boards", "Create a board")
    assert dict(names(listing.request_parameters)) == {"limit": False}
    assert dict(names(creation.request_parameters)) == {
        "name": True,
        "columns": False,
        "columns.title": True,
    }
    assert [error.code for error in creation.error_codes] == ["name_taken"]
    assert [scope.name for scope in creation.permissions] == ["boards:write"]


@pytest.mark.parametrize(
    ("page", "url", "expected"),
    [
        (LABELS, "/v3/bills", {"bill_date": True, "bill_type": False}),
        (EXAMPLE, "https://api.acme.example/v1/search", {"q": True}),
        (EXAMPLE_WITH_URLS_IN_DATA, "https://api.acme.example/v1/search", {"q": True}),
    ],
    ids=["labels", "example", "URLs in data"],
)
def test_parameters_of_other_styles(page: str, url: str, expected: dict[str, bool]) -> None:
    (operation,) = read(page)
    assert operation.url == url
    assert dict(names(operation.request_parameters)) == expected


def test_tutorial_is_prose() -> None:
    assert read(TUTORIAL) == ()


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    (tmp_path / "ticket.md").write_text(LABELLED_TABLE, encoding="utf-8")
    (tmp_path / "boards.md").write_text(SEVERAL, encoding="utf-8")
    (tmp_path / "call.mdx").write_text(MDX, encoding="utf-8")
    (tmp_path / "empty.md").write_text("# Only a heading\n", encoding="utf-8")
    (tmp_path / "old.html").write_text(HTML, encoding="utf-8")
    return tmp_path


def test_operations_become_api_documents(pages: Path) -> None:
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=pages)
    results = list(read_source(source, SourceLimits()))
    assert [each.name for each in results if isinstance(each, EmptyFile)] == ["empty.md"]
    documents = {each.id: each for each in results if isinstance(each, SourceDocument)}
    assert documents.keys() == {
        "ticket", "call", "boards", "boards#list-boards", "boards#create-a-board",
    }  # fmt: skip
    assert documents["call"].api_url == "/v1/calls/{call_id}"
    assert "segments[].text" in documents["call"].sections[-1].body
    kinds = [section.kind for section in documents["ticket"].sections]
    assert kinds[:5] == [
        "request_url", "request_parameters", "response_parameters", "error_codes",
        "permission_package",
    ]  # fmt: skip
    assert documents["boards"].api_url == ""


def test_description_of_an_operation_is_not_repeated(tmp_path: Path) -> None:
    text = """# Delete a key

**DELETE** `/v1/keys/{{id}}`

**Scope:** `keys:write` · **Rate class:** slow

{description}

| Parameter | Type | Required |
| --- | --- | --- |
| id | string | yes |
"""
    descriptions = {"plain": "Deletes a key.", "linked": "Deletes a [key](https://keys.example)."}
    for name, description in descriptions.items():
        (tmp_path / f"{name}.md").write_text(text.format(description=description), encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    for document in read_source(source, SourceLimits()):
        assert isinstance(document, SourceDocument)
        bodies = [section.body for section in document.sections]
        assert bodies[0].startswith(descriptions[document.id])
        assert sum("Deletes a" in body for body in bodies) == 1
        assert any("| keys:write |  |" in body for body in bodies)


def test_skipped_page_is_not_reported_as_empty(tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text("---\ndraft: true\n---\nText", encoding="utf-8")
    (tmp_path / "empty.md").write_text("# Only a heading\n", encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path, skip=("draft",))
    results = list(read_source(source, SourceLimits()))
    files = [each for each in results if isinstance(each, EmptyFile)]
    assert [(each.name, each.is_skipped) for each in files] == [
        ("draft.md", True),
        ("empty.md", False),
    ]


def test_html_page_is_an_operation(pages: Path) -> None:
    source = FilesSourceConfig(kind="files", name="old", path=pages, suffixes=(".html",))
    (document,) = read_source(source, SourceLimits())
    assert isinstance(document, SourceDocument)
    assert document.api_url == "/1/{address}"
    (table,) = [s.body for s in document.sections if s.kind == "request_parameters"]
    assert "| reason.text |" in table


def test_recognition_can_be_turned_off(pages: Path) -> None:
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=pages, api_pages=False)
    documents = [d for d in read_source(source, SourceLimits()) if isinstance(d, SourceDocument)]
    assert not any(document.api_url for document in documents)


def test_single_words_are_named_after_the_topic_of_their_page(tmp_path: Path) -> None:
    table = "| Name | Required |\n| --- | --- |\n| id | yes |\n"
    calls = "".join(
        f"## {name}\n\n`{name.upper()} /boats`\n\n{table}\n" for name in ("Put", "Delete")
    )
    (tmp_path / "page.md").write_text(f"# Boats\n\n{calls}", encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    found = [
        each for each in read_source(source, SourceLimits()) if isinstance(each, SourceDocument)
    ]
    assert [each.api_name for each in found] == ["Boats - Put", "Boats - Delete"]
    assert [each.id for each in found] == ["page#put", "page#delete"]


def test_labels_in_a_list_go_with_the_tables_below_them(tmp_path: Path) -> None:
    page = (
        "# Boats\n\n`GET /boats`\n\n- **Request parameters**\n\n| Name | Required |\n| --- | --- |\n| id | yes |\n\n"
        "- **Limits**\n\nTen calls a minute.\n"
    )
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    (found,) = read_source(source, SourceLimits())
    assert isinstance(found, SourceDocument)
    text = "\n".join(section.body for section in found.sections if section.kind == "prose")
    assert "Limits" in text
    assert "Request parameters" not in text


def test_prose_below_an_operation_keeps_its_chapter(tmp_path: Path) -> None:
    table = "| Name | Required |\n| --- | --- |\n| id | yes |\n"
    tokens = "".join(
        f"### {name} token\n\n#### Request\n\n`POST /{name}`\n\n#### Parameters\n\n{table}\n"
        for name in ("public", "private")
    )
    page = (
        "# Start\n\nText.\n\n# Boats\n\n## Rent a boat\n\n### Request\n\n`POST /rent`\n\n"
        f"### Parameters\n\n{table}\n# Events\n\n## Token\n\nText.\n\n{tokens}## Ping\n\nSome text.\n"
    )
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    found = [
        each for each in read_source(source, SourceLimits()) if isinstance(each, SourceDocument)
    ]
    headings = [section.heading for each in found if not each.api_id for section in each.sections]
    assert ("Events", "Ping") in headings


def test_operation_links_to_its_heading(tmp_path: Path) -> None:
    table = "| Name | Required |\n| --- | --- |\n| id | yes |\n"
    calls = "".join(
        f"## {title}\n\n`{method} /orders`\n\n{table}\n"
        for title, method in (("1.1 Create an order", "POST"), ("Orders", "GET"), ("Orders", "PUT"))
    )
    (tmp_path / "page.md").write_text(f"# Trade\n\n{calls}", encoding="utf-8")
    source = MarkdownSourceConfig(
        kind="markdown", name="docs", path=tmp_path, page_url="https://a.example/{path}#{anchor}"
    )
    found = [
        each for each in read_source(source, SourceLimits()) if isinstance(each, SourceDocument)
    ]
    assert [each.page_url.partition("#")[2] for each in found] == [
        "11-create-an-order",
        "orders",
        "orders-1",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        "-d callback=https://c.d/e https://a.b/v1/x",
        "-H Referer:https://r.r 'https://a.b/v1/x'",
        "-x http://proxy:8080 https://a.b/v1/x",
        "--url=https://a.b/v1/x --data-raw 'u=https://c.d/e'",
        "'https://a.b/v1/x' -d https://c.d/e",
    ],
)
def test_url_of_a_curl_command_is_not_in_the_value_of_an_option(arguments: str) -> None:
    (block,) = parse_blocks(f"```sh\ncurl {arguments}\n```\n")
    call = example_call(block)
    assert call is not None
    assert call.url == "https://a.b/v1/x"
