"""How API pages state their operations: lines, tables of operations, code, titles and permissions."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.calls import CallTemplates, call_of
from ingestion.sources.api_pages.parameters import listed_parameters
from ingestion.sources.api_pages.permissions import scopes_of_sentences
from tests.api_page_lines import read_lines

CLAUSE_AFTER_CALL = """# 查询书架

`GET /v3/shelves/{shelf_id}/books`，权限 `shelf.read`。

| Query | 默认 | 说明 |
| --- | --- | --- |
| sort | title | 排序 |
| from_day / to_day | - | 上架日期 |

下架一本书：`POST /v3/books/{book_id}/hide`，权限 `shelf.write`，不可恢复。
"""

QUOTED_CALLS = """# Lanterns

## Light a lantern

> `POST https://glow.example/v3/lanterns`
> Scope `lanterns:write` · 20 per second

Body

: `color` (enum, required) – red or green
: `minutes` (integer) – at most 90

## Read lanterns

> `GET https://glow.example/v3/lanterns`
> Scope `lanterns:read`

Query: `color`, `limit` (20, ≤ 50), `cursor`. Newest first.

## Errors

| Code | Cause |
| --- | --- |
| 7001 | no oil |
"""

LABELLED_LINES = """---
title: 取消租借
---

# 取消租借

名称：取消租借
请求：`POST https://rent.example/v3/rentals/{rental_id}/cancel`
权限：`rental.write`

请求体：

- `reason`（必填，最长 50）：原因
- `mode`（string，选填）：方式
  - `NOW`：立即
  - `LATER`：稍后
"""

CALLS_AFTER_LABEL = """# Parcel status and tracking

Endpoint: `GET https://mail.example/v3/parcels/{parcel_id}` — scope `parcels:read`

```json
{ "id": "p1", "state": "sent" }
```

Endpoint: `POST https://mail.example/v3/parcels/{parcel_id}/return` — scope `parcels:write`

Only before the parcel is delivered.
"""

TITLE_AND_SECTIONS = """# 打印与进度

```
POST /v3/machines/{machine_id}/prints
```

**权限** machine.print　**频率** 每台 2 次/秒

| 字段 | 类型 | 必填 |
| --- | --- | --- |
| text | string | Y |

### 打印进度

`GET /v3/prints/{print_id}`（保留 5 天）

机器离线时 **仍返回成功**，`data.warning` 为 9。

重打：

```
POST /v3/prints/again
{"print_id": "x"}
```

### 错误码

| code | 说明 |
| --- | --- |
| 9001 | 机器不存在 |
"""

TABLE_OF_OPERATIONS = """# Boats

| Operation | Method | Path | Scope |
| --- | --- | --- | --- |
| List boats | GET | `/v3/boats` | `boats:read` |
| Get a boat | GET | `/v3/boats/{boat_id}` | `boats:read` |
| Harbor of a boat | GET | `/v3/boats/{boat_id}/harbor` | `harbors:read` |
| Add a boat | POST | `/v3/boats` | `boats:write` |

### Boat

| Field | Type | Meaning |
| --- | --- | --- |
| id | string | |
| mast | string | |

### Body

| Field | Type | Required |
| --- | --- | --- |
| name | string | yes |

### Harbor

The harbor with its `berth`.
"""

ROWS_WITH_CALLS = """# 绑定门锁

| 项 | 值 |
| --- | --- |
| 绑定 | `POST /v3/locks` |
| 解绑 | `DELETE /v3/locks/{lock_id}` |
| 权限 | `lock.manage` |

### 绑定参数

| 名称 | 类型 | 必填 |
| --- | --- | --- |
| sn | string | 是 |

### 解绑

立即生效。
"""

CALLS_IN_CODE = """# Create or replace a garden

```http
POST /v3/gardens
PUT  /v3/gardens/{garden_id}
```

Permission: `gardens:write` · Limit: `40` per minute

## Request body

- `name` (string, required)
- `x`, `y` (integer, required)
- `edges` (array of `[x, y]`): the outline
"""

PERMISSION_AND_EXAMPLE = """# Ferry times

```
GET /v3/ferries/{ferry_id}
```

Scope `ferries:read`

```json
{ "id": "f1" }
```
"""

OPERATION_OF_A_GUIDE = """# Callbacks

## Register an address

```http
POST /v3/callbacks
```

| Field | Type | Required |
| --- | --- | --- |
| target | string | yes |

## Topics

| Topic | When |
| --- | --- |
| `boat.sold` | sold |
"""

STATES = """# Create a repair

**POST** `/v3/repairs`

**Scope:** `repairs:write`; with `mode` = `fast` also `repairs:fast`

## Query parameters

- `dry_run` – checks only
- `lang` – of the messages

## Response

