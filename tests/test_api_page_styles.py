"""API pages in the layouts of writers become operations."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines

ONE_COLUMN = """## List issues

```
GET /repos/{owner}/issues
```

#### Path parameters

| Name, Type, Description |
| --- |
| `owner` string **Required** The account. |

#### Query parameters

| Name, Type, Description |
| --- |
| `state` string Can be `open`. |

### HTTP response status codes

| Status code | Reason |
| --- | --- |
| `200` | OK |
| `404` | Not found |
"""

LABELS_ABOVE_LABELS = """# 入库

**请求方式：** POST（**HTTPS**）
**请求地址：** https://api.acme.example/in?access_token=TOKEN

**参数说明：**

| 含义 | 类型(长度) | 必填 | 参数 |
| --- | --- | --- | --- |
| 单号 | String(32) | 是 | orderNo |

**权限说明：**

应用须拥有「入库」权限包（`wms.in.write`）。

**返回结果：**

```json
{"errcode": 0}
```

**参数说明：**

| 含义 | 类型 | 参数 |
| --- | --- | --- |
| 返回码 | Number | errcode |
"""

BILINGUAL = """# 下单 Create

- 请求URL Endpoint：`https://api.acme.example/v3/pay`
- 请求方式 Method：`POST`
- 所需权限：pay_write、pay_read

## 请求参数 Request Parameters

|字段名 Field|变量名 Variable|类型[长度] Type|必填 Required|
|:--|:--|:--|:--|
|商户号 Merchant ID|mch_id|string[1,32]|是 Y|
|商品 Item|item|object|否 N|
|&emsp;编码 ID|&emsp;id|string|是 Y|

## 错误码 Error Codes

|状态码 HTTP|错误码 Code|描述 Description|
|:--|:--|:--|
|400|PARAM_ERROR|参数错误|
"""

JSX = """# Rates

## Get rates

<Endpoint method="post" path="/v1/rates" />

Returns rates. **OAuth scopes required:** `rates:read`. Pass `currency` to convert.

#### Body

| Field | Type | Description |
| :-- | :-- | :-- |
| `id` <Required /> | `string` | <ul><li>`a`</li></ul> |
| `currency` <Badge text="beta" /> | `string` | Optional. |

#### Errors

| Status | Reason |
| --- | --- |
| 410 | Too late. |
"""

PARAGRAPHS = """# post method

```
POST https://acme.example/api/post
```

## Required arguments

**`token`**`string`

The token.

## Optional arguments

**`as_user`**`boolean`Optional

## Errors

| Error | Description |
| --- | --- |
| `not_found` | No channel. |
"""

HTML_LISTS = """<html><body><h1>Get pet</h1><p><span>get</span> <span>https://a.example/pets/{id}</span></p>
<h2>Path Params</h2><dl><dt><code>id</code> <i>string</i> <em>required</em></dt><dd>The pet.</dd></dl>
<h2>Response</h2><table><tr><th>Property</th><th>Type</th></tr>
<tr><td><code>owner</code></td><td>object</td></tr>
<tr><td>&nbsp;&nbsp;<code>id</code></td><td>string</td></tr></table></body></html>"""

HTML_HEADED_LIST = """<html><body><h1>Get rates</h1><p>POST <code>https://a.example/rates</code></p>
<h2>Body parameters</h2><ul>
<li><h4><span>to_zip</span> <span>string</span> <span class="badge">Required</span></h4><p>Goal.</p></li>
<li><h4><span>parcel</span> <span>object</span></h4><p>What.</p>
<ul><li><h4><span>weight</span> <span>integer</span></h4><p>Grams.</p></li></ul></li></ul></body></html>"""

COMPONENTS = """# Update contact

`PATCH /contacts`

## Body

<Steps>
  <Step title="Fields">
    | Field | Type | Required |
    | --- | --- | --- |
    | `email` | string | yes |
  </Step>
</Steps>

## Return values

