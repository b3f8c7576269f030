"""What API pages say in descriptions: required sentences, nested lists, definitions and examples."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.parameters import listed_parameters
from ingestion.sources.api_pages.required import required_mark
from ingestion.text.components import objects_of
from tests.api_page_lines import read_lines, read_operations

SENTENCES_AFTER_DESCRIPTIONS = """# Kilns

## Fire a kiln

```
POST /v1/kilns/{kiln}/firings
```

Any key with `firings.start` scope will do.

| Parameter | Description |
| --- | --- |
| kiln | Number of the kiln. Required. |
| cone | Heat to reach. Required, 1 to 12. |
| soak | Minutes at the top. Optional (10 by default). |
| glaze | Name of the glaze, optional |

### Result

| Code | Description |
| --- | --- |
| 200 | Started |
| 409 | The kiln is hot |
"""

DEFINED_FACTS = """# kilns.fire

**Endpoint**
: `POST https://clay.example/api/kilns.fire`

Scopes
: Robot: `kilns:write`
: Person: `kilns:write`, `kilns:write.own`

## Arguments

### Required arguments

**`kiln`** `string`

Number of the kiln.

**`steps`** `array`

Each step has:

- `heat` `integer` – Heat
- `hold` `integer` · *Optional* – Minutes

**`cone`** `integer` · *Optional*

Heat to reach

### Optional arguments

**`glaze`** · `string`
"""

FIELDS_IN_COMPONENTS = """# Shelves

<Heading url='/v1/shelves' method='POST' title='Add a shelf' />
<Row>
  <Col>

    ### Request Body

    <Properties>
      <Property name='room' type='object'>
        (Required) Where it stands
        - `house` (string) (Required) House
        - `floor` (object) (Optional) Floor
          - `number` (int) (Required) Number
      </Property>
      <Property name='wood' type='string'>
        (Optional) One of
        - `oak` (default)
        - `ash`
      </Property>
    </Properties>

    ### Errors
    - 400, `bad_room`, the room does not exist
    - 409, `too_heavy`, the shelf is too heavy

  </Col>
</Row>
"""

FIELDS_IN_CELLS = """<main><h1>Shelf</h1><p><code>PUT /v1/shelves/{id}</code></p>
<p>The caller must have the <b>shelf:change</b> permission.</p>
<h2>Body parameters</h2>
<table><tr><th>Name</th><th>Type</th><th>Required</th><th>Description</th></tr>
<tr><td>id</td><td>string</td><td>Yes</td><td>The shelf</td></tr>
<tr><td>room</td><td>object</td><td>No</td><td>The room:
<ul><li><code>house</code> (string): House</li><li><code>floor</code> (integer, required): Floor</li></ul></td></tr>
<tr><td>wood</td><td>string</td><td>No</td><td>One of:
<ul><li><code>oak</code> (hard)</li><li><code>ash</code> (soft)</li></ul></td></tr>
</table></main>
"""

EXAMPLES_WITH_VALUES = """# Lend a loom

## Example requests

```
POST https://{host}/v2/guilds/g1/looms

{
  "size": 3
}
```

## URI

POST /v2/guilds/{guild}/looms

| Name | Type | Mandatory |
| --- | --- | --- |
| size | integer | Yes |

**Example**

```
POST https://{host}/v2/guilds/g2/looms
```
"""

LABELS_ABOVE_PARAGRAPHS = """# 借出织机

**请求方式：** POST /v3/looms/lend

**Header 头参数**

**Authorization**  必填  string

签名

**Body 包体参数**

**loom_no**  必填  string(32)

【编号】返回的编号

**days**  选填  integer

天数

**应答参数**

**lend_id**  必填  string(64)

单号
"""

NAMES_AND_TYPES = """# Lend a loom

**post** `/v2/looms`

### Body Parameters

- `size: number`

  Its size.

- `guild?: object { name }`

  - `name: string`

### Returns

- `id`: The loan
- `due`: Last day

### 422

- **reason** string – What is wrong
"""

TABLE_WITHOUT_TITLES = """# Lend a loom

`POST /v2/looms`

### Permissions

| App | Supported | Permission |
| --- | --- | --- |
| Internal | yes | Lend `Loom.Lend` |

### Request Body

| | |
| --- | --- |
| **size** *required* | integer. Its size. |
| guild.**name** | string. Its guild. |
"""

LISTS_OF_OBJECTS = """# Looms

<Endpoint
  method="POST"
  path="/v2/looms"
  body={[
    { name: 'size', type: 'int', required: true, description: "Don't guess { it }" },
    { name: 'guild', type: 'object', required: false, fields: [
      { name: 'town', type: 'string', required: true, description: <>See <b>towns</b></> },
    ] },
  ]}
  response={[{ name: 'id', type: 'string' }]}
/>

<ErrorTable rows={[
  { errorCode: 'no_loom', httpStatus: 404, text: 'No | loom' },
]} />

<Chart data={[{ x: 1, y: 2 }]} />

| Field | Type |
| --- | --- |
| note <Optional /> | string |
"""

PAGES = {
    "sentences after descriptions": (
        "md",
        SENTENCES_AFTER_DESCRIPTIONS,
        ["POST /v1/kilns/{kiln}/firings Fire a kiln", "kiln!", "cone!", "soak", "glaze", "409", "firings.start"],
    ),
    "defined facts": (
        "md",
        DEFINED_FACTS,
        ["POST https://clay.example/api/kilns.fire kilns.fire", "kiln!", "steps!", "steps.heat", "steps.hold",
         "cone", "glaze", "kilns:write", "kilns:write.own"],
    ),
    "fields in components": (
        "mdx",
        FIELDS_IN_COMPONENTS,
        ["POST /v1/shelves Shelves", "room!", "room.house!", "room.floor", "room.floor.number!", "wood",
         "bad_room", "too_heavy"],
    ),
    "fields in cells": (
        "html",
        FIELDS_IN_CELLS,
        ["PUT /v1/shelves/{id} Shelf", "id!", "room", "room.house", "room.floor!", "wood", "shelf:change"],
    ),
    "examples with values": (
        "md",
        EXAMPLES_WITH_VALUES,
        ["POST /v2/guilds/{guild}/looms Lend a loom", "guild!", "size!"],
    ),
    "labels above paragraphs": (
        "md",
        LABELS_ABOVE_PARAGRAPHS,
        ["POST /v3/looms/lend 借出织机", "Authorization!", "loom_no!", "days", "> lend_id!"],
    ),
    "names and types": (
        "md",
        NAMES_AND_TYPES,
        ["POST /v2/looms Lend a loom", "size", "guild", "guild.name", "> id", "> due", "422"],
    ),
    "table without titles": (
        "md",
        TABLE_WITHOUT_TITLES,
        ["POST /v2/looms Lend a loom", "size!", "guild.name", "Loom.Lend"],
    ),
    "lists of objects": (
        "mdx",
        LISTS_OF_OBJECTS,
        ["POST /v2/looms Looms", "size!", "guild", "guild.town!", "note", "> id", "no_loom"],
    ),
}  # fmt: skip
"""Suffix, page and expected lines by what the descriptions say."""


@pytest.mark.parametrize("name", PAGES)
def test_description_is_read(name: str, tmp_path: Path) -> None:
    suffix, text, expected = PAGES[name]
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Its size. Required.", True),
        ("Its size. Optional, at most 9.", False),
        ("编号。选填", False),
        ("编号，必填", True),
        ("Its size; mandatory", True),
        ("Its size. Required if it is lent.", None),
        ("Its size. Required, unless it is lent.", None),
        ("A flag that says whether a size is required", None),
        ("Its size (optional, default: 4, at most 9)", False),
        ("编号（必填，最长 9）", True),
        ("Its size (required, if it is lent)", None),
    ],
)
def test_mark_is_a_sentence_or_at_the_end(description: str, expected: bool | None) -> None:
    assert required_mark(description) is expected


def test_example_of_another_operation_stays(tmp_path: Path) -> None:
    wheel = "\n## Example\n\n```\nPOST https://{host}/v2/guilds/g2/wheels\n```\n"
    operations = read_operations(EXAMPLES_WITH_VALUES + wheel, tmp_path / "page.md")
    assert [each.url for each in operations] == [
        "/v2/guilds/{guild}/looms",
        "https://{host}/v2/guilds/g2/wheels",
    ]


def test_list_of_values_has_no_fields() -> None:
    assert listed_parameters("- `UP`: first\n- `DOWN`: last") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[{ a: 1, b: [{ c: 2 }] }, { a: 'x, y' },]", [{"a": "1", "b": "[{ c: 2 }]"}, {"a": "'x, y'"}]),
        ("[1, 2]", []),
        ("{ a: 1 }", []),
        ("[", []),
    ],
)  # fmt: skip
def test_objects_of_a_list_are_separated(text: str, expected: list[dict[str, str]]) -> None:
    assert objects_of(text) == expected
