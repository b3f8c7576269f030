"""API pages in the layouts of documentation generators become operations."""

from pathlib import Path

import pytest

from ingestion.sources.page_components import convert_lists_to_tables, replace_gitbook_tags
from tests.api_page_lines import read_lines, read_operations

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

GITBOOK_SWAGGER = """# Boats

{% hint style="info" %}
Boats are listed by port.
{% endhint %}

{% swagger method="post" path="/boats" baseUrl="https://acme.example/v1/" summary="Add a boat" %}
{% swagger-description %}
Registers a boat.
{% endswagger-description %}

{% swagger-parameter in="header" name="X-Key" type="String" required="true" %}
The key
{% endswagger-parameter %}

{% swagger-parameter in="body" name="crew.size" type="Number" required="false" %}
How many
{% endswagger-parameter %}

{% swagger-response status="201: Created" description="" %}
```json
{ "id": 1 }
```
{% endswagger-response %}

{% swagger-response status="409: Conflict" description="The name is taken" %}
{% endswagger-response %}
{% endswagger %}

{% swagger method="get" path="" baseUrl="https://acme.example/v1/ports" summary="List ports" %}
{% swagger-parameter in="query" name="near" required="true" %}
Where
{% endswagger-parameter %}
{% endswagger %}
"""

GITBOOK_METHODS = """# Boats

## Fleet

{% api-method method="put" host="https://acme.example" path="/boats/:id" %}
{% api-method-summary %}
Rename a boat
{% endapi-method-summary %}

{% api-method-spec %}
{% api-method-request %}
{% api-method-body-parameters %}
{% api-method-parameter name="new\\_name" type="string" required=true %}
Its name
{% endapi-method-parameter %}
{% endapi-method-body-parameters %}
{% endapi-method-request %}

{% api-method-response %}
{% api-method-response-example httpCode=404 %}
{% api-method-response-example-description %}
No such boat.
{% endapi-method-response-example-description %}
{% endapi-method-response-example %}
{% endapi-method-response %}
{% endapi-method-spec %}
{% endapi-method %}
"""

GITBOOK_BLOCKS = """# Boats

## Sink a boat

<mark style="color:red;">`DELETE`</mark> `/boats/{boatId}`

**Body**

| Name | Type | Description |
| --- | --- | --- |
| depth<mark style="color:red;">\\*</mark> | number | How deep |

{% tabs %}
{% tab title="204: No Content" %}

{% endtab %}

{% tab title="410: Gone It has sunk before" %}
```json
{ "error": "sunk" }
```
{% endtab %}
{% endtabs %}
"""

HTTP_SIGNATURE = """<dt class="sig sig-object http"><span class="sig-name"><span class="pre">PUT</span> </span>
<span class="sig-name">/boats/</span><span class="sig-paren">(</span><span class="property">int:</span>
<em class="sig-param">boat_id</em><span class="sig-paren">)</span><span class="sig-name">/crew/</span>
<span class="sig-paren">(</span><em class="sig-param">name</em><span class="sig-paren">)</span>
<a class="headerlink" href="#put">¶</a></dt>"""

HTTPDOMAIN = f"""<html><body><div role="main"><h1>Boats</h1><h2>Hire a sailor</h2>
<dl class="http put">{HTTP_SIGNATURE}<dd><p>Hires.</p>
<p><strong>Example response</strong>:</p><div class="highlight-http"><pre>HTTP/1.1 201 Created</pre></div>
<dl class="field-list simple"><dt>Parameters<span class="colon">:</span></dt>
<dd><ul><li><p><strong>boat_id</strong> (<em>int</em>) – the boat</p></li><li><p><strong>name</strong> – who</p></li></ul></dd>
<dt>Request Headers<span class="colon">:</span></dt>
<dd><ul><li><p><span><a href="https://rfc.example/5">Accept</a></span> – JSON (required)</p></li></ul></dd>
<dt>Request JSON Object:</dt>
<dd><ul><li><p><strong>pay</strong> (<em>object</em>) – per day (required)</p></li>
<li><p><strong>pay.sum</strong> (<em>int</em>) – in cents (optional)</p></li></ul></dd>
<dt>Response Headers:</dt><dd><ul><li><p><span><a href="https://rfc.example/7">ETag</a></span> – version</p></li></ul></dd>
<dt>Response JSON Object:</dt><dd><ul><li><p><strong>rank</strong> (<em>string</em>) – rank</p></li></ul></dd>
<dt>Status Codes:</dt><dd><ul><li><p><a href="https://rfc.example/6">201 Created</a> – hired</p></li>
<li><p><a href="https://rfc.example/6">409 Conflict</a> – hired before</p></li></ul></dd></dl></dd></dl>
</div></body></html>"""