| Status | Meaning |
| --- | --- |
| open | waiting |
| done | finished |
"""

STATEMENTS = {
    "clause after the call": (
        CLAUSE_AFTER_CALL,
        [
            "GET /v3/shelves/{shelf_id}/books 查询书架",
            "shelf_id!",
            "sort",
            "from_day",
            "to_day",
            "shelf.read",
            "POST /v3/books/{book_id}/hide 下架一本书",
            "book_id!",
            "shelf.write",
        ],
    ),
    "quoted calls": (
        QUOTED_CALLS,
        [
            "POST https://glow.example/v3/lanterns Light a lantern",
            "color!",
            "minutes",
            "7001",
            "lanterns:write",
            "GET https://glow.example/v3/lanterns Read lanterns",
            "color",
            "limit",
            "cursor",
            "7001",
            "lanterns:read",
        ],
    ),
    "labelled lines": (
        LABELLED_LINES,
        [
            "POST https://rent.example/v3/rentals/{rental_id}/cancel 取消租借",
            "rental_id!",
            "reason!",
            "mode",
            "rental.write",
        ],
    ),
    "calls after a label": (
        CALLS_AFTER_LABEL,
        [
            "GET https://mail.example/v3/parcels/{parcel_id} Parcel status and tracking",
            "parcel_id!",
            "parcels:read",
            "POST https://mail.example/v3/parcels/{parcel_id}/return"
            " Parcel status and tracking POST /v3/parcels/{parcel_id}/return",
            "parcel_id!",
            "parcels:write",
        ],
    ),
    "title and sections": (
        TITLE_AND_SECTIONS,
        [
            "POST /v3/machines/{machine_id}/prints 打印与进度",
            "machine_id!",
            "text!",
            "9001",
            "machine.print",
            "GET /v3/prints/{print_id} 打印进度",
            "print_id!",
            "9001",
            "POST /v3/prints/again 重打",
            "9001",
        ],
    ),
    "table of operations": (
        TABLE_OF_OPERATIONS,
        [
            "GET /v3/boats List boats",
            "> id",
            "> mast",
            "boats:read",
            "GET /v3/boats/{boat_id} Get a boat",
            "boat_id!",
            "> id",
            "> mast",
            "boats:read",
            "POST /v3/boats Add a boat",
            "name!",
            "boats:write",
            "GET /v3/boats/{boat_id}/harbor Harbor of a boat",
            "boat_id!",
            "harbors:read",
        ],
    ),
    "rows with calls": (
        ROWS_WITH_CALLS,
        [
            "POST /v3/locks 绑定",
            "sn!",
            "lock.manage",
            "DELETE /v3/locks/{lock_id} 解绑",
            "lock_id!",
            "lock.manage",
        ],
    ),
    "calls in code": (
        CALLS_IN_CODE,
        [
            "POST /v3/gardens Create or replace a garden",
            *["name!", "x!", "y!", "edges", "gardens:write"],
            "PUT /v3/gardens/{garden_id} Create or replace a garden (PUT)",
            *["garden_id!", "name!", "x!", "y!", "edges", "gardens:write"],
        ],
    ),
    "permission and example": (
        PERMISSION_AND_EXAMPLE,
        ["GET /v3/ferries/{ferry_id} Ferry times", "ferry_id!", "ferries:read"],
    ),
    "operation of a guide": (
        OPERATION_OF_A_GUIDE,
        ["POST /v3/callbacks Register an address", "target!"],
    ),
    "states are no errors": (
        STATES,
        ["POST /v3/repairs Create a repair", "dry_run", "lang", "repairs:write", "repairs:fast"],
    ),
    "front matter only": (
        "---\ntitle: Delete a boat\nopenapi: DELETE /v3/boats/{boat_id}\n---\n",
        ["DELETE /v3/boats/{boat_id} Delete a boat", "boat_id!"],
    ),
}
"""Page and expected lines by the way in which it states its operations."""


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_is_read(statement: str, tmp_path: Path) -> None:
    text, expected = STATEMENTS[statement]
    assert read_lines(text, tmp_path / "page.md") == expected


DETAILS = """# Add a chair

**POST** `/v3/chairs`

| Name | Type | Required |
| --- | --- | --- |
| legs | object[] | yes |
| └ required | boolean | no |
| └ point.x / y | number | yes |
| all fields of Stool | | no |

**Body**

- `finish` (string, at most 20): look of the wood
  - `OILED`: oil
  - `RAW`: nothing

## Scopes

| Scope | Allows |
| --- | --- |
"""


def test_names_of_rows_are_whole(tmp_path: Path) -> None:
    scopes = "".join(f"| `s{index}:read` | read |\n" for index in range(20))  # those of a platform
    assert read_lines(DETAILS + scopes, tmp_path / "page.md") == [
        "POST /v3/chairs Add a chair",
        *["legs!", "legs.required", "legs.point.x!", "legs.point.y!", "finish"],
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("将需要刷新的 URL（以 `http://` 开头）以 `\\n` 连接", []),
        ("需要以下权限：`https://x.example/auth/files`", ["https://x.example/auth/files"]),
    ],
)  # fmt: skip
def test_part_of_a_url_is_no_permission(text: str, names: list[str]) -> None:
    assert [scope.name for scope in scopes_of_sentences(text)] == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("要求 `access_key` 对应的用户具备船长权限。", []),
        ("要求`access_key`所属的账号拥有`berth.write`权限。", ["berth.write"]),
        ("The user that `key` belongs to needs the permission `berth.write`.", ["berth.write"]),
        ("需要 `berth.write` 对应的权限。", ["berth.write"]),
    ],
)
def test_credential_of_a_user_is_no_permission(text: str, names: list[str]) -> None:
    assert [scope.name for scope in scopes_of_sentences(text)] == names


def test_limits_and_values_are_no_types() -> None:
    items = (
        "- `finish` (string, at most 20): look\n  - `OILED`: oil\n  - `RAW`: none\n- `ids` (int[])"
    )
    finish, ids = listed_parameters(items)
    assert (finish.type, finish.description) == ("string", "at most 20; look")
    assert [(value.value, value.meaning) for value in finish.values] == [
        ("OILED", "oil"),
        ("RAW", "none"),
    ]
    assert (ids.type, ids.required) == ("int[]", None)


PROSE = {
    "a call within a sentence": """# Search