| Return value | Description |
| --- | --- |
| 200 OK | Done. |
| 404 Not Found | No such contact. |
"""

REQUIRED_NEXT_TO_THE_TYPE = """# Boards

## `POST /boards`

Create a board.

### Body

| Name | Type |
| --- | --- |
| name | string, required |
| colour? | string |

## `GET /boards`

List boards.

### Query

- `limit` integer: How many.
- `team` required string: Whose.
"""

PERMISSIONS_IN_ROWS = """# Archive board

`POST /boards/{id}/archive`

## Required permissions

| Name | Description |
| --- | --- |
| board_archive | Archive boards |

## Errors

- 404 BoardNotFound: No such board.
- 409 Conflict: It is archived already.
"""

ENUMERATED_VALUES = """## listBoats

<MethodBadge method="GET" /> <code>https://{'{region}'}.acme.example/boats</code>

Lists boats. Privilege: `BOAT_READ`.

### Parameters

| Name | In | Type | Required | Description |
| --- | --- | --- | --- | --- |
| area | query | string | true | Where |
| ~~fleet~~ | query | string | false | Ignored |

#### Enumerated Values

| Parameter | Value |
| --- | --- |
| area | north |

### Responses

<details><summary>200 — OK</summary></details>

<details><summary>404 — No such area</summary></details>

<details><summary>503 — Try again</summary></details>
"""

CARDINALITY = """# Boats

## Start a trip

| Property | Value |
| --- | --- |
| Resource | `POST /trips/{kind}` |
| OAuth scope | `trips:start` |

### Request

| # | Description | Occ. | Loc. | Type | Attribute |
| --: | --- | :-: | :-: | --- | --- |
| 1 | Kind of trip | 1..1 | P | Code | kind |
| 2 | Passengers | 0..n | B | Text | guests |

| Status code | Description |
| --- | --- |
| `201` | Started |
| `409` | The boat is out |

### Errors

| HTTP | Type | When |
| --- | --- | --- |
| 404 | `boat_unknown` | No such boat |
"""

FAULTS = """## Report a trip

`PUT /trips/{id}`

### Request

| Type | Element | Presence |
| --- | --- | --- |
| string | id | mandatory |
| date | end | conditional |

### Faults

| HTTP | Meaning | Fault |
| --- | --- | --- |
| 409 | The boat is out | `STILL_OUT` |
| 409 | Reported before | `REPEATED` |
"""

CALLS_IN_A_CODE_BLOCK = """# Report boats

```http
GET /boats
POST /boats
```

| Parameter | In | Type | Required |
| --- | --- | --- | --- |
| port | query | string | yes |
| name | body | string | yes |
"""

MARKS_AFTER_DESCRIPTIONS = """# Boats

## Fleet

### Paint a boat

`POST /boats/{id}/paint`

#### Query parameters

| Parameter | Description |
| --- | --- |
| `colour` | The colour (required). |
| `coats` | How many coats (optional) |

#### Response headers

| Name | Type |
| --- | --- |
| `ETag` | string |

### Wash a boat

`POST /boats/{id}/wash`

| Since | Description | Mult | Type | Parameter |
| --- | --- | --- | --- | --- |
| 2.0 | With soap | 1 | flag | `soap` |
| – | Brushes | 0..n | code | `brush` |
"""

COMPONENTS_FOR_SIDES = """# Boats

<Operation verb="post" server="https://acme.example/v2" path="/boats" requiredScope="boats:write" />

<Params for="body">
  <Param name="name" type="string" required>Its name.</Param>
</Params>

<Params for="response">
  <Param name="id" type="integer">The boat.</Param>
</Params>

<Problems>
  <Problem status={409} code="name_taken">Another boat has the name.</Problem>
  <Problem status="503" description="Try again" />
</Problems>
"""

LABELS_BELOW_ENDPOINT = """# 出航 Sail <Badge text="beta" />

## 接口信息 Endpoint

- **请求地址 URL**：`https://acme.example/sail`
- **请求方式 Method**：`POST`
- **Role**: `captain` or `mate`