HTTPDOMAIN_TABLE = """<html><body><div role="main"><h1>Boats</h1>
<dl class="get"><dt id="get--boats"><code class="descname">GET </code><code class="descname">/boats/</code>
<span class="sig-paren">(</span><em>id</em><span class="sig-paren">)</span></dt><dd>
<table class="docutils field-list"><col class="field-name" /><col class="field-body" /><tbody>
<tr class="field"><th class="field-name">Query Parameters:</th><td class="field-body"><ul>
<li><strong>port</strong> – where</li><li><strong>limit</strong> – how many</li></ul></td></tr></tbody></table>
</dd></dl></div></body></html>"""

FUMADOCS = """---
title: Moor a boat
---

<Endpoint method="PUT" path="/boats/:boatId/berth" />

## Body

<TypeTable
\ttype={{
\t\t...shared,
\t\t// The harbour's number: not its name
\t\tberth: {
\t\t\tdescription: (
\t\t\t\t<>
\t\t\t\t\tFrom <a href="/ports">ports</a>,{' '}
\t\t\t\t\tdon't invent it
\t\t\t\t</>
\t\t\t),
\t\t\ttype: 'number',
\t\t\trequired: true,
\t\t},
\t\t'crew.size': { description: ("Don't count guests: " + 'never'), type: '"few" | "many"', default: 2 },
\t\tnight: { type: 'boolean', required: false },
\t}}
/>

## Response

<TypeTable type={{ fee: { type: 'number', description: <>Cents, net</> } }}></TypeTable>

## Props of the component

<Chart options={{ width: 3, height: { type: 'px' } }} />
"""

SLATE = """# Boats

## Hire a Boat

> The above command returns JSON structured like this:

```json
{ "id": 1 }
```

### HTTP Request

`POST https://acme.example/boats/<boat_id>/hires`

### Body Parameters

Parameter | Type | Required | Description
--------- | ---- | -------- | -----------
port | object | yes | Where
crew | array | no | Who
days | array of strings | no | When

#### port

Parameter | Type | Required | Description
--------- | ---- | -------- | -----------
code | string | yes | Code

#### crew

Parameter | Type | Required | Description
--------- | ---- | -------- | -----------
name | string | yes | Name

### Response Attributes

Attribute | Type | Description
--------- | ---- | -----------
fees | Array | Fees

#### fees

Attribute | Type | Description
--------- | ---- | -----------
sum | integer | Cents
"""

