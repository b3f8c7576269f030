"""API pages in the layouts of single platforms and of export tools become operations."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines

SCHEMAS = """# List orders

<table><tbody><tr><td>HTTP Method</td><td>GET</td></tr><tr><td>HTTP URL</td><td>/orders</td></tr></tbody></table>

### Parameters

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| side | string | NO | Buy or sell |

## Response

### Response Status

| Status | Description | Schema |
| --- | --- | --- |
| 200 | Done | [orders_rsp](#schemaorders_rsp) |
| 400 | Wrong side | None |

## Schemas

### orders_rsp

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| has_more | boolean | true | Whether there are more orders |
| orders | object[] | false | The orders |
| ∟ order_id | string | true | Their ids |
"""

APIFOX = """# 默认

## POST 发布消息

POST /publish

> Body 请求参数

### 请求参数

|名称|位置|类型|必选|说明|
|---|---|---|---|---|
|body|body|object| 否 |none|
|» topic|body|string| 是 |主题|

## GET 查找物品

GET /items

### 请求参数

|名称|位置|类型|必选|说明|
|---|---|---|---|---|
|rfid|query|string| 否 |标签|
"""

METHOD_AND_SLASH = """# Berths

### POST / Reserve a berth

#### HTTP Request

`POST /v5/berths`

#### Request Parameters

| Parameter | Type | Required | Description |
| --- | --- | --- | --- |
| port | String | Yes | Its port |

### GET / Berths

#### HTTP Request

`GET /v5/berths`

#### Request Parameters

| Parameter | Type | Required | Description |
| --- | --- | --- | --- |
| limit | String | No | How many |
"""

CUSTOM_TABLES = """# 预订泊位

## 请求

:::html
<md-table>
  <md-thead><tr><md-th>基本</md-th><md-th></md-th></tr></md-thead>
  <md-tbody>
    <md-tr><md-th>HTTP URL</md-th><md-td>https://acme.example/berths</md-td></md-tr>
    <md-tr><md-th>HTTP Method</md-th><md-td>POST</md-td></md-tr>
    <md-tr><md-th>权限要求</md-th><md-td><md-perm name="berth:write" tags="">预订泊位</md-perm></md-td></md-tr>
  </md-tbody>
</md-table>
:::

### 请求体

|参数|类型|必须|说明|
|--|-----|--|----|
|boat||是|船|
|&ensp;∟boat_id|string|是|船的编号|
"""

LABEL_LINES = """# Reserve a berth

**Method**  \n`POST`

**Request URL**
```html
/api/berths
```

### **Parameters**

| Name | Location | Type | Required | Description |
| --- | --- | --- | --- | --- |
| **body** | body | object | Yes | The request |
| ├── `boat` | body | object | Yes | The boat |
| │ ├── `id` | body | string | Yes | Its id |
"""

NUMBERED_FENCES = """# 港口接口

### 1、获取港口

#### 请求URL:
```
https://acme.example/ports
```

#### 请求方式:
```
GET
```

#### 参数类型：query

|参数|是否必选|类型|说明|
|:-----|:-------:|:-----|:-----|
|city|Y|string|城市|
"""

NESTED_LISTS = """# 故障

* **Method：**`GET`
* **URL：**`https://acme.example/faults`
* **请求**
  * Query参数

    | 参数 | 类型 | 是否必填 | 描述 |
    | --- | --- | --- | --- |
    | device | str | true | 设备 |
* **响应**
  * 数据类型：application/json

    <table><thead><tr><th>参数</th><th>类型</th><th>是否必填</th><th>描述</th></tr></thead>
    <tbody><tr><td>total</td><td>int</td><td>true</td><td>总数</td></tr>
    <tr><td>list</td><td>[]deviceState</td><td>true</td><td>列表</td></tr></tbody></table>
  * deviceState

    | 参数 | 类型 | 是否必填 | 描述 |
    | --- | --- | --- | --- |
    | level | int | false | 级别 |
* 错误码

  | HTTP状态码 | 错误码 | 描述 |
  | --- | --- | --- |
  | 400 | 100001 | 参数格式错误 |
"""

SLATE_HEADS = """# Boats

## Boat properties

| Attribute | Type | Description |
| --------- | ---- | ----------- |
| `id` | integer | Its id |

## Create a boat

<div class="api-endpoint">
\t<div class="endpoint-data">
\t\t<i class="label label-post">POST</i>
\t\t<h6>/json/boats</h6>
\t</div>
</div>

| Parameter | Type | Description |
| --------- | ---- | ----------- |
| `port` | integer | The port. <i class="label label-info">required</i> |

## Delete a boat

<div class="api-endpoint">
\t<div class="endpoint-data">
\t\t<i class="label label-delete">DELETE</i>
\t\t<h6>/json/boats/{id}</h6>
\t</div>
</div>

| Parameter | Type | Description |
| --------- | ---- | ----------- |
| `force` | string | Whether to skip the bin |
"""

LAYOUTS = {
    "heads of Slate": (
        SLATE_HEADS,
        ["POST /json/boats Create a boat", "port!", "DELETE /json/boats/{id} Delete a boat", "id!", "force"],
    ),
    "nested lists": (
        NESTED_LISTS,
        ["GET https://acme.example/faults 故障", "device!", "> total!", "> list!", "> list.level", "100001"],
    ),
    "apifox": (APIFOX, ["POST /publish 发布消息", "topic!", "GET /items 查找物品", "rfid"]),
    "method and slash": (
        METHOD_AND_SLASH,
        ["POST /v5/berths Reserve a berth", "port!", "GET /v5/berths Berths", "limit"],
    ),
    "custom tables": (
        CUSTOM_TABLES,
        ["POST https://acme.example/berths 预订泊位", "boat!", "boat.boat_id!", "berth:write"],
    ),
    "lines of labels": (LABEL_LINES, ["POST /api/berths Reserve a berth", "boat!", "boat.id!"]),
    "numbered, with fences": (
        NUMBERED_FENCES, ["GET https://acme.example/ports 获取港口", "city!"],
    ),
    "schemas": (
        SCHEMAS,
        ["GET /orders List orders", "side", "> has_more!", "> orders", "> orders.order_id!", "400"],
    ),
}  # fmt: skip
"""Page and expected lines by layout. `!` marks required parameters and `>` those of the response."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_page_is_read(layout: str, tmp_path: Path) -> None:
    text, expected = LAYOUTS[layout]
    assert read_lines(text, tmp_path / "page.mdx") == expected