## Body

| 参数 Parameter | 类型 Type | 必填 Required |
| --- | --- | --- |
| port | String | 是 Yes |

## Query results

<Errors>
  <Err code="too_late">The boat has left.</Err>
  <Err code="storm" />
</Errors>
"""

STYLES = {
    "one column": (ONE_COLUMN, ["GET /repos/{owner}/issues List issues", "owner!", "state", "404"]),
    "labels above labels": (
        LABELS_ABOVE_LABELS,
        ["POST https://api.acme.example/in 入库", "orderNo!", "access_token", "> errcode", "wms.in.write"],
    ),
    "bilingual": (
        BILINGUAL,
        ["POST https://api.acme.example/v3/pay 下单 Create", "mch_id!", "item", "item.id!",
         "PARAM_ERROR", "pay_write", "pay_read"],
    ),
    "jsx": (JSX, ["POST /v1/rates Get rates", "id!", "currency", "410", "rates:read"]),
    "paragraphs": (
        PARAGRAPHS,
        ["POST https://acme.example/api/post post method", "token!", "as_user", "not_found"],
    ),
    "html": (HTML_LISTS, ["GET https://a.example/pets/{id} Get pet", "id!", "> owner", "> owner.id"]),
    "html headed list": (
        HTML_HEADED_LIST,
        ["POST https://a.example/rates Get rates", "to_zip!", "parcel", "parcel.weight"],
    ),
    "components": (COMPONENTS, ["PATCH /contacts Update contact", "email!", "404"]),
    "required next to the type": (
        REQUIRED_NEXT_TO_THE_TYPE,
        ["POST /boards Create a board", "name!", "colour", "GET /boards List boards", "limit", "team!"],
    ),
    "permissions in rows": (
        PERMISSIONS_IN_ROWS,
        ["POST /boards/{id}/archive Archive board", "id!", "BoardNotFound", "409", "board_archive"],
    ),
    "enumerated values": (
        ENUMERATED_VALUES,
        ["GET https://{region}.acme.example/boats listBoats", "area!", "fleet", "404", "503", "BOAT_READ"],
    ),
    "cardinality": (
        CARDINALITY,
        ["POST /trips/{kind} Start a trip", "kind!", "guests", "409", "boat_unknown", "trips:start"],
    ),
    "faults": (FAULTS, ["PUT /trips/{id} Report a trip", "id!", "end", "STILL_OUT", "REPEATED"]),
    "calls in a code block": (
        CALLS_IN_A_CODE_BLOCK,
        ["GET /boats Report boats", "port!", "POST /boats Report boats (POST)", "port!", "name!"],
    ),
    "calls in a code block without a method with a body": (
        CALLS_IN_A_CODE_BLOCK.replace("POST", "DELETE"),
        ["GET /boats Report boats", "port!", "name!",
         "DELETE /boats Report boats (DELETE)", "port!", "name!"],
    ),
    "marks after descriptions": (
        MARKS_AFTER_DESCRIPTIONS,
        ["POST /boats/{id}/paint Paint a boat", "id!", "colour!", "coats", "> ETag",
         "POST /boats/{id}/wash Wash a boat", "id!", "soap!", "brush"],
    ),
    "labels below endpoint": (
        LABELS_BELOW_ENDPOINT,
        ["POST https://acme.example/sail 出航 Sail", "port!", "too_late", "storm", "captain", "mate"],
    ),
    "components for sides": (
        COMPONENTS_FOR_SIDES,
        ["POST https://acme.example/v2/boats Boats", "name!", "> id", "name_taken", "503", "boats:write"],
    ),
}  # fmt: skip
"""Page and expected lines by style. `!` marks required parameters and `>` those of the response."""


@pytest.mark.parametrize("style", STYLES)
def test_page_is_read(style: str, tmp_path: Path) -> None:
    text, expected = STYLES[style]
    suffix = "html" if style.startswith("html") else "mdx"
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected
