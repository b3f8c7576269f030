"""API pages in the layouts of common documentation tools become operations."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines

WIDDERSHINS = """## createPets

`POST /pets`

<h3 id="createpets-parameters">Parameters</h3>

|Name|In|Type|Required|Description|
|---|---|---|---|---|
|body|body|object|true|none|
|» name|body|string|true|The name|

<h3 id="createpets-responses">Responses</h3>

|Status|Meaning|Description|Schema|
|---|---|---|---|
|200|OK|A pet|[Pet](#schemapet)|
|404|Not Found|No such pet|[Error](#schemaerror)|

<h3 id="createpets-responseschema">Response Schema</h3>

Status Code **200**

|Name|Type|Required|Restrictions|Description|
|---|---|---|---|---|
|*anonymous*|object|false|none|none|
|» owner|object|false|none|none|
|»» id|string|true|none|none|
"""

OPENAPI_GENERATOR = """# PetApi

| Method | HTTP request | Description |
|---|---|---|
| [**addPet**](PetApi.md#addPet) | **POST** /pet | Add a pet |
| [**deletePet**](PetApi.md#deletePet) | **DELETE** /pet/{petId} | Delete a pet |

# **addPet**

| Name | Type | Description  | Notes |
|---|---|---|---|
| **name** | **String** | Its name | |

# **deletePet**

| Name | Type | Description  | Notes |
|---|---|---|---|
| **petId** | **Long** | The pet | |
| **key** | **String** | | [optional] |
"""

POSTMAN = """# Acme

## Create user

### Method: POST

>```
>{{baseUrl}}/users/:org
>```

### Query Params

|Param|value|
|---|---|
|dry_run|true|
"""

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

YAPI = """## 添加宠物

**Path：** /pet

**Method：** POST

### 请求参数

**Headers**

| 参数名称 | 是否必须 | 示例 |
| --- | --- | --- |
| X-App | 是 | a |
**Body**

<table><thead><tr><th>名称</th><th>类型</th><th>是否必须</th></tr></thead><tbody>
<tr><td><span style="padding-left: 0px">data</span></td><td>object</td><td>必须</td></tr>
<tr><td><span style="padding-left: 20px"><i>├─</i> a</span></td><td>object</td><td>非必须</td></tr>
<tr><td><span style="padding-left: 40px"><i>├─</i> b</span></td><td>string</td><td>必须</td></tr>
</tbody></table>
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

OPENAPI_GENERATOR_SINGLE = """# StoreApi

| Method | HTTP request | Description |
|---|---|---|
| [**getStock**](StoreApi.md#getStock) | **GET** /stock | Return the stock |

# **getStock**

| Name | Type | Description  | Notes |
|---|---|---|---|
| **depot** | **String** | Where | |
| **limit** | **Integer** | How many | [optional] |
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

DOCUSAURUS_OPENAPI = """<Heading as={"h1"} className={"openapi__heading"} children={"Create a rule"}></Heading>

<MethodEndpoint method={"post"} path={"/boats/{id}/rules"}></MethodEndpoint>

<Heading id={"request"} as={"h2"} children={"Request"}></Heading>

<details className={"openapi-markdown__details"} open={true}>
<summary><h3>Path Parameters</h3></summary>
<ul><ParamsItem param={{"name":"id","in":"path","required":true,"schema":{"type":"string"}}}></ParamsItem></ul>
</details>

<details className={"openapi-markdown__details mime"} open={true}>
<summary><h3>Body<strong>required</strong></h3></summary>
<ul style={{"marginLeft":"1rem"}}>

<SchemaItem collapsible={false} name={"above"} required={true} schemaName={"number"} schema={{"type":"number"}}>
</SchemaItem>

<SchemaItem collapsible={true} className={"schemaItem"}>
<details className={"openapi-markdown__details"}>
<summary><span><strong>send_to</strong><span>object</span><span>required</span></span></summary>
<div style={{"marginLeft":"1rem"}}>

<SchemaItem collapsible={false} name={"kind"} required={true} schemaName={"string"} schema={{"type":"string"}}>
</SchemaItem>

</div>
</details>
</SchemaItem>

</ul>
</details>

<ApiTabs>
<TabItem label={"201"} value={"201"}>

<details open={true}>
<summary><strong>Schema</strong></summary>

<SchemaItem collapsible={false} name={"rule_id"} required={true} schemaName={"string"} schema={{"type":"string"}}>
</SchemaItem>

</details>
</TabItem>
<TabItem label={"404"} value={"404"}>

No such boat

</TabItem>
</ApiTabs>
"""

SPRING_REST_DOCS = """# Boats

## Reading a boat

`GET /boats/{id}`

Table 1. Path parameters

| Parameter | Description |
| --- | --- |
| `id` | The boat |

Table 2. Response fields

| Path | Type | Description |
| --- | --- | --- |
| `_id` | `String` | The boat |
| `[].crew` | `Array` | The crew |

Errors: `boat_sunk` (410), `boat_not_found` (404).

| **Method** | GET |
| --- | --- |
| **Auth** | OAuth2, scope `boats.read` |
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

STYLES = {
    "widdershins": (WIDDERSHINS, ["POST /pets createPets", "name!", "> owner", "> owner.id!", "404"]),
    "openapi-generator": (
        OPENAPI_GENERATOR,
        ["POST /pet addPet", "name", "DELETE /pet/{petId} deletePet", "petId!", "key"],
    ),
    "openapi-generator, one operation": (
        OPENAPI_GENERATOR_SINGLE,
        ["GET /stock StoreApi", "depot!", "limit"],
    ),
    "required next to the type": (
        REQUIRED_NEXT_TO_THE_TYPE,
        ["POST /boards Create a board", "name!", "colour", "GET /boards List boards", "limit", "team!"],
    ),
    "permissions in rows": (
        PERMISSIONS_IN_ROWS,
        ["POST /boards/{id}/archive Archive board", "id!", "BoardNotFound", "409", "board_archive"],
    ),
    "postman": (POSTMAN, ["POST /users/:org Create user", "org!", "dry_run"]),
    "one column": (ONE_COLUMN, ["GET /repos/{owner}/issues List issues", "owner!", "state", "404"]),
    "yapi": (YAPI, ["POST /pet 添加宠物", "X-App!", "data!", "data.a", "data.a.b!"]),
    "labels above labels": (
        LABELS_ABOVE_LABELS,
        ["POST https://api.acme.example/in 入库", "orderNo!", "> errcode", "wms.in.write"],
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
    "components": (COMPONENTS, ["PATCH /contacts Update contact", "email!", "404"]),
    "docusaurus openapi": (
        DOCUSAURUS_OPENAPI,
        ["POST /boats/{id}/rules Create a rule", "id!", "above!", "send_to!", "send_to.kind!", "> rule_id!", "404"],
    ),
    "spring rest docs": (
        SPRING_REST_DOCS,
        ["GET /boats/{id} Reading a boat", "id!", "> _id", "> crew", "boat_sunk", "boat_not_found", "boats.read"],
    ),
    "enumerated values": (
        ENUMERATED_VALUES,
        ["GET https://{region}.acme.example/boats listBoats", "area!", "fleet", "404", "503", "BOAT_READ"],
    ),
    "cardinality": (
        CARDINALITY,
        ["POST /trips/{kind} Start a trip", "kind!", "guests", "409", "boat_unknown", "trips:start"],
    ),
    "calls in a code block": (
        CALLS_IN_A_CODE_BLOCK,
        ["GET /boats Report boats", "port!", "POST /boats Report boats (POST)", "port!", "name!"],
    ),
    "html headed list": (
        HTML_HEADED_LIST,
        ["POST https://a.example/rates Get rates", "to_zip!", "parcel", "parcel.weight"],
    ),
    "html": (HTML_LISTS, ["GET https://a.example/pets/{id} Get pet", "id!", "> owner", "> owner.id"]),
}  # fmt: skip
"""Page and expected lines by style. `!` marks required parameters and `>` those of the response."""


@pytest.mark.parametrize("style", STYLES)
def test_page_is_read(style: str, tmp_path: Path) -> None:
    text, expected = STYLES[style]
    suffix = "html" if style.startswith("html") else "mdx"
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected
