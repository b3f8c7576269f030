"""Details pasted into a question are extracted by their shape."""

from typing import Any

import pytest

from runnables.question.error_codes import error_codes, named_error_code, without_timestamps
from runnables.question.extract_details import command_flags, extract_details, single_letter_terms


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("trace: 1231231231231231313", {"trace_id": "1231231231231231313", "prose": ""}),
        (
            "trace_id=8123456789012345678 怎么查",
            {"trace_id": "8123456789012345678", "prose": "怎么查"},
        ),
        ("X-Dop-Trace-Id: ab12-cd34-ef56", {"trace_id": "ab12-cd34-ef56"}),
        ('"requestId":"7f3a9c0012"', {"trace_id": "7f3a9c0012"}),
        ("requestId 7f3a9c0012", {"trace_id": "7f3a9c0012"}),
        ("how do I trace a shipment", {"trace_id": None, "prose": "how do I trace a shipment"}),
        ("where is my request 12345678901", {"trace_id": None}),
        ("dop/api/v1/order/ship 怎么用", {"paths": ["dop/api/v1/order/ship"], "prose": "怎么用"}),
        ("POST /dop/api/v1/order/ship/", {"paths": ["/dop/api/v1/order/ship"]}),
        ("GET /v1/rooms/urn:hall:7/seats?", {"paths": ["/v1/rooms/urn:hall:7/seats"]}),
        ("POST /v1/rooms/7:close", {"paths": ["/v1/rooms/7:close"]}),
        ("fails in /srv/till/sell.py:12:5", {"paths": ["/srv/till/sell.py"]}),
        ("/v1/rooms: 怎么用", {"paths": ["/v1/rooms"]}),
        ("/orders/{order_no}/items", {"paths": ["/orders/{order_no}/items"]}),
        ("and/or, TCP/IP, 1/2, 上/下", {"paths": [], "prose": "and/or, TCP/IP, 1/2, 上/下"}),
        (
            "https://a.example/b/c?x=1&y=2，为什么失败",
            {
                "paths": ["/b/c"],
                "request_param": {"x": "1", "y": "2"},
                "prose": "，为什么失败".strip("，"),
            },
        ),
        ('发 {"order_no": "1"} 报错', {"request_param": {"order_no": "1"}, "prose": "发 报错"}),
        (
            '{"code": "41022", "message": "退款中", "trace_id": 4512345123451234512}',
            {"error": "41022 退款中", "trace_id": "4512345123451234512", "request_param": {}},
        ),
        ('{"code": "0", "message": "success", "data": {}}', {"error": None}),
        ('{"success": true, "message": "created", "data": {}}', {"error": None}),
        (
            '{"to": [{"phone": "1"}], "deliveryErrorCode": "SMS-CAR-435"}',
            {"error": "SMS-CAR-435"},
        ),
        ('{"zip_code": "94016", "name": "x"} 怎么传', {"error": None}),
        ('{"coupon": {"code": "A1", "message": "hi"}} 怎么传', {"error": None, "response": None}),
        ('{"result": {"code": "0", "message": "success"}}', {"error": None, "request_param": {}}),
        ('{"errors": [{"code": "CMN-101", "message": "gone"}]}', {"error": "CMN-101 gone"}),
        ('{"error": {"code": 40014, "message": "no"}}', {"error": "40014 no"}),
        ('{"error": {"type": "rate_error", "message": "slow"}}', {"error": "rate_error slow"}),
        ('{"error": "invalid_grant", "error_description": "no"}', {"error": "invalid_grant no"}),
        ("POST /x returns 409 slot_taken", {"error": "slot_taken", "paths": ["/x"]}),
        ("error code: `slot_taken`", {"error": "slot_taken"}),
        ("POST /bookings 402", {"error": "402", "paths": ["/bookings"]}),
        ('"DELETE /customers/cus_1 HTTP/1.1" 409 153', {"error": "409"}),
        ("POST /bookings returns 422", {"error": "422"}),
        ("POST /bookings 返回 422", {"error": "422"}),
        ("error 402", {"error": "402"}),
        ("报错 404", {"error": "404"}),
        ("GET /bookings 200", {"error": None}),
        ("get 500 items", {"error": None}),
        ("GET /orders 500 times per minute", {"error": None}),
        ("the retry waits on error 500 ms", {"error": None}),
        ("GET /orders 500次会限流吗", {"error": None}),
        ("Is page_size 500 allowed?", {"error": None}),
        ("报错：签名不正确", {"error": "签名不正确"}),
        ("error: insufficient balance.", {"error": "insufficient balance"}),
        ("{not json} {'a': 1}", {"request_param": {}, "prose": "{not json} {'a': 1}"}),
        ('{"a": "\\ud83d"}', {"request_param": {}}),
        ("调用/dop/api/v1/ship失败", {"paths": ["/dop/api/v1/ship"]}),
        ("http://[::1 是什么", {"paths": []}),
        ("", {"prose": "", "paths": [], "error": None}),
    ],
)
def test_details_are_extracted(question: str, expected: dict[str, Any]) -> None:
    found = extract_details(question)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("40014 是什么", ["40014"]),
        ("isv.invalid-signature", ["isv.invalid-signature"]),
        ("a well-known check-in", []),
        ("order_no 12 and 123 and 1234567890", []),
        ("99991672 or -40014", ["99991672", "-40014"]),
        ("2026-07-03 12:00", []),
        ("2026/07/03 12:00:00 [ERR] 40014", ["40014"]),
        ("[03/Jul/2026:12:00:00 -0700] denied; 7/3/2026, 12:00:00 +0800", []),
        ("40013/40014 and 40013:40014", ["40013", "40014", "40013", "40014"]),
        ("INVALID_SIGN, BIL-0017 and CPN1001", ["INVALID_SIGN", "BIL-0017", "CPN1001"]),
        ("isv.missing_sign", ["isv.missing_sign"]),
        ("2024年5月和2024 年 5 月 3 日 10:00:00 报错 40014，2023年没有", ["40014"]),
        ("USG.206110004 and Node.js 3.5", ["USG.206110004"]),
        ("e.g. docs.my-site.com or chat.update", []),
        ("错误码43001，以及 43002", ["43001", "43002"]),
        ('{"return_code": "SUCCESS", "err_code": "ORDERPAID"}', ["ORDERPAID"]),
        ("getting 409 slot_taken, or hold_expired (410)", ["slot_taken", "hold_expired"]),
        ("error card_frozen and 错误码slot_taken", ["card_frozen", "slot_taken"]),
        ("it returns invalid_grant; 接口返回 card_declined", ["invalid_grant", "card_declined"]),
        ("it returns order_id; 返回 order_id", []),
        ("error: order_id is required, 报错 sku_id 不存在, 400 order_id is missing", []),
        ("order_items 500 per page", []),
        ("what is idempotency_key", []),
        ("Is page_size 500 allowed? page_size (400)", []),
        ("slot_taken status 409, slot_taken 409 error", ["slot_taken"]),
        ("hold_expired error 500 times", []),
        ("returns last_updated, returns order_created and returns date_created", []),
        ("it returns product_feed; returns is_enabled; 返回 price_table", []),
        ("returns card_declined, returns slot_unavailable, 返回 order_expired", ["card_declined", "slot_unavailable", "order_expired"]),
        ("returns email_not_verified, returns already_shipped", ["email_not_verified", "already_shipped"]),
        ('{"error": {"code": "slot_taken", "message": "x"}}', ["slot_taken"]),
        ('{"type": "card_error", "message": "x"}', ["card_error"]),
        ('{"code": "summer_sale", "type": "fixed_price"}', []),
        ('{"errorCode": "NoApp", "errorCode": "string", "order_code": "ABC"}', ["NoApp"]),
    ],
)  # fmt: skip
def test_error_codes_are_recognised_by_shape(text: str, codes: list[str]) -> None:
    assert error_codes(text) == codes


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("What does error 61056 mean?", "61056"),
        ("what does 61056 mean", "61056"),
        ("I get 61056 when creating a coupon", "61056"),
        ("is 61056 an error", "61056"),
        ("error SYS-9917 when shipping", "SYS-9917"),
        ("错误码 61056 的含义", "61056"),
        ("报错61056怎么办", "61056"),
        ("返回 61056", "61056"),
        ("发货失败 -1015", "-1015"),
        ("In 2024 the API failed, why?", None),
        ("订单 20240315 报错了", None),
        ("2024 error logs", None),
        ("it returns 5000 items", None),
        ("退款失败 1000 次", None),
        ("报错 2024/01/01", None),
        ("verification code 123456", None),
        ("what does WAIT_BUYER_PAY mean", None),
    ],
)
def test_named_error_code_is_next_to_a_word_for_an_error(question: str, code: str | None) -> None:
    assert named_error_code(question) == code


