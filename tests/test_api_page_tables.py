"""Tables of API pages: their columns, what they hold, and the operation to which they belong."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines, read_operations

FURTHER_COLUMNS = """# Create a task

`POST /tasks`

## Parameters

| No. | Field | Type | Required | Meaning | Max length | Remarks |
| --- | --- | --- | --- | --- | --- | --- |
| 1 | title | string | yes | The title | 20 | Unique in a list. |
| 2 | due | int | one of two | The date | - | n/a |
| 3 | after | string | one of two | | | |

## Errors

| Code | HTTP | Meaning | Message | Explanation | Module |
| --- | --- | --- | --- | --- | --- |
| 8101 | 401 | Not signed in | auth failed | The key and the secret differ. | gateway |
"""


def test_text_of_further_columns_is_kept(tmp_path: Path) -> None:
    (operation,) = read_operations(FURTHER_COLUMNS, tmp_path / "page.md")
    assert [
        (each.name, each.required, each.description) for each in operation.request_parameters
    ] == [
        ("title", True, "The title; Max length: 20; Unique in a list."),
        ("due", "one of two", "The date"),
        ("after", "one of two", ""),
    ]
    (error,) = operation.error_codes
    assert (error.message, error.cause) == (
        "auth failed (HTTP 401)",
        "Not signed in; The key and the secret differ. Module: gateway",
    )


CODE_IN_CELLS = """# Start a call

`POST /calls`

## Parameters

