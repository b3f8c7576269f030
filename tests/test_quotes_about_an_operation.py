"""Quotes about one operation: its parameters, the fields that a request lacks, and its statuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.answer import Answer
from tests.small_platform import PLATFORM, ask, quoted_page

Json = dict[str, Any]

LOCKER = """# 打开柜门

`POST /v1/lockers/{locker_id}/open`

打开一个柜门。

## 请求参数

| 变量名 | 必填 | 类型 | 描述 |
| --- | --- | --- | --- |
| locker_id | 是 | String | 柜子编号 |
| mode | 是 | String | 开门方式 |
| light | 否 | Boolean | 是否亮灯 |
| pin | 否 | String | 取件码，开门方式为 code 时必须携带 |
| owner | 否 | Object | 柜主 |
| owner.id | 否 | String | 柜主编号，与 owner.phone 二选一 |
| owner.phone | 否 | String | 柜主电话，与 owner.id 二选一 |
| courier | 否 | Object | 快递员 |
| courier.id | 是 | String | 快递员编号 |
"""


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ('POST /v1/lockers/7/open {"mode": "code"} 开门还缺什么参数？', ["pin", "light", "owner", "courier"]),
        ('POST /v1/lockers/7/open {"mode": "x", "owner": {}} 少了什么', ["pin", "owner.id", "owner.phone", "light", "courier"]),
        ('/v1/lockers/7/open {"pin": "1"} what is missing?', ["mode", "light", "owner", "courier"]),
        ('POST /v1/lockers/7/open {"light": true} 取件码，还缺什么？', ["mode", "pin", "owner", "courier"]),
        ('POST /v1/lockers/7/open {"light": true} 哪里错了？', ["mode", "light"]),
        ('what is wrong with /v1/lockers/7/open {"light": true}', ["mode", "light"]),
    ],
)  # fmt: skip
def test_missing_fields_of_a_pasted_request_are_quoted(
    tmp_path: Path, question: str, fields: list[str]
) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "open.md").write_text(LOCKER)
    answer = ask(tmp_path, question)
    assert re.findall(r"^\| `([\w.]+)` \|", "\n".join(answer.answer), re.MULTILINE) == fields
    assert answer.confidence != "high"


SHELF = """# 移除货架

`DELETE /v1/shelves/{shelf_id}`

可以重复调用。货架编号不存在时报 404，货架不为空时报 409。

## 返回参数

| 变量名 | 类型 | 描述 |
| --- | --- | --- |
| result | Int | 结果 |

## 错误码