def test_number_that_is_no_year_begins_no_date() -> None:
    assert (
        without_timestamps("code 5003-1-2 on 2024-1-2, code 5003年")
        == "code 5003-1-2 on  , code 5003年"
    )


def test_terms_of_a_letter_a_sign_and_a_number_are_recognised() -> None:
    text = "什么是T+1？ D+0, T-2 or 1+1, utf-8, v-1.2, a-b, T+1+2"
    assert single_letter_terms(text) == ["T+1", "D+0", "T-2"]


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "unit",
    [
        "trace-",
        "a-",
        "a.",
        "trace id ",
        "返回 ",
        "{",
        "[[",
        "/a",
        "http://",
        '{"a":',
        " ",
        "a_",
        "409 a_",
        "error ",
        "GET /",
        '"code":"a_',
    ],
)
def test_long_repetitions_do_not_hang(unit: str) -> None:
    text = unit * (20_000 // len(unit)) + "!"
    assert extract_details(text) is not None
    assert isinstance(error_codes(text), list)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ('{"status": "failed", "retcode": 1400, "data": null}', "1400"),
        ('{"err_no": 28001003, "err_msg": "token expired", "data": {}}', "28001003 token expired"),
        ('{"sub_code": "isv.invalid-sign", "sub_msg": "bad sign"}', "isv.invalid-sign bad sign"),
        ('{"error_code": "USG.206110004", "error_msg": "full"}', "USG.206110004 full"),
        ('{"errorCode": "NoApp", "errorMessage": "no such app"}', "NoApp no such app"),
        ('{"retcode": 0, "data": {"level": 3}}', None),
        ('{"code": "SUCCESS", "msg": "OK", "sub_code": "71101"}', "71101"),
        ('{"code": "SUCCESS", "sub_code": "71101", "sub_msg": "余额不足"}', "71101 余额不足"),
        ('{"return_code": "SUCCESS", "result_code": "FAIL", "err_code": "ORDERPAID"}', "ORDERPAID"),
        ('{"return_code": "SUCCESS", "result_code": "FAIL"}', "FAIL"),
        ('{"code": 1, "errmsg": "balance too low"}', "1 balance too low"),
        ('{"errmsg": "balance too low", "data": null}', "balance too low"),
        ('{"code": 0, "errmsg": "completed", "data": {}}', None),
        ('{"code": 0, "subMsg": "处理中", "data": {}}', None),
        ('{"success": true, "errorMessage": "none"}', None),
        ('{"errcode": 0, "errmsg": "请求成功"}', None),
        ('{"code": "10000", "msg": "Success", "sub_code": ""}', None),
        ('{"code": "SUCCESS", "message": "accepted", "data": {}}', None),
        ('{"error": false, "data": {}}', None),
        ('{"ret": -1, "message": "no access"}', "-1 no access"),
    ],
)
def test_code_of_a_pasted_response_is_found_under_other_keys(
    response: str, error: str | None
) -> None:
    details = extract_details(f"{response} why")
    assert details.response is not None
    assert details.error == error


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ('{"type": "invalid_request", "message": "It is locked", "param": null}', "It is locked"),
        ('{"type": "api_error", "message": "We are down"}', "We are down"),
        ('{"type": "card_error", "message": "It is declined"}', "card_error It is declined"),
        ('{"type": "LockError", "message": "It is locked"}', "It is locked"),
        ('{"error": {"type": "api_error", "code": null, "message": "It is locked"}}', "It is locked"),
        ('{"status": 409, "message": "It is locked"}', "It is locked"),
        ('{"status": 409, "message": "Conflict"}', "409 Conflict"),
        ('{"status": "error", "message": "It is locked"}', "It is locked"),
        ('{"status": 404, "error": "Not Found", "path": "/x"}', "Not Found"),
        ('{"type": "about:blank", "title": "Gone", "status": 410}', "410 Gone"),
        ('{"type": "https://x.dev/e/locked", "title": "It is locked", "detail": "By Ada."}', "It is locked By Ada."),
        ('{"error": {"code": 409, "message": "It is locked", "status": "ABORTED"}}', "It is locked"),
        ('{"errors": [{"status": "409", "title": "Conflict", "detail": "Locked"}]}', "409 Conflict Locked"),
        ('{"errors": [{"message": "It is locked", "extensions": {"code": "X"}}], "id": 1}', "It is locked"),
        ('{"errcode": 40014, "errmsg": "It is locked"}', "40014 It is locked"),
        ('{"value": {"code": "409", "message": "It is locked"}}', "It is locked"),
    ],
)  # fmt: skip
def test_error_in_a_common_format_is_a_response(response: str, error: str) -> None:
    details = extract_details(f"{response} why?")
    assert details.request_param == {}
    assert details.error == error


