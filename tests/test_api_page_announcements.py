"""Announcements on API pages: permissions, nested tables, titled errors, typed lists and messages."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.errors import listed_errors
from ingestion.sources.api_pages.operation import MAX_DESCRIPTION_CHARS
from ingestion.sources.api_pages.permissions import scopes_of_sentences
from tests.api_page_lines import read_lines, read_operations

PAGE = """# Book a pier

`POST /v1/piers`

{}

## Body

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| boat | object | Yes | Boat |

{}
"""
LINES = ["POST /v1/piers Book a pier", "boat!"]

PERMISSIONS = {
    "sentence above a list": (
        "To book a pier, the key of the harbour must have at least one of the following roles:\n\n- `pier:book`\n"
    ),
    "heading in Chinese": "## 授权项\n\npier:book\n",
    "actions": "## Authorization details\n\n| Operation | Access |\n| --- | --- |\n| pier:book | write |\n",
    "placeholder": "## 权限\n\n| 应用 | 权限点 |\n| --- | --- |\n| 内部 | pier:book |\n| 外部 | - |\n",
    "facts without titles": "| | |\n| --- | --- |\n| Scopes | `pier:book` |\n| Limit | 20 |\n",
    "component": '<Scope name="pier:book" />',
    "actions below a caption": "## Authorization\n\n**Table 1** Actions\n\n| Action | Level |\n| --- | --- |\n| pier:book | Write |\n",
    "items below a label": "- **Limit:** 20\n- **Permissions**\n  - `pier:book`\n",
    "component with a list": "<RequiredScopes list={['pier:book']} />",
}
"""Texts above the parameters by how they state the permission `pier:book`."""

CAPTIONS = (
    "**boat 子参数 Sub-parameters of boat**",
    "### Child attributes of boat",
    "Each `boat` has these fields:",
)

ERRORS = {
    "title above a status": "### no_pier\n\n`404` – No such pier.\n\n### taken\n\nStatus 409. Taken.\n",
    "component above a status": '<Fold title="no_pier">\nHTTP 404. None.\n</Fold>\n<Fold title="taken">\n**409** Taken.\n</Fold>\n',
    "code above a status": "`no_pier`\n\n404. None.\n\n`taken`\n\n409. Taken.\n",
    "label below a status": "### Status: 404\n\nError code: `no_pier` — No pier {x}.\n\n### Status: 409\n\n**Error code:** `taken` – Taken.\n",
    "list below a status": "### 404 Not Found\n\n- `no_pier`: No pier\n\n### HTTP 409\n\n- Error code: `taken` - Taken\n",
    "table below a status": "### 409\n\n| Error code | Meaning |\n| --- | --- |\n| no_pier | None |\n| taken | Taken |\n",
    "sentences": "Returns `no_pier` if there is none. Fails with the error code `taken` when it is taken.\n",
    "sentences in a list": "- Returns `no_pier` if there is none.\n- Returns `taken` unless it is free.\n",
    "success in a table": "| Code | Message |\n| --- | --- |\n| 0 | 成功 Success |\n| no_pier | No pier |\n| taken | Success rate |\n",
    "success in a list": "- `0`: OK\n- `no_pier`: No pier\n- `taken`: Taken\n",
}
"""Texts below "Errors" by how they state `no_pier` and `taken`."""

LISTS = {
    "elements": "- boat string (uuid) Required\n\n  Boat\n- crew array [object]\n  - name string Required\n  - age integer (int32)\n- tags list of strings\n",
    "generic types": "- boat uuid Required\n- crew array<object>\n  - name str required\n  - age date\n- tags map[string]string\n",
    "dots": "- boat · string · required\n- crew · object[]\n  - name · string · required\n  - age · integer\n- tags · array of strings\n",
    "wide colons": "- boat：string，必填，船\n- crew：object[]，选填\n  - name：string，必填\n  - age：integer，选填\n- tags：string[]，选填\n",
    "stars": "- `boat`\\* (string): Boat\n- `crew` (object[]): Crew\n  - `name`* (string): Name\n  - `age` (integer): Age\n- `tags` (enums): Tags\n  - `x`: X\n",
}
"""Lists of the same parameters by how they are written."""

MESSAGE = """## {} a pier

