"""API pages whose calls, labels and parameters are in lists, quotations and sentences."""

from pathlib import Path

import pytest

from ingestion.sources.api_docs import api_sections
from tests.api_page_lines import read_lines, read_operations

CALLS_IN_LISTS = """# Markers

## List markers

* `GET /markers.json` returns all markers.

### Example JSON response

```json
[{"id": 1}]
```

## Create a marker

* `POST /markers.json` creates a marker.

**Required parameters**: `title` for the name, at most
20 characters. `day` and `color` as in the calendar.
_Optional parameters_: `note` as a remark.

## Move a marker

* `PUT /markers/#{id}.json` moves a marker.
* `PATCH /markers/#{id}.json` moves it as well.

**Required parameters**:

* `day` of the move.
"""

DEFINITIONS = """# Boats

## List boats

~~~
GET /boats
~~~

owner
: *Optional* **string**
: Only boats of this owner.

length
: *Required* **integer**
: The length in metres.

### Response

~~~ json
{"boats": []}
~~~
"""

ITALIC_LABELS = """# Devices

## Find a device

*Method:*

```
GET
```

*URL*

```
/v1/devices
```

*Query parameters*

| Name | Required | Description |
| --- | --- | --- |
| key | yes | The key of the device |
"""

QUOTED_CALLS = """# Bills

## Pay a bill

> POST http://pay.example/v1/bills

| Field | Required |
| --- | --- |
| id | yes |

## List bills

> GET
> http://pay.example/v1/bills?page=1

| Field | Required |
| --- | --- |
| page | no |
"""

STATUS_ITEMS = """# Streams

## Check a stream

**URL**

> http://video.example/check

**Method**

> POST

**Response example**

* Success(200)

```json
{"code": 0}
```

| Name | Type | Description |
| --- | --- | --- |
| code | number | 0 if it works |
"""

TYPES_FIRST = """# Accounts

**Endpoint**: POST /v1/accounts

**Parameters**:
- integer `app_id` (required): the application
- array of strings `tags` (optional): labels
- bool `trial`: whether it is a trial
"""

MARKED_FIELDS = """# Accounts

## Create an account

`POST /v1/accounts`

- `name` (string, required): the name
- `color` (string, optional): the colour
"""

