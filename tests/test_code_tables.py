"""Codes of a table that are asked for by name, in another notation, or without a word such as "error"."""

from pathlib import Path

import pytest

from runnables.retrieval.number_ranges import ranges_in
from runnables.retrieval.table_rows import named_codes, row_defines, row_name
from tests.small_platform import quoted_page

PAGE = """
# Connections

## Close codes

| Code | Name | Meaning | Reconnect |
| --- | --- | --- | --- |
| 4001 | NORMAL | The client closed the connection | no |
| 4003 | KICKED | The server closed the session | no |
| 4004 | CONFLICT | Too many connections of one user | no |
| 4029 | RATE_LIMITED | Messages were sent too fast | after 10 seconds |

## Return codes of a connection

| Return code | Meaning |
| --- | --- |
| 0x01 | The protocol version is not supported |
| 0x04 | The password is wrong |
| 0x05 | The device is not authorised |

## Progress

Devices report the progress of an upgrade.

| step | Meaning |
| --- | --- |
| 1~100 | Percentage |
| -1 | The upgrade failed |
| -3 | The checksum differs |

## Kicking users

To kick a user, call the session API. The user can be kicked from each session, and a conflict with a running
call is possible: the server closes the oldest session of the user.
"""


@pytest.mark.parametrize(
    ("question", "row", "other"),
    [
        ("CONFLICT", "Too many connections", "Messages were sent"),
        ("KICKED", "The server closed the session", "Messages were sent"),
        ("what does KICKED mean?", "The server closed the session", "Messages were sent"),
        ("connect failed rc=4", "The password is wrong", "not authorised"),
        ("rc=5", "not authorised", "The password is wrong"),
        ("the callback gets returnCode 5", "not authorised", "The password is wrong"),
        ("upgrade progress step -3", "The checksum differs", "Percentage"),
        ("4029呢", "Messages were sent", "The server closed"),
        ("and 4029?", "Messages were sent", "The server closed"),
    ],
)
def test_only_the_row_of_the_code_is_quoted(
    tmp_path: Path, question: str, row: str, other: str
) -> None:
    answer = quoted_page(tmp_path, PAGE, question)
    assert row in answer
    assert other not in answer


RANGES = """
# Error codes

| value | text |
| --- | --- |
| 20001 | The cart is empty |
| 30100~30199 | The lock of the shelf failed |
| 30102 | The shelf has no lock |
| 5000-5013 | The gateway restarts |
| 710000 至 719999 | The scale is not calibrated |
| -32099 to -32000 | The relay failed |
| `8100`\\~`8199` | The printer has no paper |
"""


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("error code 30150", "The lock of the shelf failed"),
        ("30102 是什么错误", "The shelf has no lock"),
        ("5005 是什么", "The gateway restarts"),
        ("what is error 5000?", "The gateway restarts"),
        ("710450 报错", "The scale is not calibrated"),
        ("error code: -32050", "The relay failed"),
        ("error 8150", "The printer has no paper"),
    ],
)
def test_code_is_found_in_a_range(tmp_path: Path, question: str, row: str) -> None:
    answer = quoted_page(tmp_path, RANGES, question)
    texts = ["cart", "lock of", "no lock", "gateway", "scale", "relay", "printer"]
    assert row in answer
    assert [text for text in texts if text in answer] == [text for text in texts if text in row]


def test_code_outside_the_ranges_is_missing(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, RANGES, "error code 30250")
    assert "`30250`" in answer
    assert "lock" not in answer


def test_amounts_are_no_ranges_of_codes() -> None:
    body = "| step | text |\n| --- | --- |\n| 1~100 | share |\n| 2000 | 3000-3999 |"
    assert ranges_in(body, "50") == ranges_in(body, "3500") == []


@pytest.mark.parametrize(
    ("name", "number", "is_found"),
    [
        ("555-0100200", "40014", False),
        ("0755-12345678", "40014", False),
        ("2024-100234", "40014", False),
        ("40000~40099", "40014", True),
        ("100 to 199", "150", True),
        ("9000~10999", "10040", True),
        ("1000 to 99999", "40014", True),
        ("-999~-1000", "-999", True),
        ("-1099--999", "-1040", True),
        ("0100-0199", "0150", True),
        ("555~0100200", "40014", False),
    ],
)
def test_numbers_of_different_length_with_a_dash_are_no_range(
    name: str, number: str, is_found: bool
) -> None:
    body = f"| code | text |\n| --- | --- |\n| {name} | Kiln desk |"
    assert ranges_in(body, number) == ([name] if is_found else [])


def test_capitals_are_names_only_in_a_table_with_codes() -> None:
    cells = ["4003", "KICKED", "See POST", "POST"]
    assert named_codes(["Code", "Name", "Text", "Method"], cells) == {
        "4003": "Code",
        "kicked": "Code",
    }
    assert named_codes(["Port", "Name", "Text", "Method"], cells) == {}


def test_capitals_in_other_columns_are_no_names() -> None:
    assert named_codes(["Status", "Who"], ["SHIPPED", "ERP"]) == {"shipped": "Status"}
    assert named_codes(["HTTP status", "Body"], ["200", "JSON"]) == {"200": "HTTP status"}


def test_row_after_its_number_is_named_by_its_identifier() -> None:
    header = ["序号", "字段名", "标识", "长度"]
    assert row_name(header, ["12", "订单编号", "orderNo", "60"]) == "orderNo"
    assert row_name(["No.", "Field", "Length"], ["12", "order", "60"]) == "order"
    assert row_name(["状态", "含义"], ["12", "已发货"]) == "12"
    assert not row_defines(header, ["12", "订单编号", "orderNo", "60"], "12")
    assert row_defines(header, ["12", "订单编号", "orderNo", "60"], "orderno")


def test_phrase_of_a_status_is_no_name() -> None:
    header = ["Error code", "Error message", "Cause"]
    assert named_codes(header, ["409", "Conflict", "OFFLINE"]) == {"409": "Error code"}
    assert "stock_conflict" in named_codes(header, ["409", "stock_conflict", ""])