### Request

```
{} /v1/piers
Content-Type: application/json
```

### Body

| Name | Type | Required |
| --- | --- | --- |
| boat | string | Yes |

"""


@pytest.mark.parametrize("name", PERMISSIONS)
def test_permission_is_read(name: str, tmp_path: Path) -> None:
    assert read_lines(PAGE.format(PERMISSIONS[name], ""), tmp_path / "page.mdx") == [
        *LINES,
        "pier:book",
    ]


def test_heading_about_permissions_names_an_operation(tmp_path: Path) -> None:
    page = "# Piers\n\n## Check the permissions of a pier\n\n`POST /v1/check`\n\nWith `mode`, it only reads.\n"
    other = "\n## Book a pier\n\n`POST /v1/piers`\n"
    parameters = "\n| Name | Type |\n| --- | --- |\n| boat | string |\n"
    text = f"{page}{parameters}{other}{parameters}"
    lines = read_lines(text, tmp_path / "page.mdx")
    assert lines[0] == "POST /v1/check Check the permissions of a pier"
    assert "mode" not in lines


@pytest.mark.parametrize(
    ("title", "is_name"),
    [
        *((title, True) for title in ("Check user permissions", "预检泊位权限", "查询泊位的权限")),
        *(
            (title, False)
            for title in ("OAuth 2.0 scopes", "Bot permissions", "2. 权限", "申请权限")
        ),
        *((title, False) for title in ("Roles and permissions", "Required scope(s)", "权限和角色")),
        *((title, False) for title in ("权限点", "权限信息", "权限（必填）", "Read permissions")),
        ("需要的" * 40 + "x", True),
    ],
)
def test_title_that_begins_with_a_verb_is_no_label_of_permissions(
    title: str, is_name: bool, tmp_path: Path
) -> None:
    table = "| Name | Type |\n| --- | --- |\n| boat | string |\n\n"
    page = f"# Piers\n\n## {title}\n\n`POST /v1/a`\n\n{table}## Book\n\n`POST /v1/b`\n\n{table}"
    name = read_operations(page, tmp_path / "page.md")[0].name
    assert (name == title) == is_name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("One of the following is needed: `pier.read` or `pier.own`.", ["pier.read", "pier.own"]),
        ("`Pier.Read.All`.", ["Pier.Read.All"]),
        ("Delegated: `Pier.Read.All`", ["Pier.Read.All"]),
        ("You need `pier_read`.", ["pier_read"]),
        ("开通 `pier_read` 后可用。", ["pier_read"]),
    ],
)
@pytest.mark.parametrize("title", ["Permissions", "权限要求"])
def test_permission_in_a_sentence_below_a_heading_is_read(
    title: str, text: str, names: list[str], tmp_path: Path
) -> None:
    page = PAGE.format(f"## {title}\n\n{text}\n", "")
    assert read_lines(page, tmp_path / "page.md") == [*LINES, *names]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Books a pier. Role: `pier.book`.", ["pier.book"]),
        ("Only keys with the `pier.book` role may do so.", ["pier.book"]),
        ("The token has to carry the role `pier.book` or `pier.own`.", ["pier.book", "pier.own"]),
        ("Both need the permission PIER_BOOK.", ["PIER_BOOK"]),
        ("The PIER_BOOK permission is required.", ["PIER_BOOK"]),
        ("Each sailor has the `mate` role.", []),
        ("The permission is required, otherwise the answer is NO_ACCESS.", []),
    ],
)
def test_permission_of_a_sentence_is_read(sentence: str, expected: list[str]) -> None:
    assert [scope.name for scope in scopes_of_sentences(sentence)] == expected


@pytest.mark.parametrize(
    ("paragraph", "is_description"),
    [
        ("Books a pier and revokes all permissions of its owner.", True),
        ("Books a pier for the users with a permission.", True),
        ("Returns the OAuth scopes of a key: one per line.", False),
        ("Books a pier. Requires the permission of its owner.", True),
        ("Books a pier. Permission: harbour master", True),
        ("查询码头的权限列表。", True),
        ("Permission: harbour master", False),
        ("Permissions harbour master", False),
        ("Needs the permissions of\na harbour master. Ask your port.", False),
        ("You must have the permission of its owner.", False),
        ("Any key with the `pier.book` scope will do.", False),
        ("Requires the `pier:book` scope.", False),
        ("**权限** `pier.book`　**频率** 每秒两次", False),
        ("需要码头管理员的权限", False),
        ("仅码头管理员拥有权限。", False),
    ],
)
def test_statement_of_permissions_is_no_description(
    paragraph: str, is_description: bool, tmp_path: Path
) -> None:
    (operation,) = read_operations(PAGE.format(paragraph, ""), tmp_path / "page.md")
    description = operation.document("pier", "harbour", "en").description
    assert description == (paragraph if is_description else "")


@pytest.mark.parametrize("title", ["Must", "Compulsory"])
def test_column_says_which_parameters_are_required(title: str, tmp_path: Path) -> None:
    text = PAGE.format("", "").replace("Required", title).replace("| Yes |", "| Y |")
    assert read_lines(text, tmp_path / "page.md") == LINES


@pytest.mark.parametrize("caption", CAPTIONS)
def test_table_is_nested_below_the_parameter_in_its_caption(caption: str, tmp_path: Path) -> None:
    table = f"{caption}\n\n| Name | Type | Required |\n| --- | --- | --- |\n| mast | int | Yes |\n"
    assert read_lines(PAGE.format("", table), tmp_path / "page.md") == [*LINES, "boat.mast!"]


@pytest.mark.parametrize("name", ERRORS)
def test_error_is_read_once(name: str, tmp_path: Path) -> None:
    text = PAGE.format("", f"## Errors\n\n{ERRORS[name]}")
    assert read_lines(text, tmp_path / "page.mdx") == [*LINES, "no_pier", "taken"]


def test_long_sentence_announces_errors(tmp_path: Path) -> None:
    text = PAGE.format(
        "",
        "If booking goes wrong, the property `reason` of the answer has one of these values:\n\n"
        "- `no_pier` – not found\n- `taken` – has a boat\n",
    )
    assert read_lines(text, tmp_path / "page.md") == [*LINES, "no_pier", "taken"]


def test_long_sentence_about_a_call_announces_no_errors(tmp_path: Path) -> None:
    text = PAGE.format(
        "",
        "An error in the bookings of a harbour is best found with the help of these three steps:\n\n"
        "- `no_pier` – not found\n- `taken` – has a boat\n",
    )
    assert read_lines(text, tmp_path / "page.md") == LINES


def test_type_of_an_error_may_be_its_status(tmp_path: Path) -> None:
    rows = "| no_pier | 404 | No pier. |\n| taken | 409 | Has a boat. |\n"
    table = f"| Name | Type | Description |\n| --- | --- | --- |\n{rows}"
    (operation,) = read_operations(PAGE.format("", f"## Errors\n\n{table}"), tmp_path / "page.md")
    assert [(error.code, error.message) for error in operation.error_codes] == [
        ("no_pier", "No pier. (HTTP 404)"),
        ("taken", "Has a boat. (HTTP 409)"),
    ]


@pytest.mark.parametrize("names", [("boat.mast", "boat.mast.height"), ("mast", "mast.height")])
def test_structure_may_repeat_the_name_of_its_parameter(
    names: tuple[str, str], tmp_path: Path
) -> None:
    rows = "".join(f"| {name} | object | Yes |\n" for name in names)
    table = f"`boat` fields:\n\n| Name | Type | Required |\n| --- | --- | --- |\n{rows}"
    assert read_lines(PAGE.format("", table), tmp_path / "page.md") == [
        *LINES,
        "boat.mast!",
        "boat.mast.height!",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        "| Name | Type |\n| --- | --- |\n| crew | object |\n| └ name | string |\n| └ age? | int |\n",
        "- `crew` (object): Crew\n  - `name` (string): Name\n  - `age` (integer, optional): Age\n",
    ],
)
def test_heading_about_required_parameters_includes_children(fields: str, tmp_path: Path) -> None:
    text = PAGE.format("", f"### Required parameters\n\n{fields}")
    lines = read_lines(text, tmp_path / "page.md")
    assert [line for line in lines if line.startswith("crew")] == [
        "crew!",
        "crew.name!",
        "crew.age",
    ]


def test_status_below_the_heading_of_the_section_is_an_error(tmp_path: Path) -> None:
    text = PAGE.format("", "## Errors\n\n404 – No such pier.\n")
    assert read_lines(text, tmp_path / "page.md") == [*LINES, "404"]


def test_status_of_a_title_becomes_part_of_the_message(tmp_path: Path) -> None:
    text = PAGE.format("", "## Responses\n\n### Status: 400\n\nError code: `300` — Too long.\n")
    (operation,) = read_operations(text, tmp_path / "page.md")
    assert [(error.code, error.message) for error in operation.error_codes] == [
        ("300", "Too long. (HTTP 400)")
    ]


@pytest.mark.parametrize(
    "described",
    ["404 No such pier.\n", "| Code | Message |\n| --- | --- |\n| 404 | No such pier. |\n"],
)
def test_status_that_its_section_repeats_is_read_once(described: str, tmp_path: Path) -> None:
    text = PAGE.format("", f"## Errors\n\n### 404 Not Found\n\n{described}")
    (operation,) = read_operations(text, tmp_path / "page.md")
    assert [(error.code, error.message) for error in operation.error_codes] == [
        ("404", "No such pier.")
    ]


def test_another_code_below_a_code_is_an_error_of_its_own(tmp_path: Path) -> None:
    described = "**409 — `version_mismatch`** The version is old."
    text = PAGE.format("", f"## Errors\n\n### `conflict`\n\n{described}\n")
    (operation,) = read_operations(text, tmp_path / "page.md")
    errors = {error.code: error.message for error in operation.error_codes}
    assert errors["version_mismatch"] == "The version is old. (HTTP 409)"
    assert "version_mismatch" not in errors.get("conflict", "")


def test_fields_below_a_status_are_no_codes(tmp_path: Path) -> None:
    table = "| Field | Description |\n| --- | --- |\n| reason | Text |\n"
    text = PAGE.format("", f"## Responses\n\n### 404\n\n{table}")
    assert read_lines(text, tmp_path / "page.md") == [*LINES, "404"]


def test_returned_value_is_no_error(tmp_path: Path) -> None:
    text = PAGE.format(
        "", "## Notes\n\nReturns `null` if it is free. Returns `409` if it is not.\n"
    )
    assert read_lines(text, tmp_path / "page.md") == [*LINES, "409"]


CALLS = (
    "Request method: `POST`, path `/v1/piers`, encoding UTF-8.",
    "Path: `/v1/piers`, method `POST`",
    "`POST` → `/v1/piers`",
    "**Request:** `POST` -> `/v1/piers`",
    "URL 地址：/v1/piers\n\n请求方式：POST",
    "接口URL地址：/v1/piers\n\n请求方式：POST",
)


@pytest.mark.parametrize("call", CALLS)
def test_call_is_read(call: str, tmp_path: Path) -> None:
    text = PAGE.format("", "").replace("`POST /v1/piers`", call)
    assert read_lines(text, tmp_path / "page.md") == LINES


@pytest.mark.parametrize(
    ("actions", "expected"), [(("pier:book",), ["pier:book"]), (("a:b", "c:d"), [])]
)
def test_only_permission_above_operations_applies_to_all(
    actions: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    rows = "".join(f"| {action} | Write |\n" for action in actions)
    table = f"## Permissions\n\n| Action | Level |\n| --- | --- |\n{rows}"
    text = f"# Piers\n\n{table}\n{MESSAGE.format('Book', 'POST')}{MESSAGE.format('Move', 'PUT')}"
    operations = read_operations(text, tmp_path / "page.md")
    assert [[scope.name for scope in each.permissions] for each in operations] == [expected] * 2


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ("`400 Bad Request`: HarborMaster can not close the pier.", "400"),
        ("400 HarborMaster is asleep", "400"),
        ("404 PierNotFound if there is no pier", "PierNotFound"),
        ("`404 Not Found`: PierNotFound", "PierNotFound"),
    ],
)
def test_first_word_of_a_sentence_is_no_code(item: str, code: str) -> None:
    assert [error.code for error in listed_errors([item])] == [code]


def test_fields_of_events_are_no_parameters(tmp_path: Path) -> None:
    text = (
        "# Watch a pier\n\n`GET /v1/piers/{id}/events`\n\nScope: `pier:read`\n\nEvents have the form:\n\n"
        '```json\n{"level": 0}\n```\n\nlevel\n: integer, 0-9\n\nboat\n: string, the boat\n'
    )
    assert read_lines(text, tmp_path / "page.md") == [
        "GET /v1/piers/{id}/events Watch a pier", "id!", "pier:read"
    ]  # fmt: skip


def test_text_with_a_type_is_no_error() -> None:
    assert listed_errors(["Invalid date", "Wrong map"]) == ()


@pytest.mark.parametrize("name", LISTS)
def test_types_in_lists_are_read(name: str, tmp_path: Path) -> None:
    text = f"# Book a pier\n\n`POST /v1/piers`\n\n## Body parameters\n\n{LISTS[name]}"
    assert read_lines(text, tmp_path / "page.md") == [
        *LINES,
        "crew",
        "crew.name!",
        "crew.age",
        "tags",
    ]


def test_messages_below_headings_are_operations(tmp_path: Path) -> None:
    book = MESSAGE.format("Book", "POST")
    assert read_lines(book, tmp_path / "page.md") == ["POST /v1/piers Book a pier", "boat!"]
    text = f"# Piers\n\n{book}{MESSAGE.format('Move', 'PUT')}"
    assert read_lines(text, tmp_path / "page.md") == [
        "POST /v1/piers Book a pier",
        "boat!",
        "PUT /v1/piers Move a pier",
        "boat!",
    ]


_ABOVE_TABLE = """# 关闭订单

