"""Limits of what is read from API pages: queries, marks, guides, remarks and odd input."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.page import read_operations as operations_of
from ingestion.sources.registry import read_source
from ingestion.text.markdown_blocks import parse_blocks
from schemas.document import SourceDocument
from schemas.platform import MarkdownSourceConfig, SourceLimits
from tests.api_page_lines import read_lines, read_operations


@pytest.mark.parametrize(
    ("query", "kept", "parameters"),
    [
        ("?Action=CreateOrder&Version=1", "?Action=CreateOrder", ["Version"]),
        ("?method=orders.create", "?method=orders.create", []),
        ("?page=1&action=list", "", ["page", "action"]),
        ("?action=1", "", ["action"]),
        ("?Version=1&Action=CreateOrder", "?Action=CreateOrder", ["Version"]),
    ],
)
def test_query_that_names_the_operation_is_part_of_its_url(
    query: str, kept: str, parameters: list[str], tmp_path: Path
) -> None:
    page = f"# Order\n\n`GET https://rpc.example/{query}`\n\n| Name | Required |\n| --- | --- |\n| id | yes |\n"
    expected = [f"GET https://rpc.example/{kept} Order", "id!", *parameters]
    assert read_lines(page, tmp_path / "page.md") == expected
    document = read_operations(page, tmp_path / "page.md")[0].document("a", "s", "en")
    assert (document.url, document.servers) == (f"/{kept}", ("https://rpc.example",))


def test_table_without_a_header_is_read(tmp_path: Path) -> None:
    page = (
        "# Passwords\n\n`POST /passwords`\n\n### Arguments\n\n"
        "| `user_id` | The user. Required: true |\n| --- | --- |\n| `note` | A remark. Required: false |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /passwords Passwords",
        "user_id!",
        "note",
    ]


@pytest.mark.parametrize("title", ["Parameters", "What to send", ""])
def test_one_column_is_read_below_any_title(title: str, tmp_path: Path) -> None:
    page = (
        "# Passwords\n\n`POST /passwords`\n\n### Arguments\n\n"
        f"| {title} |\n| --- |\n| `user_id` The user. Required: true |\n| `note` A remark. |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /passwords Passwords",
        "user_id!",
        "note",
    ]


def test_call_and_description_are_not_repeated_as_prose(tmp_path: Path) -> None:
    page = (
        "# Boats\n\n## Remove a boat\n\n* `DELETE /boats/{id}` removes the boat with the `id`.\n\n"
        "It needs a key.\n\n**Required parameters**: `id` of the boat\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert operation.document("a", "s", "en").description == "Removes the boat with the `id`."
    assert [block.text for block in operation.further_prose if block.kind == "paragraph"] == [
        "It needs a key."
    ]


def test_query_of_an_ordinary_path_gives_parameters(tmp_path: Path) -> None:
    page = (
        "# Pay\n\n`GET /v1/pay?service=fast&id=7&amp;from=...&to={to}&timestamp=1`\n\n"
        "| Name | Required |\n| --- | --- |\n| id | yes |\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert operation.url == "/v1/pay"
    found = [(each.name, each.example, each.location) for each in operation.request_parameters]
    assert found == [
        ("id", "", ""),
        ("service", "fast", "query"),
        ("from", "", "query"),
        ("to", "", "query"),
        ("timestamp", "1", "query"),
    ]
    assert operation.request_parameters[0].required is True
    assert {each.required for each in operation.request_parameters[1:]} == {None}


@pytest.mark.parametrize(
    ("description", "is_required"),
    [
        ("Required: true", True),
        ("The key. Required: false", False),
        ("Optional. Rule such as `required: true`", False),
        ("JSON schema, e.g. {required: true}", False),
        ("Whether a signature is required: true = yes", False),
        ("Required. If consent is required: no, leave empty.", True),
    ],
)
def test_only_a_mark_of_the_parameter_counts(
    description: str, is_required: bool, tmp_path: Path
) -> None:
    page = f"# Pay\n\n`POST /pay`\n\n| Name | Type | Description |\n| --- | --- | --- |\n| id | string | {description} |\n"
    name = "id!" if is_required else "id"
    assert read_lines(page, tmp_path / "page.md") == ["POST /pay Pay", name]


EXAMPLE = '**Response**\n\n```json\n{"id": 1}\n```\n'


@pytest.mark.parametrize(
    "page",
    [
        f"# FAQ\n\n## How do I GET /v1/orders?\n\n{EXAMPLE}",
        f"# Errors\n\n## GET /v1/orders returns 500\n\n{EXAMPLE}",
        f"# News\n\n## Replace `GET /v1/orders` by `GET /v2/orders`\n\n{EXAMPLE}",
        f"# Tutorial\n\n## Step 1: Get a token\n\n`POST /oauth/token`\n\n{EXAMPLE}",
        "# Site\n\n## /blog\n\nExample:\n\n```sh\ncurl https://example.com/blog\n```\n\n" + EXAMPLE,
        f"# Old\n\n## Orders\n\n`GET /v1/orders`\n\nOld response:\n\n{EXAMPLE[14:]}",
    ],
)
def test_example_without_a_reference_stays_prose(page: str, tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.md") == []


@pytest.mark.parametrize(
    "page",
    [
        "# Guide\n\n**Parameters**: `a` is the id. `GET /v1/y` returns its values.\n",
        "# Places\n\n* Berlin (030)\n",
        "# Terms\n\nTenant\n: An organisation.\n",
        "# Limits\n\n* `GET /boats` is limited to 5 calls.\n",
    ],
)
def test_prose_of_a_page_without_operations_is_unchanged(page: str, tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.md") == []
    blocks = parse_blocks(page)
    assert list(operations_of(blocks, "Page").prose) == list(blocks)


@pytest.mark.parametrize(
    ("label", "items"),
    [
        ("Parameters", "- `limit` and `offset` cannot be used together"),
        ("Input", "- note: send JSON only"),
        ("Fields", "- `id` is never null\n- `null` values are omitted"),
        ("Environment variables", "- `KEY` (string, required): the key"),
    ],
)
def test_remarks_are_no_parameters(label: str, items: str, tmp_path: Path) -> None:
    page = f"# Pay\n\n`POST /pay`\n\n| Name | Required |\n| --- | --- |\n| a | yes |\n\n## {label}\n\n{items}\n"
    assert read_lines(page, tmp_path / "page.md") == ["POST /pay Pay", "a!"]


def test_deeply_nested_keywords_of_blueprint_end_no_ingestion(tmp_path: Path) -> None:
    nested = "".join(f"{'  ' * depth}+ Request\n" for depth in range(60))
    read_lines(f"# A [/a]\n\n## B [GET]\n\n{nested}", tmp_path / "page.md")


def test_long_spaces_in_a_cell_are_read_quickly(tmp_path: Path) -> None:
    """The pattern of marks in names took seconds for a thousand spaces."""
    name = f"a{' ' * 20_000}b"
    page = f"# Pay\n\n`POST /pay`\n\n| Name | Required |\n| --- | --- |\n| {name} | yes |\n"
    assert read_lines(page, tmp_path / "page.md") == ["POST /pay Pay", "a!"]


SHOWDOC = """## 上传文件