To find a boat, call `GET /v3/boats`, with the scope `boats:read`.

```json
{ "id": "b1" }
```
""",
    "a sentence about a call": """# Search

`GET /v3/boats` returns all boats.

| Code | Cause |
| --- | --- |
| 7001 | no oil |
""",
    "limits of calls": """# Limits

| Call | Limit |
| --- | --- |
| `GET /v3/boats` | 40 per second |
| `POST /v3/boats` | 5 per second |

## Errors

| Code | Cause |
| --- | --- |
| 42901 | too many calls |
""",
    "methods of a client": """# Client

## Options

| Option | Type | Default |
| --- | --- | --- |
| `timeout` | integer | 30 |

## Methods

| Method | Call |
| --- | --- |
| `boats.list()` | `GET /v3/boats` |
| `boats.add()` | `POST /v3/boats` |
""",
    "limits of a call": """# Paging

| Parameter | Type | Required |
| --- | --- | --- |
| `after` | string | no |

2 requests a second on `GET /v3/boats`
""",
    "an example in a manual": """# Configuration

## Rate limits

### `rc_login`

Limits login requests:

- `per_hour` (integer, required): logins per hour

## Keys

### `key_servers`

Ask another server for a key:

```sh
curl https://keys.example/v1/keys/abc
```
""",
    "a request inside a library": """# Sessions

## How the client sends a request

An object of the library for a boat:

- `method`: GET
- `url`: <https://boats.example/v3/boats>
- `params`:
  - `id`: 2
  - `tags`: []
""",
    "error": """# Trouble at the pier

## Boats

### The boat does not answer

Look at the log of the pier.

### 403 GET /v3/boats/moorings

The key of the pier is too old.

    pierctl renew

| Setting | Meaning |
| --- | --- |
| `renewal` | Days until a key is renewed |
""",
}
"""Pages that name calls and describe none."""


@pytest.mark.parametrize(
    ("parameters", "example"),
    [("### Parameters", "### Example"), ("## Parameters", "## Call from a terminal")],
)
def test_example_and_its_parameters_may_be_below_several_headings(
    parameters: str, example: str, tmp_path: Path
) -> None:
    page = (
        f"# Boats\n\n## Find a boat\n\n{parameters}\n\n- `id` (integer, required): the boat\n\n"
        f"{example}\n\n```sh\ncurl https://boats.example/v3/boats\n```\n"
    )
    (line, *names) = read_lines(page, tmp_path / "page.md")
    assert line.startswith("GET https://boats.example/v3/boats ")
    assert names == ["id!"]


@pytest.mark.parametrize("page", PROSE)
def test_named_call_is_prose(page: str, tmp_path: Path) -> None:
    assert read_lines(PROSE[page], tmp_path / "page.md") == []


def test_call_is_no_instance_of_a_longer_template() -> None:
    templates = CallTemplates([call_of("GET", "/{tenant}/users"), call_of("GET", "/users/{id}")])
    assert templates.matches(call_of("GET", "/users/42"))
    assert templates.matches(call_of("GET", "/acme/users"))
    assert not templates.matches(call_of("GET", "/users"))


@pytest.mark.parametrize(
    ("title", "heading", "name"),
    [
        ("Multipart", "Complete Multipart Upload", "Complete Multipart Upload"),
        ("Bucket CORS", "PUT Bucket CORS", "PUT Bucket CORS"),
        ("Create order", "POST Create order", "Create order"),
        ("Create order", "Create order (orders.create)", "Create order"),
        ("Create order", "Orders", "Create order"),
        ("GET Bucket", "", "GET Bucket"),
        ("GET Address", "", "GET Address"),
        ("POST Reconcile an account", "", "Reconcile an account"),
        ("DELETE 订单", "", "订单"),
    ],
)
def test_operation_is_named_by_the_title_or_a_longer_heading(
    title: str, heading: str, name: str, tmp_path: Path
) -> None:
    page = (
        f"---\ntitle: {title}\n---\n\n{f'# {heading}' if heading else ''}\n\n## Request syntax\n\n"
    )
    page += (
        "`POST /v1/x`\n\n## Request parameters\n\n| Name | Required |\n| --- | --- |\n| a | yes |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [f"POST /v1/x {name}", "a!"]