@pytest.mark.parametrize(
    "body",
    [
        '{"type": "text", "message": "Hello"}',
        '{"type": "notification", "title": "Hello", "message": "It is locked"}',
        '{"title": "NDA", "status": "draft", "message": "Please sign"}',
        '{"title": "NDA", "detail": "Please sign"}',
        '{"status": "completed", "message": "Thanks"}',
        '{"to": "u1", "type": "card_message", "message": {"text": "Hello"}}',
    ],
)
def test_body_of_a_request_with_a_message_is_not_a_response(body: str) -> None:
    details = extract_details(f"{body} why?")
    assert (details.response, details.error) == (None, None)


@pytest.mark.parametrize(
    ("before", "is_request"),
    [
        ("how do I call POST /chat with ", True),
        ("POST /chat with the body `", True),
        ("request body:\n```json\n", True),
        ("/chat 请求体是 ", True),
        ("POST /chat with ", True),
        ("The kiln responds to POST /chat with ", False),
        ("窑炉发送 ", False),
        ("怎么给 /chat 传", True),
        ("发送 ", True),
        ("我传 ", True),
        ("昨天我们发送了", True),
        ("When I POST /v1/kilns with ", True),
        ("curl -X POST https://kilns.example/v1/kilns -d '", True),
        ("curl https://kilns.example/v1/kilns --data-raw '", True),
        ("服务器发送 ", False),
        ("调用 /chat 传", True),
        ("平台向 /hook 发送 ", False),
        ("回调里给我传 ", False),
        ("I get an answer from POST /chat with ", False),
        ("POST /chat fails with ", False),
        ("POST /chat returns the response body ", False),
        ("/chat 回传 ", False),
        ("", False),
    ],
)
def test_text_before_a_body_says_that_it_is_a_request(before: str, is_request: bool) -> None:
    details = extract_details(before + '{"message": "hello"}')
    expected = ({"message": "hello"}, None) if is_request else ({}, "hello")
    assert (details.request_param, details.error) == expected