| 名称 | 描述 | 解决方案 |
| --- | --- | --- |
| 403 | Forbidden | Forbidden |
| 404 | Not Found | Not Found |
"""


def test_text_that_explains_a_status_of_an_api_is_quoted_before_its_row(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "shelf.md").write_text(SHELF)
    text = "\n".join(ask(tmp_path, "移除货架会返回 404 吗？").answer)
    assert 0 < text.find("编号不存在时报 404") < text.find("| `404` |")


def depot(tmp_path: Path, paths: Json, question: str) -> Answer:
    """Return the answer to `question` from a description with `paths`."""
    sources = '\n[[sources]]\nname = "api"\nkind = "openapi"\npath = "api.json"\n'
    (tmp_path / "platform.toml").write_text(PLATFORM + sources)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "page.md").write_text("# Depot\n\nThe depot keeps the parcels.\n")
    description: Json = {"openapi": "3.1.0", "info": {"title": "Depot"}, "paths": paths}
    description["servers"] = [{"url": "https://example.com/depot"}]
    (tmp_path / "api.json").write_text(json.dumps(description))
    return ask(tmp_path, question)


def body_of(schema: Json) -> Json:
    return {"content": {"application/json": {"schema": schema}}}


RENAME: Json = {
    "summary": "Rename a van",
    "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
    "requestBody": body_of({"properties": {"name": {}, "map": {"additionalProperties": {}}}}),
}

NOTED: Json = RENAME | {
    "requestBody": body_of({"properties": {"seats": {"properties": {"<seat number>": {}}}}})
}


def test_placeholder_in_the_name_of_a_parameter_is_in_the_code_of_the_name(tmp_path: Path) -> None:
    answer = depot(tmp_path, {"/vans/{name}": {"patch": NOTED}}, "PATCH /vans/{name} parameters")
    assert "| `seats.<seat number>` |" in "\n".join(answer.answer)


def test_parameters_with_the_same_name_are_told_apart_by_their_location(tmp_path: Path) -> None:
    answer = depot(tmp_path, {"/vans/{name}": {"patch": RENAME}}, "PATCH /vans/{name} body")
    text = "\n".join(answer.answer)
    assert "(In: path)" in text
    assert "(In: body)" in text


def test_body_is_quoted_although_only_the_parameter_in_the_path_is_named(tmp_path: Path) -> None:
    operation = RENAME | {"requestBody": body_of({"type": "object", "description": "The labels."})}
    answer = depot(tmp_path, {"/vans/{name}/labels": {"put": operation}}, "PUT /vans/{name}/labels")
    assert "The labels." in "\n".join(answer.answer)


def test_fields_of_an_alternative_are_quoted(tmp_path: Path) -> None:
    note = "What the field contains is explained here at some length, so that the table is long."
    fields = {name: {"type": "string", "description": note} for name in ("plate", "colour", "size")}
    alternatives = [{"title": "Van", "properties": fields}, {"title": "Bike", "properties": fields}]
    response = {"description": "", **body_of({"oneOf": alternatives})}
    operation = {"summary": "Get the own vehicle", "responses": {"200": response}}
    answer = depot(tmp_path, {"/v1/van": {"get": operation}}, "GET /v1/van response fields")
    assert "`(Van).plate`" in "\n".join(answer.answer)


CONFLICTS = {
    path: {
        "post": {
            "summary": summary,
            "responses": {"400": {"description": cause}},
        }
    }
    for path, summary, cause in (
        ("/parcels", "Send a parcel", "The parcel is too heavy"),
        ("/vans", "Order a van", "All vans are on the road"),
    )
}


def test_status_of_an_operation_is_not_explained_by_another_one(tmp_path: Path) -> None:
    answer = depot(tmp_path, CONFLICTS, "what does 400 mean for POST /parcels")
    assert "too heavy" in "".join(answer.answer)
    assert "on the road" not in "".join(answer.answer)


def test_status_of_one_of_several_operations_has_no_high_confidence(tmp_path: Path) -> None:
    vans = {"get": {"summary": "List vans", "responses": {"200": {"description": "The vans"}}}}
    paths = CONFLICTS | {"/vans/list": vans}
    assert depot(tmp_path, paths, "vans return 400").confidence != "high"


def shelf_page(count: int, chars: int) -> str:
    rows = "\n".join(
        f"| part_{i} | String | No | {'About this part of a shelf. ' * (chars // 28)} |"
        for i in range(count)
    )
    return (
        "# Build a shelf\n\n`POST /v1/shelves`\n\nBuilds a shelf.\n\n## Request parameters\n\n"
        f"| Name | Type | Required | Description |\n| --- | --- | --- | --- |\n{rows}\n"
    )


def test_parameters_that_are_not_quoted_are_listed_with_their_names(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, shelf_page(20, 140), "which parameters does Build a shelf have?")
    assert all(f"`part_{i}`" in answer for i in range(20))
    assert "| `part_19` |" not in answer


def test_single_parameter_is_not_left_out(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, shelf_page(7, 112), "which parameters does Build a shelf have?")
    assert all(f"| `part_{i}` |" in answer for i in range(7))
    assert "…" not in answer


PARAMETERS = """# 审核订单

**请求地址**：`POST /v1/orders/review`

## 请求参数

| 名称 | 类型 | 必填 | 说明 |
| --- | --- | --- | --- |
""" + "".join(
    f"| {name} | String | 是 | 可传多个，用逗号分隔，一次最多不要超过 20 个订单，重复的订单只处理一次，顺序不限，"
    "没有找到的订单会被忽略，不会返回错误，也不会写入日志，建议在调用之前先查询一次订单的状态 |\n"
    for name in ("orderIds", "shopIds", "buyerIds", "depotIds", "carrierIds", "labelIds", "batchIds", "tagIds")
) + "| options.resend | String | 否 | 退回时必填，决定退回之后由谁处理 |\n"  # fmt: skip


@pytest.mark.parametrize("question", ["退回的话还要传什么", "退回要传哪些参数"])
def test_row_with_the_rare_words_of_the_question_is_quoted(tmp_path: Path, question: str) -> None:
    assert "| `options.resend` |" in quoted_page(tmp_path, PARAMETERS, question)
