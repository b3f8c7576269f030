"""Structures in tables of their own become children of the parameters that refer to them."""

from collections.abc import Iterator, Sequence

import pytest

from ingestion.sources.api_pages.page import read_operations
from ingestion.sources.api_pages.structures import Caption, caption_of
from ingestion.text.markdown_blocks import parse_blocks
from schemas.document import Parameter

CAPTIONS = r"""# 创建云服务器

## URI

POST /v1/servers

## 请求参数

**表 1**  请求Body参数

| 参数 | 是否必选 | 参数类型 | 描述 |
| --- | --- | --- | --- |
| server | 是 | [server](#table_server) object | 云服务器信息。 |
| hint | 否 | Object | 调度信息，请参见[表3](#table_hint)。 |
| name | 否 | String | 格式请参见表3。 |

**表 2**  server字段数据结构说明

| 参数 | 是否必选 | 参数类型 | 描述 |
| --- | --- | --- | --- |
| root\_volume | 是 | Array of objects | 系统盘，详见下方 root_volume。 |

**表 3**  调度信息

| 参数 | 是否必选 | 参数类型 | 描述 |
| --- | --- | --- | --- |
| group | 否 | String | 云服务器组。 |

**表 4**  root\_volume字段数据结构说明

| 参数 | 是否必选 | 参数类型 | 描述 |
| --- | --- | --- | --- |
| size | 是 | Integer | 大小。 |

## 响应参数

| 参数 | 参数类型 | 描述 |
| --- | --- | --- |
| entities | Object | 结果。 |

**表 5**  entities字段数据结构说明

| 参数 | 参数类型 | 描述 |
| --- | --- | --- |
| id | String | 标识。 |
"""

SHARED = """# Customers

## Endpoints

### Create a customer

`POST /customers`

#### Request

| Field | Type | Required | Description |
| --- | --- | --- | --- |
| billing | [Address](#address) | yes | Where the bill goes. |
| shipping | Address object | no | Where the parcel goes. |

#### Response

| Field | Type | Description |
| --- | --- | --- |
| customer | object | See Customer. |

### Delete a customer

`DELETE /customers/{id}`

#### Response

| Field | Type | Description |
| --- | --- | --- |
| gone | boolean | Whether it existed. |

## Data types

### Customer

| Field | Type | Description |
| --- | --- | --- |
| id | string | Identifier. |
| parent | Customer | The customer above this one. |

### Address

| Field | Type | Required | Description |
| --- | --- | --- | --- |
| city | string | yes | City. |
"""

CHINESE_TYPES = """# 创建订单

`POST /v1/orders`

## 请求参数

| 参数 | 类型 | 必选 | 描述 |
| --- | --- | --- | --- |
| address | 对象 | 是 | 收货地址。 |
| items | 对象数组 | 是 | 商品，请参见表2。 |
| note | 字符串 | 否 | 格式请参见表2。 |

### address 字段说明

| 参数 | 类型 | 必选 | 描述 |
| --- | --- | --- | --- |
| city | 字符串 | 是 | 城市。 |

### 表 2 商品

| 参数 | 类型 | 必选 | 描述 |
| --- | --- | --- | --- |
| sku | 字符串 | 是 | 编码。 |
"""

SECTION_NAMED_LIKE_A_FIELD = """# Orders

## Order

`POST /orders`

| Field | Type | Required | Description |
| --- | --- | --- | --- |
| sku | string | yes | What is ordered. |

### Response

| Field | Type | Description |
| --- | --- | --- |
| order | Order | The order. |
"""

PAGES = {
    "captions": (
        CAPTIONS,
        ["server", "server.root_volume", "server.root_volume.size", "hint", "hint.group", "name",
         "> entities", "> entities.id"],
    ),
    "shared": (
        SHARED,
        ["billing", "billing.city", "shipping", "shipping.city",
         "> customer", "> customer.id", "> customer.parent", "id", "> gone"],
    ),
    "Chinese types": (
        CHINESE_TYPES, ["address", "address.city", "items", "items.sku", "note"],
    ),
    "section named like a field": (SECTION_NAMED_LIKE_A_FIELD, ["sku", "> order"]),
}  # fmt: skip
"""Pages and the names of their parameters; `>` marks those of responses."""


def names(parameters: Sequence[Parameter], parent: str = "") -> Iterator[str]:
    for each in parameters:
        yield f"{parent}{each.name}"
        yield from names(each.children, f"{parent}{each.name}.")


@pytest.mark.parametrize("page", PAGES)
def test_fields_are_below_what_refers_to_them(page: str) -> None:
    markdown, expected = PAGES[page]
    operations = read_operations(parse_blocks(markdown), "Page").operations
    found = [
        name
        for operation in operations
        for name in (
            *names(operation.request_parameters),
            *names(operation.response_parameters, "> "),
        )
    ]
    assert found == expected


def test_list_of_structures_has_array_brackets() -> None:
    (operation,) = read_operations(parse_blocks(CAPTIONS), "Page").operations
    (volume,) = operation.request_parameters[0].children
    assert volume.dimensions == 1
    assert [(child.name, child.required) for child in volume.children] == [("size", True)]


def test_shared_structures_stay_in_the_text_of_the_page() -> None:
    page = read_operations(parse_blocks(SHARED), "Customers")
    assert "### Address" in [block.text for block in page.prose]


@pytest.mark.parametrize(
    ("text", "caption"),
    [
        ("表 4 server字段数据结构说明", Caption("server", "4")),
        ("Table 2-1 ServerAddress", Caption("serveraddress", "2-1")),
        ("The address object contains the following fields:", Caption("address", "")),
        ("data 参数说明", Caption("data", "")),
        ("3.2 billing_address", Caption("billingaddress", "")),
        ("请求Body参数", Caption("", "")),
        ("Create a ticket", Caption("", "")),
        ("Response parameters", Caption("", "")),
    ],
)
def test_caption(text: str, caption: Caption) -> None:
    assert caption_of(text) == caption
