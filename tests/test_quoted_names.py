"""Quotes of the table rows and list items whose name a question contains."""

import re
from pathlib import Path

import pytest

from tests.small_platform import quoted_page

GLOSSARY = (
    "# Guide\n\nA seal is added to every sealed document. The seal of a page is checked.\n\n"
    "# Glossary\n\n- **Seal**: the signature of the platform.\n- **Audit trail**: the list of events.\n"
)


@pytest.mark.parametrize("question", ["what is a seal?", "seal", "What's a seal"])
def test_entry_of_a_glossary_is_quoted_first(tmp_path: Path, question: str) -> None:
    text = quoted_page(tmp_path, GLOSSARY, question)
    assert text.startswith("**Guide > Glossary**\n\n- **Seal**: the signature of the platform.")
    assert "list of events" not in text


def test_item_with_a_label_is_not_quoted_alone(tmp_path: Path) -> None:
    page = "# Changelog\n\n## 2.5\n\n- **New:** a role.\n- **Changed:** the limit is 25 MB.\n"
    text = quoted_page(tmp_path, page, "what changed in 2.5?")
    assert "a role" in text
    assert "25 MB" in text


def test_difference_between_two_items_of_a_list_quotes_both(tmp_path: Path) -> None:
    page = "# Recipients\n\n- **approver**: approves, but does not sign.\n- **cc**: gets a copy.\n"
    text = quoted_page(tmp_path, page, "what is the difference between a cc and an approver?")
    assert "does not sign" in text
    assert "gets a copy" in text


def test_value_is_not_defined_by_the_error_that_mentions_it(tmp_path: Path) -> None:
    page = (
        "# 错误码\n\n| 错误码 | 说明 |\n| --- | --- |\n| 2014 | 仅 PART_REFUND 的订单可退款 |\n\n"
        "# 订单状态\n\n| 状态值 | 含义 |\n| --- | --- |\n| PART_REFUND | 部分退款 |\n| PAYING | 支付中 |\n"
    )
    text = quoted_page(tmp_path, page, "PART_REFUND 是什么状态")
    assert "部分退款" in text
    assert "2014" not in text


def test_error_code_that_only_a_sentence_mentions_is_found(tmp_path: Path) -> None:
    page = (
        "# Labels\n\nThe fourth attempt to reprint a label returns error 61055.\n\n"
        "# Error codes\n\n| Error code | Meaning |\n| --- | --- |\n| 58001 | No such error. |\n"
    )
    text = quoted_page(tmp_path, page, "What does error 61055 mean?")
    assert "fourth attempt" in text
    assert "58001" not in text


def test_name_of_a_field_is_a_whole_word(tmp_path: Path) -> None:
    page = (
        "# 签收\n\n| 参数 | 说明 |\n| --- | --- |\n| diff_reason | 差异原因，最多 20 个字符 |\n\n"
        "# 退款\n\n| 参数 | 说明 |\n| --- | --- |\n| reason | 退款原因，最多 80 个字符 |\n"
    )
    text = quoted_page(tmp_path, page, "reason 最长多少")
    assert "80 个字符" in text.partition("20 个字符")[0]


@pytest.mark.parametrize("name", ["list.locked_qty", "list[].locked_qty", "locked_qty"])
def test_nested_field_is_found_with_and_without_brackets(tmp_path: Path, name: str) -> None:
    page = "# 库存\n\n| 参数 | 说明 |\n| --- | --- |\n| list[].locked_qty | 锁定数量 |\n| list[].qty | 总数 |\n"
    text = quoted_page(tmp_path, page, f"{name} 是什么")
    assert "锁定数量" in text
    assert "没有" not in text


def test_object_is_found_by_the_names_of_its_fields(tmp_path: Path) -> None:
    page = "# Pay\n\n| Name | Text |\n| --- | --- |\n| pay_info.mini_params.package | The prepaid id. |\n"
    text = quoted_page(tmp_path, page, "which fields does mini_params have?")
    assert "prepaid id" in text
    assert "does not contain" not in text


