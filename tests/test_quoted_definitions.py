"""Questions about error codes and fields are answered with the rows that define them."""

import json
from pathlib import Path

import pytest

from tests.small_platform import quoted_page

CODES = """# 接口错误码

## 错误码处理方案

调用接口失败时，会返回对应的错误码。常见错误码的处理方案见下文，也可以按错误码查询处理方案。

## 返回字段

调用接口后返回以下字段，请先解决返回的错误：`code` 是返回的错误码。

## 网关

| 错误码 | 说明 |
| --- | --- |
| 171 | 签名不对 |
| 18017 | 模板没有通过审核 |

## 其他

- `433`：凭据过期。获得凭据后，必须在 5 分钟内开始录制。
- 1044: 录制已经停止。

## -1021 时间同步问题

客户端的时钟不准。
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("错误码 171", "签名不对"),
        ("返回 18017 怎么解决", "模板没有通过审核"),
        ("错误码 -1021 怎么处理", "客户端的时钟不准"),
        ("-1021 是什么意思", "客户端的时钟不准"),
        ("录制接口返回错误码 433 是什么意思，应该怎么处理", "凭据过期"),
        ("错误码 1044", "录制已经停止"),
    ],
)
def test_code_is_answered_with_its_definition_alone(
    question: str, said: str, tmp_path: Path
) -> None:
    text = quoted_page(tmp_path, CODES, question)
    texts = {
        "签名不对",
        "模板没有通过审核",
        "客户端的时钟不准",
        "凭据过期",
        "录制已经停止",
        "调用接口",
    }
    others = texts - {said}
    assert said in text
    assert not any(other in text for other in others)


OVEN = """# 烤箱

## 点火

烤箱第四次点火后返回 61055，请换煤气。

## 为什么会提示 417 Door ？

烤箱的门没有关，关上以后再试一次。

## 如何处理面团

面团太湿时，处理办法是加面粉，这样就能解决。
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("61055 怎么解决", "请换煤气"),
        ("61055 如何处理", "请换煤气"),
        ("怎么解决 61055", "请换煤气"),
        ("how do I fix 61055?", "请换煤气"),
        ("417怎么解决", "门没有关"),
        ("417 怎么处理", "门没有关"),
    ],
)
def test_remedy_of_a_code_is_found_by_the_code(question: str, said: str, tmp_path: Path) -> None:
    text = quoted_page(tmp_path, OVEN, question)
    assert said in text.partition("[1]")[0]


CODE_SHAPES = """# 错误码

| 错误码 | 说明 |
| --- | --- |
| A0301 | 余额被冻结 |
| AUTH-001-A | 门店已经关闭 |
| 10.04 | 照片尺寸错误 |
| 1001-02 | 优惠券用完 |
| SMS-UP-432 | 收件人拒收 |
| TokenExpired | 司机离线 |
| 42 | 仓库没有货位 |
"""


TWO_TABLES = """# Voice

## Errors of calls

| Code | Message |
| --- | --- |
| 21211 | to is invalid |
| 21215 | country not enabled |

## Common errors

| Code | Message | What to do |
| --- | --- | --- |
| 20003 | Authenticate | Check the auth token of the account and the id of the workspace. |
| 21215 | Geo permission denied | Enable the country in the console below Voice, Geo permissions. |

## Prices

| Product | Unit | Price |
| --- | --- | --- |
| Call to a landline in the GB region | minute | 0.0120 |
| Call to a mobile in the GB region | minute | 0.0310 |
| Recording of a call, in any of the regions | minute | 0.0025 |
| Storage of the recording of a call | month | 0.1000 |

## Make a call

Send a POST request with the number and the address of the script to make a call.

## Hang up

Send a DELETE request with the id of the call to hang up.
"""


@pytest.mark.parametrize(
    "question",
    ["what do 21211 and 20003 mean?", "21211 和 20003 分别是什么意思", "errors 20003, 21211"],
)
def test_several_codes_are_each_defined(question: str, tmp_path: Path) -> None:
    text = quoted_page(tmp_path, TWO_TABLES, question)
    assert "to is invalid" in text
    assert "Authenticate" in text
    assert "21215" not in text


def test_longer_definition_of_a_code_follows_the_first_one(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, TWO_TABLES, "what does 21215 mean and what do I do about it?")
    assert "country not enabled" in text
    assert "Enable the country in the console" in text
    assert "21211" not in text


def test_missing_rows_of_a_quoted_table_are_marked(tmp_path: Path) -> None:
    rows = "".join(
        f"| Message to region {n} in bulk, by any of the carriers | item | {n} |\n"
        for n in range(20)
    )
    text = quoted_page(
        tmp_path, TWO_TABLES.replace("| Storage", f"{rows}| Storage"), "GB region price"
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert any("GB region" in line for line in table)
    assert table[-1].startswith("| … |")


def test_each_part_of_a_question_is_answered(tmp_path: Path) -> None:
    question = "how do I make a call and how do I hang up a call?"
    text = quoted_page(tmp_path, TWO_TABLES, question)
    assert "Send a POST request" in text
    assert "Send a DELETE request" in text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("返回 A0301 怎么解决", "余额被冻结"),
        ("AUTH-001-A 是什么错误", "门店已经关闭"),
        ("错误码 10.04", "照片尺寸错误"),
        ("1001-02 是什么错误", "优惠券用完"),
        ("why do I get SMS-UP-432", "收件人拒收"),
        ("接口返回 errcode TokenExpired 是什么意思，怎么处理", "司机离线"),
        ("错误码 42", "仓库没有货位"),
        ('怎么办 {"to": "1", "deliveryErrorCode": "SMS-UP-432"}', "收件人拒收"),
    ],
)
def test_row_of_a_code_of_any_shape_is_quoted_alone(
    question: str, said: str, tmp_path: Path
) -> None:
    text = quoted_page(tmp_path, CODE_SHAPES, question)
    assert said in text
    assert text.count("| --- |") == 1
    assert text.count("\n|") == 3


