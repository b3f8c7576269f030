"""Structures of API pages: components, nested tables and lists, field elements, errors and scopes."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines, read_operations

COMPONENTS_WITH_OBJECTS = """# Move a shelf

<ApiMethod verb={"patch"} url={"/shelves/{shelf_id}"}></ApiMethod>

<Title as={"h2"} children={"Request"} />

<ParamItem param={{"name":"shelf_id","in":"path","required":true,"schema":{"type":"string"}}} />
<BodyItem name={"room"} required={true} schemaName={"string"} schema={{"type":"string"}}>
</BodyItem>
<BodyItem name={"note"} required={false} schemaName={"string"} />

<Title as={"h2"} children={"Response"} />

<SchemaRow name="moved" type="boolean" />

## Errors

<ErrorRow code="room_full" status={409}>No space.</ErrorRow>

<Access scope="shelves.write" />
"""

ANNOTATED_HEADINGS = """# Shelves

## Add a shelf {{ tag: 'POST', label: '/shelves' }}

<Row>
  <Col>

    Needs the <Badge>shelves.write</Badge> permission.

    ### Required attributes

    <Properties>
      <Property name="room" type="string">Room.</Property>
    </Properties>

    ### Optional attributes

    <Properties>
      <Property name="note" type="string">Note.</Property>
    </Properties>

  </Col>
</Row>

## Drop a shelf {{ tag: 'DELETE', label: '/shelves/:id' }}

### Errors

<Accordion title="404 — shelf_gone">Gone.</Accordion>
"""

COMPONENTS_IN_COMPONENTS = """---
title: Plan a shift
openapi: post /shifts
---

<ParamField body="rules" type="object[]" required>
  <Accordion title="fields">
    <ParamField body="rules.kind" type="'soft' | 'hard'" required />
    <ParamField body="rules.limits" type="object">
      <ParamField body="max" type="integer" />
    </ParamField>
  </Accordion>
</ParamField>
"""

OPERATIONS_IN_DETAILS = """# Pantry

<details>
<summary><code>GET</code> <code><b>/pantries/{pantryId}</b></code> <code>(shows a pantry)</code></summary>

##### Parameters

> | name | type | data type |
> |---|---|---|
> | limit | optional | int |

##### Responses

> | http code | response |
> |---|---|
> | `200` | pantry |
> | `404` | nothing |

</details>
<details>
<summary><code>POST</code> <code><b>/pantries</b></code> <code>(adds a pantry)</code></summary>

##### Body

| name | type | required |
|---|---|---|
| title | string | yes |

</details>
"""

LISTS_OF_STATUSES = """# Save a lesson

**Method URL** `https://a.example/lessons/{lessonId}`
**HTTP method** `PUT`

## Parameters

| Parameter | Type | Description |
| --- | --- | --- |
| `lesson_id` | `string` | Id. |
| `draft?` | `boolean` | Draft. |

## Failures