MATRIX = (
    "# Roles\n\nRoles of a manager.\n\n| Action | Manager | Team |\n| --- | --- | --- |\n"
    "| Create shifts | yes | 1 for each viewer |\n| Delete published shifts | yes | 2 for each viewer |\n"
    "| Export reports | yes | 3 for each viewer |\n| Seat maps | yes | 4 for each viewer |\n"
    "| Seats per seat map | yes | 5 for each viewer |\n"
)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("can a manager delete published shifts?", {"2"}),
        ("is exporting reports possible for viewers", {"3"}),
        ("how many seat maps on Team", {"4", "5"}),
        ("what may a manager do?", {"1", "2", "3", "4", "5"}),
    ],
)
def test_only_the_rows_whose_name_is_in_the_question_are_quoted(
    tmp_path: Path, question: str, quoted: set[str]
) -> None:
    text = quoted_page(tmp_path, MATRIX, question)
    assert set(re.findall(r"(\d) for each viewer", text)) == quoted


def test_only_the_row_of_a_long_table_that_is_asked_for_is_quoted(tmp_path: Path) -> None:
    symbols = (
        "CAMERA_BUSY",
        "CAMERA_DENIED",
        "MIC_BUSY",
        "ROOM_CLOSED",
        "SIG_INVALID",
        "USER_GONE",
    )
    rows = "".join(
        f"| {i} | {name} | {name} {'and more ' * 9}|\n" for i, name in enumerate(symbols)
    )
    page = f"# SDK\n\nSymbols:\n\n| Value | Symbol | Meaning |\n| --- | --- | --- |\n{rows}"
    text = quoted_page(tmp_path, page, "CAMERA_DENIED")
    assert "CAMERA_DENIED and more" in text
    assert "ROOM_CLOSED" not in text


def test_entry_of_a_glossary_with_translations_is_quoted_alone(tmp_path: Path) -> None:
    page = (
        "# 名词解释\n\n| 名词 | 英文 | 说明 |\n| --- | --- | --- |\n"
        "| MAU | Monthly Active Users | 月活跃用户数 |\n| DAU | Daily Active Users | 日活跃用户数 |\n\n"
        "上行：客户端发送数据。\n\n# 计费\n\n| 项目 | 价格 |\n| --- | --- |\n| 超出 MAU | 0.05 元/MAU |\n"
    )
    text = quoted_page(tmp_path, page, "MAU是什么")
    assert "月活跃" in text.partition("[1]")[0]
    assert "日活跃" not in text
    assert "上行" not in text


OVEN = (
    "# Delete a reading\n\n| Name | Description |\n| --- | --- |\n| `max_oven_heat` | The limit. |\n\n"
    "# Limits\n\n## oven_events\n\n- `max_heat` (number): the heat that an event may report.\n"
    "- `max_oven_heat` (list): events of the heat, which change later.\n\n"
    "## max_oven_heat\n\nThe largest value. Restart the oven afterwards.\n"
)


@pytest.mark.parametrize("question", ["max_oven_heat", "what is max_oven_heat"])
def test_section_with_the_identifier_as_heading_comes_first(tmp_path: Path, question: str) -> None:
    text = quoted_page(tmp_path, OVEN, question)
    assert "Restart the oven" in text.partition("[1]")[0]


def test_error_code_comes_before_the_section_of_its_function(tmp_path: Path) -> None:
    page = (
        "# light_oven\n\nLights the oven, or returns an error code.\n\n"
        "# Error codes\n\n| Error code | Meaning |\n| --- | --- |\n| 61055 | The gas is off. |\n"
    )
    text = quoted_page(tmp_path, page, "What does error 61055 of light_oven mean?")
    assert "The gas is off." in text.partition("[1]")[0]