OBJECTS = """# History

## Event object

| Field | Optional | Description |
| --- | --- | --- |
| id | No | The event |

## Read the history

GET https://events.example/history

### Query parameters

| Field | Optional | Description |
| --- | --- | --- |
| after | Yes | The start |
"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            CALLS_IN_LISTS,
            [
                "GET /markers.json List markers",
                "POST /markers.json Create a marker",
                "title!",
                "day!",
                "color!",
                "note",
                "PUT /markers/{id}.json Move a marker",
                "id!",
                "PATCH /markers/{id}.json Markers PATCH /markers/{id}.json",
                "id!",
                "day!",
            ],
        ),
        (DEFINITIONS, ["GET /boats List boats", "owner", "length!"]),
        (ITALIC_LABELS, ["GET /v1/devices Find a device", "key!"]),
        (
            QUOTED_CALLS,
            [
                "POST http://pay.example/v1/bills Pay a bill",
                "id!",
                "GET http://pay.example/v1/bills List bills",
                "page",
            ],
        ),
        (STATUS_ITEMS, ["POST http://video.example/check Check a stream", "> code"]),
        (TYPES_FIRST, ["POST /v1/accounts Accounts", "app_id!", "tags", "trial"]),
        (MARKED_FIELDS, ["POST /v1/accounts Create an account", "name!", "color"]),
        (
            OBJECTS,
            ["GET https://events.example/history History", "after", "> id!"],
        ),
    ],
)
def test_page_becomes_operations(page: str, expected: list[str], tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.md") == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("https://[[domain]](domains.md)/v1/pay", "https://[domain]/v1/pay"),
        ("https://[domain](domains.md)/v1/pay", "https://domain/v1/pay"),
        ("[http://a.example/v1/pay](http://a.example/v1/pay)", "http://a.example/v1/pay"),
        ("http://[::1/v1/pay", "http://[::1/v1/pay"),
        ("http://a.example/v1/pay#basics", "http://a.example/v1/pay"),
    ],
)
def test_url_with_markup_is_read(stated: str, expected: str, tmp_path: Path) -> None:
    """Such a host is not valid in a URL, which must not end an ingestion."""
    page = f"# Pay\n\n## URL\n\n{stated}\n\n## Method\n\nPOST\n\n| Name | Required |\n| --- | --- |\n| id | yes |\n"
    assert read_lines(page, tmp_path / "page.md") == [f"POST {expected} Pay", "id!"]


def test_placeholder_in_square_brackets_is_a_parameter(tmp_path: Path) -> None:
    page = "# Check\n\nGET /check/[host]\n\n| Name | Required |\n| --- | --- |\n| deep | no |\n"
    assert read_lines(page, tmp_path / "page.md") == ["GET /check/[host] Check", "host!", "deep"]


@pytest.mark.parametrize(("stated", "method"), [("GET/POST", "GET"), ("post/get", "POST")])
def test_first_of_two_methods_counts(stated: str, method: str, tmp_path: Path) -> None:
    page = f"# Rent\n\nMethod: {stated}\n\nURL: /v1/rent\n\n| Name | Required |\n| --- | --- |\n| id | no |\n"
    assert read_lines(page, tmp_path / "page.md")[:1] == [f"{method} /v1/rent Rent"]


@pytest.mark.parametrize("separator", [">>", ">", "->", "»", "→"])
def test_separator_in_a_name_is_a_dot(separator: str, tmp_path: Path) -> None:
    page = (
        "# Pay\n\nPOST /pay\n\n## Response\n\n| Name | Type |\n| --- | --- |\n| data | object |\n"
        f"| data{separator}id | string |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == ["POST /pay Pay", "> data", "> data.id"]


def test_sentence_about_a_method_names_no_parameters(tmp_path: Path) -> None:
    page = "# Token\n\n**Request method:** `PUT`\n\n**Request URL:** `/token`\n\n| Name | Required |\n| --- | --- |\n| key | yes |\n"
    assert read_lines(page, tmp_path / "page.md") == ["PUT /token Token", "key!"]


@pytest.mark.parametrize(
    "lines",
    [
        "- ` ` (string): nothing\n- `id` (string): the key",
        "- `id` (): the key\n- `name` (string, required): the name",
    ],
)
def test_list_with_an_empty_name_or_type_ends_no_ingestion(lines: str, tmp_path: Path) -> None:
    page = f"# Pay\n\n`POST /pay`\n\n| Name | Required |\n| --- | --- |\n| a | yes |\n\n{lines}\n"
    assert read_lines(page, tmp_path / "page.md")[:2] == ["POST /pay Pay", "a!"]


PLAIN_LABELS = """# Radio

## Log in

* URL: `http://radio.example/login`

* Method: `POST`

* Arguments:

    * `email`: `the account`

    * `password`: `the password`

* Response ( `application/json` )
"""

EXAMPLES_ONLY = """# Preferences

## Read the preferences

`GET /api/preferences`

**Example Response**:

```http
HTTP/1.1 200

{"theme": ""}
```
"""

CALL_HEADINGS = """# Admin

## POST `/admin/password/{user}`

Request body format:

```
{"password": "new"}
```

## /admin/state [GET]

returns the state.
"""

URL_THEN_CURL = """# Services

### list_services

Route: `/api/v0/services/:host`

Input:

- state: only services in this state

Example:

```curl
curl -X DELETE -H 'Token: x' https://foo.example/api/v0/services/a
```

Output:

```json
{"status": "ok"}
```
"""

TYPES_WITH_DEFAULTS = """# Namespaces

## Create a namespace

| Method | Path |
| --- | --- |
| `POST` | `/v1/namespace` |

### Parameters

