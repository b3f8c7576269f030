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


def test_deprecated_field_has_the_remark_of_a_deprecated_parameter(tmp_path: Path) -> None:
    page = (
        "# Book a berth\n\n`POST /v1/stays`\n\n"
        '<ParamField body="coupon" type="string" deprecated>Use `discount`.</ParamField>\n'
        '<ParamField body="优惠" type="string" deprecated>请使用 `discount`。</ParamField>\n'
        '<ParamField body="note" type="string" deprecated={false}>A note.</ParamField>\n'
        '<ParamField body="mark" type="string" deprecated />\n'
    )
    (operation,) = read_operations(page, tmp_path / "page.mdx")
    assert [parameter.description for parameter in operation.request_parameters] == [
        "(Deprecated.) Use `discount`.",
        "（已废弃）请使用 `discount`。",
        "A note.",
        "(Deprecated.)",
    ]


DEVICES = """# Devices

## Account

Reads the account.

The API is:

```
GET /v1/account
```

## Gates

### How gates work

They open.

### List gates

The API is:

```
GET /v1/gates
```

### Create a gate

Its number is unique.

The API is:

```
POST /v1/gates
```

and:

```
PUT /v1/gates/{id}
```

### Query by name

```
GET /v1/gates/named/{name}
```

## Errors

| Code | Cause |
| --- | --- |
| 7001 | no key |

```
GET /v1/gates/named/none
```
"""


def test_heading_next_to_that_of_the_call_before_begins_an_operation(tmp_path: Path) -> None:
    operations = read_operations(DEVICES, tmp_path / "page.md")
    assert [operation.name for operation in operations] == [
        "Account",
        "List gates",
        "Create a gate",
        "Devices PUT /v1/gates/{id}",
        "Query by name",
    ]
    texts = ["\n".join(block.text for block in operation.prose) for operation in operations]
    assert [i for i, text in enumerate(texts) if "unique" in text] == [2]
    assert operations[2].anchor == "create-a-gate"


MIXED_LEVELS = """# Boats

## List boats

`GET /v1/boats`

### Parameters

- `size` (integer): the size

### Response

- `boats` (array): the boats

## Storms

No boat sails in a storm.

## Sails

### List sails

`GET /v1/sails`

### Create a sail

`POST /v1/sails`

### Parameters

- `color` (string, required): the color
"""


def test_levels_of_parameters_and_operations_may_be_mixed_in_one_chapter(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    assert read_lines(MIXED_LEVELS, path) == [
        "GET /v1/boats List boats",
        "size",
        "> boats",
        "GET /v1/sails List sails",
        "POST /v1/sails Create a sail",
        "color!",
    ]
    prose = [block.text for each in read_operations(MIXED_LEVELS, path) for block in each.prose]
    assert "No boat sails in a storm." not in prose


MISPLACED_PART = """# Kites

## Read a kite

`GET /kites/{kite}`

### Parameters

- `colours` (boolean): Whether to return its colours.

### Sample Response

```json
{"kite": "k1"}
```

## Fly a kite

`POST /kites/{kite}/fly`

### Parameters

- `height` (integer): The height.

## List kites

`GET /kites`

## Parameters

- `beach` (string): The beach.
"""


def test_part_of_an_operation_may_have_the_level_of_the_operation(tmp_path: Path) -> None:
    assert read_lines(MISPLACED_PART, tmp_path / "page.md") == [
        "GET /kites/{kite} Read a kite",
        "kite!",
        "colours",
        "POST /kites/{kite}/fly Fly a kite",
        "kite!",
        "height",
        "GET /kites List kites",
        "beach",
    ]