STYLES = {
    "widdershins": (WIDDERSHINS, ["POST /pets createPets", "name!", "> owner", "> owner.id!", "404"]),
    "openapi-generator": (
        OPENAPI_GENERATOR,
        ["POST /pet addPet", "name", "DELETE /pet/{petId} deletePet", "petId!", "key"],
    ),
    "postman": (POSTMAN, ["POST /users/:org Create user", "org!", "dry_run"]),
    "yapi": (YAPI, ["POST /pet 添加宠物", "X-App!", "data!", "data.a", "data.a.b!"]),
    "openapi-generator, one operation": (
        OPENAPI_GENERATOR_SINGLE,
        ["GET /stock StoreApi", "depot!", "limit"],
    ),
    "docusaurus openapi": (
        DOCUSAURUS_OPENAPI,
        ["POST /boats/{id}/rules Create a rule", "id!", "above!", "send_to!", "send_to.kind!", "> rule_id!", "404"],
    ),
    "spring rest docs": (
        SPRING_REST_DOCS,
        ["GET /boats/{id} Reading a boat", "id!", "> _id", "> crew", "boat_sunk", "boat_not_found", "boats.read"],
    ),
    "gitbook swagger": (
        GITBOOK_SWAGGER,
        ["POST https://acme.example/v1/boats Add a boat", "X-Key!", "crew.size", "409",
         "GET https://acme.example/v1/ports List ports", "near!"],
    ),
    "gitbook api-method": (
        GITBOOK_METHODS,
        ["PUT https://acme.example/boats/:id Rename a boat", "id!", "new_name!", "404"],
    ),
    "gitbook blocks": (
        GITBOOK_BLOCKS,
        ["DELETE /boats/{boatId} Sink a boat", "boatId!", "depth!", "410"],
    ),
    "html sphinx": (
        HTTPDOMAIN,
        ["PUT /boats/{boat_id}/crew/{name} Hire a sailor", "Accept!", "boat_id!", "name!", "pay!", "pay.sum",
         "> ETag", "> rank", "409"],
    ),
    "fumadocs": (
        FUMADOCS,
        ["PUT /boats/:boatId/berth Moor a boat", "boatId!", "berth!", "crew.size", "night", "> fee"],
    ),
    "slate": (
        SLATE,
        ["POST https://acme.example/boats/<boat_id>/hires Hire a Boat", "boat_id!", "port!", "port.code!", "crew",
         "crew.name!", "days", "> fees", "> fees.sum"],
    ),
    "html old sphinx": (HTTPDOMAIN_TABLE, ["GET /boats/{id} Boats", "id!", "port", "limit"]),
}  # fmt: skip
"""Page and expected lines by style. `!` marks required parameters and `>` those of the response."""


@pytest.mark.parametrize("style", STYLES)
def test_page_is_read(style: str, tmp_path: Path) -> None:
    text, expected = STYLES[style]
    suffix = "html" if style.startswith("html") else "mdx"
    assert read_lines(text, tmp_path / f"page.{suffix}") == expected


SYNOPSIS = (
    '<dl class="field-list simple"><dt>Synopsis<span>:</span></dt><dd><p>Hires.</p></dd></dl>'
)
SYNOPSIS_TABLE = """<table class="field-list"><tr><th class="field-name">synopsis:</th>
<td class="field-body">Hires.</td></tr></table>"""


@pytest.mark.parametrize("quote", ["{}", "<blockquote><div>{}</div></blockquote>"])
@pytest.mark.parametrize("synopsis", [SYNOPSIS, SYNOPSIS_TABLE])
def test_synopsis_of_an_operation_has_no_label(quote: str, synopsis: str, tmp_path: Path) -> None:
    page = HTTPDOMAIN.replace("<p>Hires.</p>", quote.format(f"{synopsis}<p>By day.</p>"))
    (operation,) = read_operations(page, tmp_path / "page.html")
    texts = [block.text for block in operation.prose if block.kind != "heading"]
    assert texts[1:3] == ["Hires.", "By day."]


def test_message_of_an_error_is_its_description(tmp_path: Path) -> None:
    operation, *_ = read_operations(GITBOOK_SWAGGER, tmp_path / "page.md")
    (error,) = operation.error_codes
    assert error.message == "Conflict – The name is taken"


def test_only_tags_of_gitbook_are_replaced() -> None:
    jekyll = "{% raw %}{{ x }}{% endraw %} and `{% hint %}`"
    assert replace_gitbook_tags(jekyll) == jekyll
    assert replace_gitbook_tags('{% code title="a" %}\nx\n{% endcode %}').strip() == "x"


def test_descriptions_of_an_object_with_fields_are_texts(tmp_path: Path) -> None:
    (operation,) = read_operations(FUMADOCS, tmp_path / "page.mdx")
    parameters = {each.name: each for each in operation.request_parameters}
    assert parameters["berth"].description == "From ports, don't invent it"
    assert parameters["crew.size"].description.startswith("Don't count guests: never")
    assert parameters["crew.size"].type == '"few" | "many"'
    assert operation.response_parameters[0].description == "Cents, net"


def test_object_whose_first_property_is_a_list_is_indented() -> None:
    fields = "[{ name: 'a', type: 'object', fields: [{ fields: [{ name: 'c' }], name: 'b' }] }]"
    table = convert_lists_to_tables(f"<Endpoint body={{{fields}}} />\n")
    names = [line.split("|")[1].rstrip() for line in table.splitlines() if line.endswith("|")]
    assert [len(name) - len(name.lstrip(" &nbsp;")) for name in names[2:]] == [1, 13, 25], table