**简要描述：**

- 上传图片，返回 media_id

**请求URL：**

- ` https://a.example/v3/upload `

**请求方式：**

- {method}

**参数：**

|参数名|必选|类型|说明|
|:----    |:---|:----- |-----   |
|file|是|file|图片|

**备注**

- 不超过 2 MB。
"""


def test_method_with_a_format_is_no_parameter(tmp_path: Path) -> None:
    page = SHOWDOC.format(method="POST（multipart/form-data）")
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [each.name for each in operation.request_parameters] == ["file"]
    texts = [block.text for block in operation.further_prose if block.kind != "heading"]
    assert texts == [
        "**请求方式：**",
        "- POST（multipart/form-data）",
        "**备注**",
        "- 不超过 2 MB。",
    ]


def test_facts_of_the_operation_are_no_prose(tmp_path: Path) -> None:
    (operation,) = read_operations(SHOWDOC.format(method="POST"), tmp_path / "page.md")
    assert operation.document("a", "b", "zh").description == "上传图片，返回 media_id"
    texts = [block.text for block in operation.further_prose if block.kind != "heading"]
    assert texts == ["**备注**", "- 不超过 2 MB。"]


FACTS = """# Close an order

It closes the order **now**, see `order_id`.

## Address

`https://a.example/orders/close`

## Method

{method}

## Example

The call is:

```
POST https://a.example/orders/close
```

## Parameters

| Name | Type | Required |
| --- | --- | --- |
| order_id | string | yes |
"""


@pytest.mark.parametrize("method", ["`POST`", "- **Method**: POST", "```\nPOST\n```"])
def test_description_and_call_are_no_prose(method: str, tmp_path: Path) -> None:
    (operation,) = read_operations(FACTS.format(method=method), tmp_path / "page.md")
    texts = [block.text for block in operation.further_prose if block.kind != "heading"]
    assert texts == ["The call is:", "```\nPOST https://a.example/orders/close\n```"]
    description = operation.document("a", "b", "en").description
    assert description == "It closes the order now, see `order_id`."


def test_link_in_a_description_is_kept(tmp_path: Path) -> None:
    page = FACTS.format(method="POST").replace("`order_id`", "[orders](https://a.example/o)")
    (operation,) = read_operations(page, tmp_path / "page.md")
    description = operation.document("a", "b", "en").description
    assert description == "It closes the order now, see [orders](https://a.example/o)."
    assert not any("It closes" in block.text for block in operation.further_prose)


@pytest.mark.parametrize(
    "changes",
    [
        "**1.4.0** -> Closing was added.",
        "**Version history**\n\nClosing was added in May.",
        "<details>\n<summary>更新日志</summary>\n<div>\n\n"
        "  [**1.4.0**](/news#140) &emsp; -> 新增 Closing。<br/>\n\n</div>\n</details>",
    ],
)
def test_changelog_is_no_description(changes: str, tmp_path: Path) -> None:
    table = "| Name | Type |\n| --- | --- |\n| id | string |\n"
    for described in ("It closes the order.", ""):
        page = f"# Close an order\n\n`POST /close`\n\n{changes}\n\n{described}\n\n{table}"
        (operation,) = read_operations(page, tmp_path / "page.md")
        assert operation.document("a", "b", "en").description == described
        assert any("losing" in block.text for block in operation.further_prose)


@pytest.mark.parametrize("markup", ["`order_id`", "[orders](https://a.example/o)", "[orders]"])
def test_long_description_does_not_end_in_open_markup(markup: str, tmp_path: Path) -> None:
    for length in range(289, 300):
        text = f"{'a' * length} {markup} is sent."
        page = (
            f"# Pay\n\n`POST /pay`\n\n{text}\n\n| Name | Required |\n| --- | --- |\n| id | yes |\n"
        )
        (operation,) = read_operations(page, tmp_path / "page.md")
        description = operation.document("a", "b", "en").description
        assert description.startswith("a" * length)
        assert description.count("`") in (0, 2)
        assert description.count("[") == description.count("]")
        assert description.count("(") == description.count(")")
        assert text in [block.text for block in operation.further_prose]


CONFIGURATION = """# Settings

## Starting up

| Option | Type | Description |
| --- | --- | --- |
| `port` | int | The port |

## Storage

| Option | Type | Description |
| --- | --- | --- |
| `folder` | string | The folder |

## Converters

### Images

| Option | Type | Description |
| --- | --- | --- |
| `dpi` | int | The resolution |

### Sheets

| Option | Type | Description |
| --- | --- | --- |
| `rows` | int | The limit |

### Letters

`POST /convert_letter`

| Option | Type | Description |
| --- | --- | --- |
| `paper` | string | The size |

### Drawings

| Option | Type | Description |
| --- | --- | --- |
| `scale` | int | The scale |

## Errors