- `Name` `(string: <required>)`- the name
- `Quota` `(int: 10)` - the quota
"""

PARAMETERS_BELOW_A_RESPONSE = """# Reports

GET /reports

It returns a JSON body like the following:

```json
{"reports": []}
```

**URL parameters:**

* `limit`: integer - the number of reports

**Response**

* `reports`: array - the reports
"""

ITEMS_WITHOUT_BARS = """# Server

### Read the state
GET /api/state

+ Body参数
无
+ 响应（200）

项目 | 类型 | 说明
-|-|-
vendor|string| 软件提供商 |
"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (PLAIN_LABELS, ["POST http://radio.example/login Log in", "email", "password"]),
        (EXAMPLES_ONLY, ["GET /api/preferences Preferences"]),
        (
            CALL_HEADINGS,
            [
                "POST /admin/password/{user} Admin POST /admin/password/{user}",
                "user!",
                "GET /admin/state /admin/state",
            ],
        ),
        (URL_THEN_CURL, ["DELETE /api/v0/services/:host list_services", "host!", "state"]),
        (TYPES_WITH_DEFAULTS, ["POST /v1/namespace Create a namespace", "Name!", "Quota"]),
        (PARAMETERS_BELOW_A_RESPONSE, ["GET /reports Reports", "limit", "> reports"]),
        (ITEMS_WITHOUT_BARS, ["GET /api/state Read the state", "> vendor"]),
    ],
)
def test_page_with_few_marks_is_read(page: str, expected: list[str], tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.md") == expected


@pytest.mark.parametrize(
    "line",
    [
        "**POST /rsvp** <br />\nCreates an RSVP.",
        "<font>POST</font>******<http://a.example/rsvp>**",
    ],
)
def test_call_among_markup_is_read(line: str, tmp_path: Path) -> None:
    page = f"# RSVP\n\n{line}\n\n| Name | Required |\n| --- | --- |\n| id | yes |\n"
    (call, name) = read_lines(page, tmp_path / "page.md")
    assert call.startswith("POST ")
    assert call.endswith("/rsvp RSVP")
    assert name == "id!"


def test_url_without_an_example_of_its_call_stays_prose(tmp_path: Path) -> None:
    page = URL_THEN_CURL.replace("foo.example/api/v0/services/a", "foo.example/api/v0/devices")
    page = page.replace("- state: only services in this state", "None.")
    assert read_lines(page, tmp_path / "page.md") == []


def test_fields_of_a_sample_below_a_label_about_errors_are_no_errors(tmp_path: Path) -> None:
    page = """# Move the cargo

`PUT /cargo`

### Parameters

- `crate` (string): The crate.

### Sample Response

If one of these status codes is returned, the response looks like this:

```json
{"Moved": [{"crate": "c1"}], "Faults": [{"what": "too heavy"}]}
```

- `Moved`: has an entry for each crate.
- `Faults`: has an entry for each crate that stayed.
"""
    assert read_lines(page, tmp_path / "page.md") == ["PUT /cargo Move the cargo", "crate"]
    codes = page.replace("`Moved`", "`too heavy`").replace("`Faults`", "`too_wide`")
    assert read_lines(codes, tmp_path / "page.md")[2:] == ["too heavy", "too_wide"]


TYPES_IN_CODE = """# Moor a boat

`PUT /berths`

### Parameters

- `Labels` `(map<string|string>: nil)` - The labels.
- `Crew` `(array<string>: <required>)` - The crew.
- `Length` `(positive int: 4096)` - The length.
- `Pier` `(string: "<nearest>")` - The pier.
- `Wait` `(duration: 5s)` - The patience.
- `Sail` `(Sail: nil)` - The sail.

#### Sail structure

For the `Sail` field, the parameters are:

- `Area` `(int: 0)` - The area.
"""


def test_types_in_code_may_have_any_name(tmp_path: Path) -> None:
    (operation,) = read_operations(TYPES_IN_CODE, tmp_path / "page.md")
    found = operation.request_parameters
    assert [(each.name, each.type, each.required, each.description) for each in found] == [
        ("Labels", "map<string|string>", False, "default nil; The labels"),
        ("Crew", "array<string>", True, "The crew"),
        ("Length", "positive int", False, "default 4096; The length"),
        ("Pier", "string", False, "default <nearest>; The pier"),
        ("Wait", "duration", False, "default 5s; The patience"),
        ("Sail", "Sail", False, "default nil; The sail"),
    ]
    assert [child.name for child in found[-1].children] == ["Area"]


def test_values_follow_the_words_that_announce_them(tmp_path: Path) -> None:
    items = "- `mode` (string): How to moor. The modes are:\n  - `bow`: first\n  - `stern`: last\n- `at` (int):"
    (operation,) = read_operations(
        f"# Moor\n\n`POST /moor`\n\n## Parameters\n\n{items}\n", tmp_path / "page.md"
    )
    sections = api_sections(operation.document("moor", "docs", "en"))
    bodies = "\n".join(section.body for section in sections)
    assert "How to moor. The modes are: `bow` first; `stern` last |" in bodies
    assert [each.description[-4:] for each in operation.request_parameters] == ["are:", ""]


def test_name_of_a_field_in_a_listed_array_has_brackets(tmp_path: Path) -> None:
    page = (
        "# List boats\n\n`GET /boats`\n\n## Parameters\n\n- `crew` (array of objects): The crew.\n"
        "  - `age` (integer): At least 18.\n\n"
        '## Response\n\n```json\n{\n  "boats": [ // all boats\n    {\n      "id": 1, // the number\n'
        '      "tags": ["red"] // its tags\n    }\n  ]\n}\n```\n'
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    bodies = [section.body for section in api_sections(operation.document("a", "s", "en"))]
    for name in ("crew", "crew[].age", "boats", "boats[].id", "boats[].tags"):
        assert any(f"| {name} |" in body for body in bodies), name


LABEL_ITEMS = """# 预订泊位

- **请求**

<table>
<tr><th colspan="2">概要</th></tr>
<tr><td>HTTP URL</td><td>/v1/berths</td></tr>
<tr><td>HTTP Method</td><td>POST</td></tr>
</table>

- **请求参数**

| 名称 | 类型 | 必填 | 描述 |
| --- | --- | --- | --- |
| boat | string | 是 | 船名 |

- **错误码**

| 错误码 | 描述 |
| --- | --- |
| 7 | 已满 |

- **请求示例**

```shell
row --boat a
```

- **返回参数**
"""


def test_labels_in_lists_leave_no_empty_items(tmp_path: Path) -> None:
    (operation,) = read_operations(LABEL_ITEMS, tmp_path / "berths.md")
    assert [error.code for error in operation.error_codes] == ["7"]
    texts = [block.text for block in operation.prose]
    assert [text for text in texts if "**" in text] == ["**请求**", "**请求示例**"]


LABELLED_LINK = """# 预订泊位

`POST /v1/berths`

## 请求

- **泊位说明**
[泊位|航海文档](https://acme.example/berths)

## 返回

- `id` (string): 编号
"""


def test_label_of_a_link_is_no_parameter(tmp_path: Path) -> None:
    lines = read_lines(LABELLED_LINK, tmp_path / "berths.md")
    assert lines == ["POST /v1/berths 预订泊位", "> id"]


@pytest.mark.parametrize(
    "label",
    [
        "The following JSON body parameters are available:",
        "The following fields belong in the body of the request:",
        "以下请求参数需要放在请求的消息体里，并且使用签名所用的同一种编码方式：",
    ],
)
def test_sentence_about_the_following_parameters_announces_a_list(
    label: str, tmp_path: Path
) -> None:
    page = f"# Moor\n\n`PUT /v1/moor`\n\n{label}\n\n- `berth` - Where it moors.\n- `rope` - Its rope.\n"
    assert read_lines(page, tmp_path / "page.md") == ["PUT /v1/moor Moor", "berth", "rope"]
