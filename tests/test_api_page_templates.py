"""API pages in widely copied templates, and examples whose comments describe the fields."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines, read_operations

LABEL_LIST = """# Boats

Register a boat

* **URL**

  /boats

* **Method:**

  `POST`

* **Data Params**

  **Required:**

  `name - [string], the painted name`

  `length=[integer]`

  **Optional:**

  `owner=[string]`

* **Success Response:**

  * **Code:** 201 <br />
    **Content:** `{ id : 12 }`

* **Error Response:**

  * **Code:** 409 CONFLICT <br />
    **Content:** `{ error : "name is taken" }`

  OR

  * **Code:** 422 UNPROCESSABLE ENTITY <br />
    **Content:** `{ error : "too long" }`

----

Remove a boat

* **URL**

  /boats/:id

* **Method:**

  `DELETE`

* **Error Response:**

  * **Code:** 404 NOT FOUND <br />
    **Content:** `{ error : "no such boat" }`
"""

COMMENTED_EXAMPLE = """# Rent a boat

* **Request Method:** POST
* **Request Path:** `/v2/rentals`

**Request Parameters**

```json
{
    "boat": 3,            // (number: id of the boat) required
    "note": "see http://a.example", // optional, a remark for the owner
    "crew": [
        {
            "name": "Ann",   // required, as in the passport
            "age": 30        /* in years */
        }
    ]
}
```

**Response Structure**

```json
{
    "id": 7,              // id of the rental
    "state": "open"       // open or closed
}
```

**Example Response**

```json
{ "id": 7, "state": "open" }
```
"""

PROTOCOL_TABLE = """## 1 下发短信

### 1.1 协议说明
名称|说明
:---|:---|:---
协议|HTTP POST
URL(上海)| https://sh.example/send
URL(新加坡)|https://sg.example/send

### 1.2 请求包体
名称|类型|是否必填|说明
:---|:---|:---|:---
mobile|string|是|手机号
"""

CALL_IN_EXAMPLE = """# 令牌

### 9.1 转移令牌

请求参数：

| 字段名 | 类型 | 是否必填 | 描述 |
| --- | --- | --- | --- |
| to | String | 是 | 目的地址 |

示例：

```plain
http请求方式：POST
https://{url}/v1/token/transfer
{
    "to": "abc"
}
```

### 9.2 查询令牌

请求参数：无

| 字段名 | 类型 | 是否必填 | 描述 |
| --- | --- | --- | --- |
| 无 | | | |

返回数据：

| 字段名 | 类型 | 描述 |
| --- | --- | --- |
| amount | Long | 数量 |

示例：

```plain
http请求方式：GET
https://{url}/v1/token/query
```
"""

HEADING_FACTS = """# 打款

## 打款到银行卡

### URL: */2/transfer/*
### METHOD: *POST*
### 请求参数详情

参数名 | 类型 | 描述 | 是否必填
---- | ---- | ---- | ----
bill_no | String | 订单号 | 是

## 支持的银行

### URL: */2/banks*
### METHOD: *GET*
### 请求参数详情

参数名 | 类型 | 描述 | 是否必填
---- | ---- | ---- | ----
type | String | 类型 | 是
"""

MARKED_CALL = """## Rename an account

<mark style={{ color: "green" }}>POST</mark>

<mark style={{ color: "green" }}>`/accounts/{account_id}/rename`</mark>

### Query parameter

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| name | string | yes | The new name |

### Example request

```json
POST  /accounts/11223344/rename?name=new
```
"""

CURL_WITHOUT_METHOD = """# Get event logs

### Query Parameters

<ParamField query="chain" type="string" required>
  Chain to search.
</ParamField>

<RequestExample>
  ```bash
  curl "https://api.example/v2/logs?chain=1"
  ```
</RequestExample>
"""

NAMES_ABOVE_TEXTS = """# 查询分布

## Request

`GET /api/distribution?group_by={enum}`

## Query parameters

* `group_by`
    分组，当前只支持一种

* `partition_id`
    选填，默认返回所有分区
"""

BLUEPRINT = """# Group Harbour

## Boats [/boats{?limit}]

### List the boats [GET]

+ Parameters
    + limit (optional, number) ... At most 100.

+ Response 200 (application/json)

        [{"id": 1}]

### Register a boat [POST]

+ Request (application/json)

    + Headers

            X-Token: abc

    + Body

            {"name": "Ann"}

## Berths [/berths/{id}]

### Free a berth [DELETE /berths/{id}]

+ Parameters
    + id (required, string) ... The berth.