`POST /v3/orders/close`

## {heading}

{sentence}

| 参数名 | 类型 | 必填 | 描述 |
| --- | --- | --- | --- |
| order_no | String | 是 | 订单号 |
"""


@pytest.mark.parametrize(
    ("heading", "sentence", "role"),
    [
        ("请求参数", "公共请求参数见[公共参数](x.md)，业务参数如下：", "request"),
        ("请求参数", "除公共参数外，业务参数如下：", "request"),
        ("请求参数", "> 公共参数请参考[公共参数](x.md)", "request"),
        ("返回参数", "公共参数参见[公共参数](x.md)，业务参数如下：", "response"),
        (
            "Request",
            "For common parameters see [Common parameters](x.md). Business parameters:",
            "request",
        ),
        ("Request", "Common parameters: see [Signing](x.md). Parameters:", "request"),
        ("Fields", "See the common parameters. Response fields:", "response"),
        ("请求参数", "公共参数见下表：", "public"),
        ("请求参数", "常见公共参数：", "public"),
        ("公共请求参数，请参考示例", "", "public"),
        ("Request", "Common parameters (see [Signing](x.md)):", "public"),
    ],
)
def test_reference_to_common_parameters_announces_none(
    heading: str, sentence: str, role: str, tmp_path: Path
) -> None:
    page = _ABOVE_TABLE.format(heading=heading, sentence=sentence)
    (operation,) = read_operations(page, tmp_path / "page.md")
    found = {
        "public": operation.public_parameters,
        "request": operation.request_parameters,
        "response": operation.response_parameters,
    }
    assert [name for name, parameters in found.items() if parameters] == [role]


@pytest.mark.parametrize(
    ("paragraph", "end"),
    [
        ("Books a pier. " + "The pier stays free for other boats. " * 20, "for other boats."),
        ("Books a pier for a boat of the port " * 20, "for a boat of the port Books a …"),
        ("为一条还没有停靠过的船只预订泊位" * 30, "为一条还没有停靠过的船只 …"),
    ],
)
def test_long_description_ends_with_a_sentence_or_an_ellipsis(
    paragraph: str, end: str, tmp_path: Path
) -> None:
    (operation,) = read_operations(PAGE.format(paragraph, ""), tmp_path / "page.md")
    description = operation.document("pier", "harbour", "en").description
    assert description.endswith(end)
    assert len(description) <= MAX_DESCRIPTION_CHARS + len(" …")