| Field | Type | Description |
| --- | --- | --- |
| id | string | Id of *one* [recording](#a), `RE…`. |

## Errors

| Code | Description | What to do |
| --- | --- | --- |
| 21201 | `to` is missing | Pass `to` or `a*b*`. |
| 0 | `success` | |
"""


def test_code_in_cells_keeps_its_backticks(tmp_path: Path) -> None:
    (operation,) = read_operations(CODE_IN_CELLS, tmp_path / "page.md")
    (field,) = operation.request_parameters
    assert field.description == "Id of one recording, `RE…`."
    (error,) = operation.error_codes
    assert (error.message, error.remedy) == ("`to` is missing", "Pass `to` or `a*b*`.")


def test_error_keeps_its_description_next_to_message_and_cause(tmp_path: Path) -> None:
    table = "| 错误码 | 描述 | 错误信息 | 原因 |\n| --- | --- | --- | --- |\n| 1001 | 库存不足 | no stock | 已售罄 |"
    page = f"# 下单\n\n`POST /orders`\n\n## 错误码\n\n{table}\n"
    (operation,) = read_operations(page, tmp_path / "page.md")
    (error,) = operation.error_codes
    assert (error.message, error.cause) == ("no stock", "库存不足。已售罄")


@pytest.mark.parametrize(("last_row", "is_prose"), [("`cc` | worse", False), ("`0` | ok", True)])
def test_table_of_errors_stays_prose_only_if_a_row_has_no_error(
    last_row: str, is_prose: bool, tmp_path: Path
) -> None:
    table = f"| Code | Message |\n| --- | --- |\n| `aa`, `bb` | bad |\n| {last_row} |\n"
    page = f"# Start a call\n\n`POST /calls`\n\n## Errors\n\n{table}"
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [error.code for error in operation.error_codes][:2] == ["aa", "bb"]
    assert any(block.kind == "table" for block in operation.prose) == is_prose


DEVICES = """# Devices

## Read a device

Needs the devices package.

```
GET /devices/{id}
Returns all properties of the device.
```

### Request

**Request Header**

```
GET /devices/{id}
  Accept: application/json
```

### Response

| Field | Type | Description |
| --- | --- | --- |
| tags | array | The tags |

## Delete a device

```
DELETE /devices/{id}
```

### Response

| Field | Type | Description |
| --- | --- | --- |
| deleted | boolean | Always true |

## Regions

Devices are stored in one region.
"""


def test_code_block_states_a_call_with_a_sentence_about_it(tmp_path: Path) -> None:
    assert read_lines(DEVICES, tmp_path / "page.md") == [
        "GET /devices/{id} Read a device",
        "id!",
        "> tags",
        "DELETE /devices/{id} Delete a device",
        "id!",
        "> deleted",
    ]


def test_section_beside_the_operations_belongs_to_the_page(tmp_path: Path) -> None:
    operations = read_operations(DEVICES, tmp_path / "page.md")
    prose = [block.text for operation in operations for block in operation.prose]
    assert "Devices are stored in one region." not in prose
    flat = DEVICES.replace("### ", "## ")  # "Regions" may then be a section of the last operation
    last = read_operations(flat, tmp_path / "page.md")[-1]
    assert "Devices are stored in one region." in [block.text for block in last.prose]


TYPED_ERRORS = """# Register a user

`POST /users`

## Response

If the status code is `200`, the field `data` contains:

| Field | Type | Description |
| --- | --- | --- |
| id | string | The id |

## Errors

| HTTP status | Error type | Message | Advice |
| --- | --- | --- | --- |
| 400 | illegal_argument | bad name | Choose another name. |
| 401 | unauthorized | no token | Send a token. |
| 404 | | no group | |
"""


def test_types_of_errors_are_codes(tmp_path: Path) -> None:
    (operation,) = read_operations(TYPED_ERRORS, tmp_path / "page.md")
    assert [parameter.name for parameter in operation.response_parameters] == ["id"]
    assert [(error.code, error.message, error.remedy) for error in operation.error_codes] == [
        ("illegal_argument", "bad name (HTTP 400)", "Choose another name."),
        ("unauthorized", "no token (HTTP 401)", "Send a token."),
        ("404", "no group", ""),
    ]


PARTS_OF_RESPONSE = """# Store a block

## Request

```
POST /blocks/<size> HTTP/1.1
Host: up.example.com
```

### Parameters

| Name | Required | Type | Description |
| --- | --- | --- | --- |
| `<size>` | yes (optional) | int | Its size |

### Headers

| Header | Required | Description |
| --- | --- | --- |
| X-Token | yes | The token |

## Response

### Headers

| Header | Required | Description |
| --- | --- | --- |
| X-Block | yes | The block |

### Object payload

| Field | Type | Description |
| --- | --- | --- |
| checksum | string | The checksum |

## Notification

**Callback parameters**

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| event | string | yes | The event |
"""


def test_headers_and_body_of_the_response_are_not_parameters(tmp_path: Path) -> None:
    (operation,) = read_operations(PARTS_OF_RESPONSE, tmp_path / "page.md")
    assert [parameter.name for parameter in operation.request_headers] == ["X-Token"]
    assert [parameter.name for parameter in operation.request_parameters] == ["size"]
    assert [parameter.name for parameter in operation.response_parameters] == [
        "X-Block",
        "checksum",
    ]
    assert any("event" in block.text for block in operation.prose if block.kind == "table")


def test_listed_calls_with_the_same_method_share_headers_and_public_parameters(
    tmp_path: Path,
) -> None:
    text = """# 船只

| Name | Method | Path |
| --- | --- | --- |
| List boats | GET | /boats |
| List berths | GET | /berths |

## Headers

| Name | Required | Description |
| --- | --- | --- |
| X-Token | yes | The token |

## 公共参数

| 名称 | 类型 | 必填 | 描述 |
| --- | --- | --- | --- |
| region | string | 是 | 地域 |
"""
    operations = read_operations(text, tmp_path / "page.md")
    assert [operation.url for operation in operations] == ["/boats", "/berths"]
    for operation in operations:
        assert [parameter.name for parameter in operation.request_headers] == ["X-Token"]
        assert [parameter.name for parameter in operation.public_parameters] == ["region"]


def test_column_of_contents_describes_parameters(tmp_path: Path) -> None:
    text = """# 在线人数

## 查询在线人数

`GET /online`

查询参数见下表：

| 参数名 | 类型 | 内容 | 必要性 | 备注 |
| --- | --- | --- | --- | --- |
| aid | num | 稿件 | 必要(可选) | 二选一 |
| cid | num | 视频 | 必要 | |
"""
    (operation,) = read_operations(text, tmp_path / "page.md")
    assert [(each.required, each.description) for each in operation.request_parameters] == [
        ("必要(可选)", "稿件。二选一"),
        (True, "视频"),
    ]
    assert operation.document("online", "docs", "zh").description == ""


def test_label_of_a_table_that_is_read_is_not_prose(tmp_path: Path) -> None:
    page = """# Reserve a berth

`POST /berths`

**Parameters**

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| boat | string | Yes | The boat |

**Remarks**

Berths are free on Sundays.
"""
    (operation,) = read_operations(page, tmp_path / "page.md")
    texts = [block.text.strip() for block in operation.prose]
    assert texts[-2:] == ["**Remarks**", "Berths are free on Sundays."]
    assert "**Parameters**" not in texts


CHINESE_COLUMNS = """# 统一下单

`POST /orders`

## 请求参数

| 字段名 | 变量名 | 必填 | 类型 | 默认值 | 描述 |
| --- | --- | --- | --- | --- | --- |
| 通知地址 | notify_url | 是 | String | | 必须是 HTTPS 地址，见[费率](https://x.y/fee_table)和[附录](#a)。示例：`https://a.b` |
| 订单金额 | total_fee | 是 | Int | 1 | 单位为分 |
| 备注 | note | 否 | String | | 备注，原样返回 |
"""


def test_chinese_name_precedes_the_description(tmp_path: Path) -> None:
    (operation,) = read_operations(CHINESE_COLUMNS, tmp_path / "page.md")
    assert {each.name: each.description for each in operation.request_parameters} == {
        "notify_url": "通知地址。必须是 HTTPS 地址，见[费率](https://x.y/fee_table)和附录。示例：`https://a.b`",
        "total_fee": "订单金额。单位为分。默认值：1",
        "note": "备注，原样返回",
    }


@pytest.mark.parametrize(
    ("label", "table", "expected"),
    [
        ("Parameters", "Field | Type\na | int\nb | int", [None, None]),
        ("Optional parameters", "Field | Type\na | int\nb | int", [False, False]),
        ("Required parameters", "Field | Type\na | int\nb | int", [True, True]),
        ("Parameters", "Field | Type\na* | int\nb | int", [True, False]),
        ("Parameters", "Field | Type\na? | int\nb | int", [False, True]),
        ("Parameters", "Field | Required\na | ✓\nb | ", [True, False]),
        ("Parameters", "Field | Required\na | no\nb | ", [False, None]),
        ("Parameters", "Field | Required\na | \nb | ", [None, None]),
        ("参数", "字段 | 必填\na | 二选一\nb | 条件", ["二选一", "条件"]),
        ("参数", "字段 | 必填\na | 否，企业商户必填\nb | 非必填", ["否，企业商户必填", False]),
        ("参数", "字段 | 必填\na | 是 Yes\nb | 否(No)", [True, False]),
        ("Parameters", "Field | M/O/C\na | M\nb | C", [True, "C"]),
        ("Parameters", "Field | Mult.\na | 1..n\nb | 0..1", [True, False]),
        ("Parameters", "Field | Optional\na | yes\nb | no", [False, True]),
        ("Parameters", "Field | Optional\na | if paid\nb | no", [False, True]),
    ],
)
def test_required_is_what_the_table_states(
    label: str, table: str, expected: list[bool | str | None], tmp_path: Path
) -> None:
    header, *rows = table.split("\n")
    lines = [f"| {line} |" for line in (header, "--- | ---", *rows)]
    page = "\n".join(["# Call", "", "`POST /calls`", "", f"## {label}", "", *lines])
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [each.required for each in operation.request_parameters] == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("└ ", "&nbsp;&nbsp;└ "),
        ("&nbsp;&nbsp;└ ", "&nbsp;&nbsp;&nbsp;&nbsp;└ "),
        ("+ ", "++ "),
        ("- ", "-- "),
        ("--", "----"),
        ("\\|-", "\\|--"),
        ("> ", ">> "),
        ("＞", "＞＞"),
        ("╰ ", "&nbsp;╰ "),
        ("&emsp; ∟ ", "&emsp; &emsp; ∟ "),
    ],
)
@pytest.mark.parametrize("bold", ["", "**"], ids=["plain", "bold"])
def test_rows_are_nested_by_the_marks_before_their_names(
    first: str, second: str, bold: str, tmp_path: Path
) -> None:
    names = ["pay", f"{first}url", f"{first}app", f"{second}sign", f"{first}code", "status"]
    rows = "".join(f"| {bold}{name}{bold} | string | no |\n" for name in names)
    table = f"| Name | Type | Required |\n| --- | --- | --- |\n{rows}"
    assert read_lines(f"# Pay\n\n`POST /pay`\n\n{table}", tmp_path / "page.md")[1:] == (
        ["pay", "pay.url", "pay.app", "pay.app.sign", "pay.code", "status"]
    )


def test_columns_are_recognised_by_their_cells(tmp_path: Path) -> None:
    page = (
        "# Rent\n\n`POST /rent`\n\n| 关键字 | 类型 | 选项 | 含义 |\n| --- | --- | --- | --- |\n"
        "| boat | string | 必填 | 船 |\n| options.days | int | 可选 | 租期 |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == ["POST /rent Rent", "boat!", "options.days"]


def test_column_of_yes_and_no_is_not_required_without_its_title(tmp_path: Path) -> None:
    page = (
        "# Rent\n\n`POST /rent`\n\n| 字段 | 类型 | 支持排序 | 含义 |\n| --- | --- | --- | --- |\n"
        "| boat | string | 是 | 船 |\n"
    )
    (boat,) = read_operations(page, tmp_path / "page.md")[0].request_parameters
    assert (boat.required, boat.description) == (None, "船。支持排序：是")


LISTED_FORMATS = """# Harbour API

## Read gauges

| Method | Path | Produces |
| --- | --- | --- |
| `GET` | `/gauges` | `application/json` |
| `GET` | `/gauges?style=plain` | `text/plain; charset=utf-8` |

### Parameters

- `since` `(string: "")` - The first hour.

## Set a lamp

| Method | Path | Produces |
| --- | --- | --- |
| `PUT` | `/lamps/red` | `application/json` |
| `PUT`<sup>1</sup> | `/lamps/green` | `application/json` |

These paths are deprecated:

| Method | Path | Produces |
| --- | --- | --- |
| `PUT` | `/lamps/left` | `application/json` |
| `PUT` | `/lamps/right` | `application/json` |

### Parameters

- `on` `(bool: false)` - Whether it shines.

## Remove a boat

| Method | Path | Produces |
| --- | --- | --- |
| `PUT` | `/remove/:boat` | `application/json` |

The flag also removes its berth:

| Method | Path | Produces |
| --- | --- | --- |
| `PUT` | `/remove/:boat?purge` | `application/json` |
"""


def test_operation_is_named_after_its_heading_and_not_after_a_media_type(tmp_path: Path) -> None:
    assert read_lines(LISTED_FORMATS, tmp_path / "page.md") == [
        "GET /gauges Read gauges",
        "since",
        "style",
        "PUT /lamps/red Set a lamp",
        "on",
        "PUT /lamps/green Set a lamp (PUT /lamps/green)",
        "on",
        "PUT /lamps/left Set a lamp (PUT /lamps/left)",
        "on",
        "PUT /lamps/right Set a lamp (PUT /lamps/right)",
        "on",
        "PUT /remove/:boat Remove a boat",
        "boat!",
        "purge",
    ]


def test_values_in_a_column_of_notes_keep_their_code_marks(tmp_path: Path) -> None:
    page = (
        "# 租船\n\n`POST /rent`\n\n| 名称 | 类型 | 描述 | 备注 |\n| --- | --- | --- | --- |\n"
        "| view | string | 打开的页面 | `dock`:码头<br/>`map`:海图 &emsp; `log`:日志 |\n"
        "| fuel | bool | 归还时是否检查船只<br/>还有没有油 | `-` |\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [each.description for each in operation.request_parameters] == [
        "打开的页面。`dock`:码头；`map`:海图 `log`:日志",
        "归还时是否检查船只 还有没有油",
    ]


@pytest.mark.parametrize("titles", ["类型 | 描述", "描述 | 类型"], ids=["right", "swapped"])
def test_types_below_the_title_of_descriptions_are_types(titles: str, tmp_path: Path) -> None:
    page = (
        f"# 租船\n\n`POST /rent`\n\n| 名称 | {titles} | 必填 |\n| --- | --- | --- | --- |\n"
        "| boat | String | 船的编号 | 是 |\n| days | Array[int] | 租期 | 否 |\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [(each.type, each.description) for each in operation.request_parameters] == [
        ("String", "船的编号"),
        ("Array[int]", "租期"),
    ]


ENUMERATION = """# Paint a boat

`PUT /boats/{id}/paint`

## Parameters

| Name | Type | Description |
| --- | --- | --- |
| color | int | The color |

### Color

| Name | Value | Description |
| --- | --- | --- |
| COLOR_RED | 1 | Red |
| COLOR_BLUE | 2 | Blue |
"""


def test_constants_of_an_enumeration_are_no_parameters(tmp_path: Path) -> None:
    path = tmp_path / "boats.md"
    assert read_lines(ENUMERATION, path) == ["PUT /boats/{id}/paint Paint a boat", "id!", "color"]
    (operation,) = read_operations(ENUMERATION, path)
    assert "COLOR_BLUE | 2" in operation.prose[-1].text