"""

READ = {
    LABEL_LIST: [
        "POST /boats Register a boat", "name!", "length!", "owner", "409", "422",
        "DELETE /boats/:id Remove a boat", "id!", "404",
    ],
    COMMENTED_EXAMPLE: [
        "POST /v2/rentals Rent a boat", "boat!", "note", "crew", "crew.name!", "crew.age", "> id", "> state",
    ],
    PROTOCOL_TABLE: ["POST https://sh.example/send 下发短信", "mobile!"],
    CALL_IN_EXAMPLE: [
        "POST https://{url}/v1/token/transfer 转移令牌", "to!",
        "GET https://{url}/v1/token/query 查询令牌", "> amount",
    ],
    HEADING_FACTS: [
        "POST /2/transfer/ 打款到银行卡", "bill_no!", "GET /2/banks 支持的银行", "type!",
    ],
    MARKED_CALL: ["POST /accounts/{account_id}/rename Rename an account", "account_id!", "name!"],
    CURL_WITHOUT_METHOD: ["GET https://api.example/v2/logs Get event logs", "chain!"],
    BLUEPRINT: [
        "GET /boats List the boats", "limit", "POST /boats Register a boat",
        "DELETE /berths/{id} Berths", "id!",
    ],
    NAMES_ABOVE_TEXTS: ["GET /api/distribution 查询分布", "group_by", "partition_id"],
}  # fmt: skip


@pytest.mark.parametrize("page", READ)
def test_page_becomes_operations(page: str, tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.mdx") == READ[page]


def test_commented_example_does_not_repeat_a_table(tmp_path: Path) -> None:
    table = "| Name | Type | Required |\n| --- | --- | --- |\n| boat | number | yes |\n\n```json"
    page = COMMENTED_EXAMPLE.replace("```json", table, 1)
    assert read_lines(page, tmp_path / "page.md")[1:3] == ["boat!", "> id"]


def test_an_example_with_few_comments_describes_no_fields(tmp_path: Path) -> None:
    page = COMMENTED_EXAMPLE.replace("// optional, a remark for the owner", "")
    page = page.replace("// required, as in the passport", "").replace("/* in years */", "")
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /v2/rentals Rent a boat",
        "> id",
        "> state",
    ]


def test_value_of_a_remark_is_not_part_of_the_url(tmp_path: Path) -> None:
    page = "# List\n\n`GET /v1/orders(HMAC SHA256)`\n\n| Name | Required |\n| --- | --- |\n| page | no |\n"
    assert read_lines(page, tmp_path / "page.md") == ["GET /v1/orders List", "page"]


def test_blueprint_path_ends_with_its_resource(tmp_path: Path) -> None:
    page = (
        "# API\n\n## Boats [/boats]\n\n### List boats [GET /boats{?limit, page}]\n\n+ Parameters\n    + limit (number)\n\n"
        "### Create a boat [POST]\n\n+ Request (application/json)\n    + Attributes (object)\n"
        "        + name (string, required)\n\n### Probe boats [OPTIONS]\n\n+ Parameters\n    + deep (boolean)\n\n"
        "## Group Fish\n\n### Count fish [POST]\n\n+ Parameters\n    + kind (string)\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "GET /boats List boats",
        "limit",
        "POST /boats Create a boat",
        "name!",
        "OPTIONS /boats Probe boats",
        "deep",
    ]


def test_lists_and_objects_of_a_commented_example_are_fields(tmp_path: Path) -> None:
    page = (
        "# Rent\n\n`POST /rent`\n\n## Request body\n\n```json\n{\n"
        '  "tags": ["a", "b"], // the labels\n  "owner": {"id": 1}, // who owns it\n'
        '  "price": 20 // (in cents) the price (gross)\n}\n```\n'
    )
    assert read_lines(page, tmp_path / "page.md") == ["POST /rent Rent", "tags", "owner", "price"]


def test_bracketed_start_of_a_comment_is_read_as_its_mark(tmp_path: Path) -> None:
    page = (
        "# Rent\n\n`POST /rent`\n\n## Request body\n\n```json\n{\n"
        '  "days": 3, // (optional) nights on board\n  "boat": 7, // (required) id of the boat\n'
        '  "crew": 2, // (optional, 1 by default) sailors\n  "port": "x" // (code: of the harbour) required\n'
        "}\n```\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert [(p.name, p.required, p.description) for p in operation.request_parameters] == [
        ("days", False, "nights on board"),
        ("boat", True, "id of the boat"),
        ("crew", False, "sailors (optional, 1 by default)"),
        ("port", True, "required code: of the harbour"),
    ]


def test_two_methods_are_no_call(tmp_path: Path) -> None:
    page = "# Rent\n\nMethod: GET / POST\n\nURL: /v1/rent\n\n| Name | Required |\n| --- | --- |\n| id | no |\n"
    assert read_lines(page, tmp_path / "page.md")[:1] == ["GET /v1/rent Rent"]


def test_declared_call_and_its_full_url_are_one_operation(tmp_path: Path) -> None:
    page = (
        "---\ntitle: Send\nopenapi: POST /v1/messages\n---\n\n`POST https://h.example/api/v1/messages`\n\n"
        "| Name | Required |\n| --- | --- |\n| text | yes |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST https://h.example/api/v1/messages Send",
        "text!",
    ]