@pytest.mark.parametrize(
    "before", ["the kiln answers POST /firings with ", "平台向我的回调地址发送 ", "回调里给我传 "]
)
def test_body_with_a_code_is_a_response_whatever_the_text_before_says(before: str) -> None:
    details = extract_details(before + '{"code": 40377, "msg": "lid open"}')
    assert (details.request_param, details.error) == ({}, "40377 lid open")


@pytest.mark.parametrize(
    ("answer", "error"),
    [('{"code": 40001, "message": "bad lid"}', "40001 bad lid"), ('{"message": "bad"}', "bad")],
)
def test_message_before_a_response_is_a_request(answer: str, error: str) -> None:
    details = extract_details(f'I sent {{"message": "hello"}} to POST /kilns and got {answer}')
    assert (details.request_param, details.error) == ({"message": "hello"}, error)


def test_equal_bodies_are_read_by_the_text_before_each() -> None:
    body = '{"message": "hello"}'
    details = extract_details(f"the request body {body} returns {body}")
    assert (details.request_param, details.error) == ({"message": "hello"}, "hello")


def test_frames_of_a_stack_trace_are_not_details() -> None:
    details = extract_details(
        "Error: read ECONNRESET\n    at Socket.read (/app/orders/read.js:217:20)\nwhy?"
    )
    assert (details.asked, details.paths) == ("Error: read ECONNRESET why? read ECONNRESET", [])
    assert "217" in details.question
    assert "217" not in details.text


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("what does --Draft do", ["--draft"]),
        ("-f 是什么，参数--dry-run呢", ["-f", "--dry-run"]),
        ("`--file`, `-f` and --to=x", ["--file", "-f", "--to"]),
        ("a well-known check-in - it fails--twice, -1, x-y, ---", []),
        ("why does `curl -X POST \\\n --data x /orders` fail", []),
        ("npm install --save x\nand then --draft", ["--draft"]),
    ],
)
def test_flags_are_recognised_by_their_dashes(text: str, flags: list[str]) -> None:
    assert command_flags(text) == flags


def test_words_in_pasted_json_are_searched_for_but_not_its_other_values() -> None:
    details = extract_details(
        'now what? {"id": "rfd_88", "reason": "bank_rejected", "amount": 4200, "data": {"by": "x1"}}'
    )
    assert details.asked == "now what?"
    assert details.search_query == "now what? bank_rejected"


def test_words_that_say_only_success_or_failure_are_not_searched_for() -> None:
    body = '{"status": "SUCCESS", "result": "failed", "state": "ok", "reason": "bank_rejected"}'
    assert extract_details(f"{body} why").search_query == "why bank_rejected"


def test_code_in_the_text_is_searched_for_once() -> None:
    assert extract_details("getting 409 slot_taken").search_query == "getting 409 slot_taken"


def test_compound_names_in_pasted_json_are_searched_for_unless_there_is_an_error() -> None:
    body = '{"lostPackets": 35, "delay": 48, "meeting_id": 7}'
    assert extract_details(f"{body} ok?").search_query == "ok? lostPackets meeting_id"
    failed = extract_details(f'{body} {{"code": 40014, "msg": "denied", "trace_id": "a1"}} why?')
    assert failed.search_query == "why? 40014 denied"