| Code | Meaning |
| --- | --- |
| 40901 | The folder is locked |
"""


@pytest.mark.parametrize("has_list", [False, True])
def test_call_below_a_later_topic_has_only_its_section(has_list: bool, tmp_path: Path) -> None:
    calls = "## Reading settings\n\n| Call |\n| --- |\n| `GET /settings` |\n| `PUT /settings` |\n\n"
    page = (
        CONFIGURATION.replace("## Starting up", f"{calls}## Starting up")
        if has_list
        else CONFIGURATION
    )
    operation = read_operations(page, tmp_path / "page.md")[-1]
    assert (operation.url, operation.name) == ("/convert_letter", "Letters")
    assert [parameter.name for parameter in operation.request_parameters] == ["paper"]
    assert [error.code for error in operation.error_codes] == ["40901"]


def test_page_with_one_operation_keeps_the_prose_outside_it(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(CONFIGURATION, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    operation, prose = read_source(source, SourceLimits())
    assert isinstance(operation, SourceDocument)
    assert isinstance(prose, SourceDocument)
    assert (operation.id, prose.id) == ("page#letters", "page")
    assert "The resolution" in "".join(section.body for section in prose.sections)


FIELDS = "| Name | Type | Required |\n| --- | --- | --- |\n| {} | string | no |\n\n"


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        (
            "## When to use it\n\nDaily.\n\n## Rate limits\n\nTen.\n\n## Query parameters\n\n"
            f"{FIELDS.format('port')}## Call the search\n\n`GET /v1/boats`\n",
            "port",
        ),
        (
            "## When to use\n\nDaily.\n\n## Before you begin\n\nGet a key.\n\n## Create the order\n\n"
            f"`POST /v1/boats`\n\n{FIELDS.format('boat')}## Handle the response\n\n{FIELDS.format('id')}",
            "> id",
        ),
        (
            "## Use cases\n\nTwo.\n\n## Prerequisites\n\nA key.\n\n## Endpoint of orders\n\n"
            f"`POST /v1/boats`\n\n## What to send\n\n{FIELDS.format('boat')}"
            f"## What you get back\n\n{FIELDS.format('id')}",
            "boat",
        ),
        (
            "## Plans\n\nTwo.\n\n## Authentication\n\n| Header | Type | Required |\n| --- | --- | --- |\n"
            f"| X-Sign | string | no |\n\n## Order\n\n`POST /v1/boats`\n\n{FIELDS.format('boat')}",
            "X-Sign",
        ),
    ],
)
def test_only_operation_of_a_page_keeps_all_its_sections(
    sections: str, name: str, tmp_path: Path
) -> None:
    assert name in read_lines(f"# Boats\n\n{sections}", tmp_path / "page.md")


@pytest.mark.parametrize(
    "described",
    [
        '```json\n{"a": 1}\n```',
        "Parameters:\n\n- `city` (string, required): The city.",
        "## Parameters\n\n| Name | Type |\n| --- | --- |\n| city | string |",
    ],
)
def test_section_about_a_topic_extends_to_the_next_topic(described: str, tmp_path: Path) -> None:
    topics = f"# Rates\n\n## Plans\n\n{FIELDS.format('plan')}## Coverage\n\n{FIELDS.format('area')}"
    errors = "## Errors\n\n| Code | Meaning |\n| --- | --- |\n| 40901 | No such city |\n"
    page = f"{topics}## Convert currencies\n\n```\nGET https://api.x.example/convert?city=Kiel\n```\n\n{described}\n\n{errors}"
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert operation.name == "Convert currencies"
    assert [parameter.name for parameter in operation.request_parameters] == ["city"]
    assert [error.code for error in operation.error_codes] == ["40901"]


@pytest.mark.parametrize(
    ("described", "lines"),
    [
        ("| Name | Required |\n| --- | --- |\n| days | yes |\n", ["days!", "city", "lang"]),
        (
            '### Response\n\n```json\n{ "sky": "clear" }\n```\n\n'
            "| Field | Type |\n| --- | --- |\n| sky | string |\n",
            ["city", "lang", "> sky"],
        ),
        ('## Response\n\n```json\n{ "sky": "clear" }\n```\n', ["city", "lang"]),
    ],
)
def test_described_call_below_later_topics_is_an_operation(
    described: str, lines: list[str], tmp_path: Path
) -> None:
    page = (
        "# Weather forecast\n\n## Get a key\n\nAsk us.\n\n## Supported cities\n\nMost.\n\n"
        f"## How to call\n\n```\nGET /v1/forecast?city=Kiel&lang=de\n```\n\n{described}\n"
        "## Error codes\n\n| Code | Meaning |\n| --- | --- |\n| 404 | No such city |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "GET /v1/forecast Weather forecast",
        *lines,
        "404",
    ]