NOTIFICATIONS = """# 消息通知

## 参数和字段说明

怎么填各个参数：先看字段说明，再填参数。各字段的说明和填法见参数说明。

## 通知内容

| 字段 | 说明 |
| --- | --- |
| noticeId | 一次事件的编号 |
| productId | 业务的编号 |
"""


@pytest.mark.parametrize(
    "question", ["noticeId 字段说明", "参数 noticeId 怎么填", "what is noticeId"]
)
def test_row_of_a_camel_case_name_is_quoted(question: str, tmp_path: Path) -> None:
    assert "一次事件的编号" in quoted_page(tmp_path, NOTIFICATIONS, question)


RESULT_CODES = """# Errors

The result code of each call is listed here. Handle every result code, whatever it means.

| isSuccessful | resultCode | Description |
| --- | --- | --- |
| FALSE | 10005 | The boat was not found |
| FALSE | 10006 | The harbour is full |
| FALSE | 11001 | The crew is too small |
"""


def test_code_in_a_later_column_names_its_row(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, RESULT_CODES, "what does resultCode 10006 mean")
    assert "harbour is full" in text
    assert "boat was not found" not in text


def test_quotation_marks_around_a_name_do_not_count(tmp_path: Path) -> None:
    rows = "".join(
        f"| “show_{n}” | Shows the number {n} of a message in the reply |\n" for n in range(40)
    )
    page = f"# Messages\n\n| Parameter name | Value |\n| --- | --- |\n{rows}"
    text = quoted_page(tmp_path, page, "which value has the parameter show_33")
    assert "| “show_33” |" in text


BOAT_PARTS = """
[[sources]]
name = "api"
kind = "openapi"
path = "openapi.json"
"""


def test_words_of_the_name_of_an_api_choose_no_part_of_its_sections(tmp_path: Path) -> None:
    about = {
        "type": "string",
        "description": "Something that takes some room in the table of fields",
    }
    fields = {
        "status": about,
        "error": about,
        "meta": {"type": "object", "properties": {f"f{n}": about for n in range(20)}},
    }
    content = {"application/json": {"schema": {"type": "object", "properties": fields}}}
    responses = {
        "200": {"description": "Response from the endpoint for boat parts.", "content": content}
    }
    operation = {"summary": "Get boat parts", "operationId": "parts", "responses": responses}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "A", "version": "1"},
        "paths": {"/boats/parts": {"get": operation}},
    }
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    text = quoted_page(
        tmp_path, "# Start\n\nWelcome.\n", "what does get boat parts return", BOAT_PARTS
    )
    assert "`status`" in text
    assert "`error`" in text


TYPES = """# Conventions

## Errors

```json
{"error": {"type": "mapping_conflict", "message": "field 'price' expects float, got string"}}
```

Branch on `type`. All types: see the error reference.

# Error reference

| Type | Status | Cause |
| --- | --- | --- |
| `mapping_conflict` | 422 | The value does not fit the type. |
| `unknown_field` | 422 | The field is unknown. |
"""


def test_pasted_response_is_answered_with_the_definition_of_its_code(tmp_path: Path) -> None:
    response = (
        '{"type": "mapping_conflict", "message": "field \'price\' expects float, got string"}'
    )
    text = quoted_page(tmp_path, TYPES, response)
    assert "The value does not fit the type." in text
    assert "Branch on" not in text


def test_heading_with_another_code_is_not_quoted(tmp_path: Path) -> None:
    page = (
        "# 常见问题\n\n## 进房返回 -3320？\n\nUserSig 不正确，进房失败。\n\n"
        "# 错误码\n\n| 错误码 | 含义 |\n| --- | --- |\n| -3308 | 请求超时 |\n| -3320 | 签名不正确 |\n"
    )
    text = quoted_page(tmp_path, page, "进房返回 -3308 是为什么")
    assert "请求超时" in text
    assert "UserSig" not in text


LANTERNS = """# Lantern sync

This page describes the lantern sync of Acme, and what lantern sync needs.

## Parts

To understand lantern sync, look at the parts of a lantern sync first: the mast and the lantern.

## How it works

Lamps drift apart over time. The mast joins both views: lantern sync is
a comparison of the mast with every lantern. It runs once a minute.

## Failures

Lantern sync is not possible without a mast. If lantern sync fails, lantern sync is repeated.

## 灯塔

灯塔（又称主灯）是一种常亮的灯。

## 维护

灯塔是否需要维护，取决于灯塔的位置；灯塔的位置见地图。
"""


@pytest.mark.parametrize(
    ("question", "definition"),
    [
        ("What is lantern sync?", "a comparison of the mast with every lantern"),
        ("灯塔是什么？", "是一种常亮的灯"),
        ("什么是灯塔", "是一种常亮的灯"),
    ],
)
def test_term_is_answered_first_with_the_sentence_that_defines_it(
    question: str, definition: str, tmp_path: Path
) -> None:
    first, _, _ = quoted_page(tmp_path, LANTERNS, question).partition("[1]")
    assert definition in first