- `400 Bad Request` — `title_missing`: no title.
- [409 Conflict](https://a.example) — somebody else saved it.

## Security

| Scheme | Scopes |
| --- | --- |
| OAuth2 | lessons:read, lessons:write |
"""

TYPES_WITH_ARGUMENTS = """# Query stock

| Item | Value |
| --- | --- |
| Endpoint | `/stock/query` |
| Method | GET / POST |

## Request

| About | Parameter | Required | Type |
| --- | --- | --- | --- |
| Goods | skus | N | List<Sku> |

### Sku

| About | Parameter | Required | Type |
| --- | --- | --- | --- |
| Code | skuCode | Y | String |
"""

HTML_TABLES = """<html><body><main><h1>Add a ticket</h1><aside><b>Scopes:</b> <code>tickets:write</code></aside>
<table><tr><td>Request URL</td><td>https://a.example/tickets</td></tr><tr><td>Method</td><td>POST</td></tr></table>
<h2>Request parameters</h2><table><tr><th rowspan="2">Name</th><th rowspan="2">Type</th><th colspan="2">Limits</th></tr>
<tr><th>Required</th><th>Length</th></tr><tr><td>title</td><td>string</td><td>yes</td><td>50</td></tr>
<tr><td style="padding-left:8px">title.lang</td><td>string</td><td>no</td><td></td></tr></table>
<h2>Response</h2><table><tr><th>Field</th><th>Type</th><th>Description</th></tr><tr><td>ticket</td><td>object</td><td>It.
<table><tr><th>Field</th><th>Type</th></tr><tr><td>price</td><td>object</td><td>
<table><tr><td>amount</td><td>integer</td></tr></table></td></tr></table></td></tr></table>
<h2>Errors</h2><table><tr><th>Status</th><th>Codes</th></tr>
<tr><td>400</td><td><code>no_title</code>: none<br><code>bad_title</code>: long</td></tr></table></main></body></html>"""

HTML_ELEMENTS = """<html><body><main><h1>Book a court</h1>
<button><span class="verb">post</span><span class="path">/courts/{court_id}/bookings</span></button>
<h2>Body</h2><div><div><div><span>players</span><div>array</div><div>required</div></div><p>Who plays.</p>
<div><div><div><span>name</span><span>string</span></div><p>Name.</p></div></div></div></div>
<h2>Responses</h2><div><button><strong>422</strong><p>No court</p></button></div></main></body></html>"""

HTML_DEFINITIONS = """<html><body><main><h1>Order a cab</h1><p><span class="m">POST</span><code>/rides</code></p>
<h2>Request</h2><dl><dt>pickup <small>object, required</small></dt><dd>Where.
<dl><dt>lat <small>number</small></dt><dd>Latitude.</dd></dl></dd></dl>
<h2>Response</h2><ul><li><div><span class="n">ride</span><span class="t">object</span></div><p>It.</p>
<ul><li><div><span class="n">eta</span><span class="t">integer</span></div><p>Seconds.</p></li></ul></li></ul>
<h2>Errors</h2><dl><dt>no_cab</dt><dd>None near.</dd></dl></main></body></html>"""

COMPONENTS_WITH_CONTENT = """# Save a contact

<Verb type="PUT">/contacts/{email}</Verb>

<Permissions>contacts.write</Permissions>

<Rows>
  <Row name="email" in="path" type="string" required>Mail.</Row>
</Rows>

<Response status={200}>
  <Field name="created" type="boolean" />
</Response>

<Response status={404} code="list_missing">No list.</Response>
"""

SECTION_WITHOUT_TABLE = """# Parcels

## Create a parcel

`POST` `/parcels`

**Parameters**

| Name | Type | Req. |
|---|---|:-:|
| `dims[]` | array | – |
| `dims[].w` | int | ● |

## Get a parcel

`GET` `/parcels/{id}`

**Errors**

`404` `not_found` — unknown id.
"""

LAYOUTS = {
    "components with content": (
        "mdx",
        COMPONENTS_WITH_CONTENT,
        [
            "PUT /contacts/{email} Save a contact",
            "email!",
            "> created",
            "list_missing",
            "contacts.write",
        ],
    ),
    "section without table": (
        "mdx",
        SECTION_WITHOUT_TABLE,
        [
            "POST /parcels Create a parcel",
            "dims[]",
            "dims[].w!",
            "GET /parcels/{id} Get a parcel",
            "id!",
            "not_found",
        ],
    ),
    "components with objects": (
        "mdx",
        COMPONENTS_WITH_OBJECTS,
        [
            "PATCH /shelves/{shelf_id} Move a shelf",
            "shelf_id!",
            "room!",
            "note",
            "> moved",
            "room_full",
            "shelves.write",
        ],
    ),
    "annotated headings": (
        "mdx",
        ANNOTATED_HEADINGS,
        [
            "POST /shelves Add a shelf",
            "room!",
            "note",
            "shelves.write",
            "DELETE /shelves/:id Drop a shelf",
            "id!",
            "shelf_gone",
        ],
    ),
    "components in components": (
        "mdx",
        COMPONENTS_IN_COMPONENTS,
        ["POST /shifts Plan a shift", "rules!", "rules.kind!", "rules.limits", "rules.limits.max"],
    ),
    "operations in details": (
        "mdx",
        OPERATIONS_IN_DETAILS,
        [
            "GET /pantries/{pantryId} shows a pantry",
            "pantryId!",
            "limit",
            "404",
            "POST /pantries adds a pantry",
            "title!",
        ],
    ),
    "lists of statuses": (
        "mdx",
        LISTS_OF_STATUSES,
        [
            "PUT https://a.example/lessons/{lessonId} Save a lesson",
            "lesson_id!",
            "draft",
            "title_missing",
            "409",
            "lessons:read",
            "lessons:write",
        ],
    ),
    "types with arguments": (
        "mdx",
        TYPES_WITH_ARGUMENTS,
        ["GET /stock/query Query stock", "skus", "skus.skuCode!"],
    ),
    "html tables": (
        "html",
        HTML_TABLES,
        [
            "POST https://a.example/tickets Add a ticket",
            "title!",
            "title.lang",
            "> ticket",
            "> ticket.price",
            "> ticket.price.amount",
            "no_title",
            "bad_title",
            "tickets:write",
        ],
    ),
    "html elements": (
        "html",
        HTML_ELEMENTS,
        [
            "POST /courts/{court_id}/bookings Book a court",
            "court_id!",
            "players!",
            "players.name",
            "422",
        ],
    ),
    "html definitions": (
        "html",
        HTML_DEFINITIONS,
        ["POST /rides Order a cab", "pickup!", "pickup.lat", "> ride", "> ride.eta", "no_cab"],
    ),
}
"""Suffix, page and expected lines by layout."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_is_read(layout: str, tmp_path: Path) -> None:
    suffix, text, expected = LAYOUTS[layout]
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected


def test_code_of_a_client_is_no_call(tmp_path: Path) -> None:
    text = """# Client

```js
client.request({ path: '/status', method: 'GET' });
  path: '/status',
  method: 'GET',
```

## Parameters

| Name | Type |
| --- | --- |
| path | string |
"""
    assert read_lines(text, tmp_path / "page.mdx") == []


def test_empty_heading_names_no_call(tmp_path: Path) -> None:
    text = """# Kites

##

Kites of the club.

## All calls

```
GET /kites
POST /kites
```

| Parameter | Type |
| --- | --- |
| colour | string |
"""
    without_heading = text.replace("##\n\n", "", 1)
    lines = read_lines(without_heading, tmp_path / "a.md")
    assert len(lines) == 4
    assert read_lines(text, tmp_path / "b.md") == lines


def test_all_rows_of_a_single_column_without_a_title_are_parameters(tmp_path: Path) -> None:
    text = """# Add a berth

`POST /berths`

## Request parameters

| |
| --- |
| `name` (string, required): The name. |
| `depth` (integer): The depth. |
"""
    expected = ["POST /berths Add a berth", "name!", "depth"]
    assert read_lines(text, tmp_path / "page.md") == expected


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
    assert {each.name: each.description for each in operation.request_parameters} == {
        "title": "The title; Max length: 20; Unique in a list.",
        "due": "The date; Required: one of two",
        "after": "Required: one of two",
    }
    (error,) = operation.error_codes
    assert (error.message, error.cause) == (
        "auth failed (HTTP 401)",
        "Not signed in; The key and the secret differ. Module: gateway",
    )


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
        (False, "稿件; 必要性: 必要(可选); 二选一"),
        (True, "视频"),
    ]
    assert operation.document("online", "docs", "zh").description == ""
