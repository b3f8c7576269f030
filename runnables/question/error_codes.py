"""Finds error codes in text: numbers and words that are the code, or the HTTP status, of an error.

The functions do not know the documents. They decide by the form of a number or word, and by the text next
to it, whether it is a code.
"""

import re

ERROR_CODE = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:[a-z]{2,40}(?:\.[a-z]{1,40}){1,4}(?:[_-][a-z]{1,40}){1,6}|-?\d{4,9}"
    r"|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8}|[A-Z]{2,8}(?:-[A-Z]{1,8}){0,3}[.-]?\d{3,9})"
    r"(?![A-Za-z0-9_]|-(?![\u4e00-\u9fff])|\.\w)"
)
"""A code (see `error_codes`). A dash and its message may follow: `50036-电子凭证已过期`."""

_TIMESTAMP = re.compile(
    r"(?<![\w/.-])(?:(?:(?:19|20)\d\d[/-]\d{1,2}[/-]\d{1,2}"
    r"|(?:19|20)\d\d\s?年(?:\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?)?"
    r"|\d{1,2}/(?:\d{1,2}|[A-Z][a-z]{2})/\d{4})"
    r"(?:[T:\s]\s?\d{1,2}:\d\d(?::\d\d)?)?|\d{1,2}:\d\d:\d\d)"
    r"(?:[.,]\d{1,9})?(?:Z|\s?[+-]\d\d:?\d\d)?(?![\w/])",
    re.ASCII,
)
"""Matches a date such as 2024年5月, a time with seconds, or both: `2024/05/01 10:00:00,123 +0800`."""

_ERROR_BEFORE = re.compile(
    r"(?:(?:报错|错误码?|异常码?|返回码|状态码|失败)了?[是为]?"
    r"|(?<![A-Za-z_])(?:(?:err(?:or)?|return|result|status|failure)[ _-]?(?:codes?|no|number)?"
    r"|failed with|(?:\A|\b(?:the|an?|with)\s)code)(?:\sis)?)[\s:：=#\"'`“「(（\[]{0,3}\Z",
    re.IGNORECASE,
)
"""Matches a word such as "error" or 报错 at the end of a text.

The pattern is applied to the text before a code, as in "error 61056".
"""

_RETURN_BEFORE = re.compile(
    r"(?:(?:返回|报|出现|提示|遇到)了?"
    r"|(?<![A-Za-z_])(?:gets?|got|getting|gives?|returns?|returned|throws?)(?:\san?)?(?:\scode)?)"
    r"[\s:：=\"'`“「]{0,3}\Z",
    re.IGNORECASE,
)
"""Matches a word such as "returns" or 返回 at the end of the text before a number."""

_ERROR_AFTER = re.compile(
    r"[\s\"'`”」)）\]]{0,2}(?:错误(?!率)|(?:an?\s)?error\b(?!\s(?:logs?|rates?|reports?))"
    r"|什么意思|是什么|啥意思|means?\b|(?:怎么样?|怎样|如何|咋)(?:解决|处理|修复|排查)\W*\Z)",
    re.IGNORECASE,
)
"""Matches the text after a number if it shows that the number is an error.

For example, "61056 error", "61056 means" and 61056 怎么解决 ("how to fix 61056").
"""

_UNIT_AFTER = re.compile(r"\s?(?:[个条次人元块天秒分小时日月年度笔件单页%％]|[/:.,]\d)")
"""Matches the text after a number if the number is an amount or part of a date: `3个`, `50%`, `2024/05`."""

_COUNTED_AFTER = re.compile(
    r"\s?的|\s(?!(?:when|while|if|on|for|in|from|after|during|and|but|with|is|means?|error)\b)[a-z]{3,}"
)
"""Matches the text after a number if the number may count what follows: "5000 items", 5000 的.

Words such as "when" do not match, because they continue the sentence: "returns 5000 when".
"""

_VALUE_OF_CODE_KEY = re.compile(
    r"(?:err(?:or)?|sub|ret(?:urn)?|result)_?(?:code|no)[\"']\s{0,9}:\s{0,9}"
    r"[\"']([a-z][\w.-]{1,60})[\"']",
    re.IGNORECASE | re.ASCII,
)
"""Matches a word as the value of a JSON key such as `err_code`: `"err_code": "NoApp"`."""

_SNAKE_CASE = (
    r"(?<![A-Za-z0-9_.{/-])([a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,8})(?![A-Za-z0-9_/-]|\.\w)"
)
"""Matches words that are joined by `_`, such as `card_declined`."""

_NOT_A_FIELD = (
    r"(?![\"'`”]?\s?(?:(?:is|are|was|must|has|should|cannot|can't|missing|required|not|needs|per)\b"
    r"|[不必未没缺为非超]|格式|无效|长度|类型))"
)
"""Excludes names before a statement about a field, as in "error: order_id is required"."""

ERROR_STATUS = r"(?:4(?:0[0-689]|1[0-7]|2[1-9]|31|51)|50[0-8])"
"""Matches an HTTP error status."""

_NOT_A_COUNT = r"(?!\s?(?:(?:per|items|times|requests|calls|ms|seconds|minutes)\b|[次条个秒]))"
"""Excludes numbers that count something, as in "500 times per minute" and "500 ms"."""

_FAILED_CALL = re.compile(
    r"(?<![A-Za-z])(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+[\"'`]?(?:https?://|/)\S+"
    r"(?:\s+HTTP/[\d.]+[\"']?)?\s+(?:(?:returns?|gives?)\s|[-=]>\s?|返回\s?)?"
    r"|(?:errors?|http|status(?: code)?)[\s:：=]{0,3})"
    rf"({ERROR_STATUS})(?!\d){_NOT_A_COUNT}"
    rf"|(?:报错|错误码?|状态码)[\s:：=]{{0,3}}({ERROR_STATUS})(?!\d){_NOT_A_COUNT}",
    re.IGNORECASE,
)
"""Matches an HTTP error status after a method and a path, or after a word such as "error" or "status".

For example, it matches "GET /orders 404", as in an access log, "status: 404" and 报错 404.
"""

_GAP = r"[\s:：=,，\"'`“(（]{1,4}"
"""The characters that may stand before a code, such as spaces, a colon or a quotation mark."""

_BEFORE_CODE = (
    rf"(?<![\d.]){ERROR_STATUS}(?:\serror)?{_GAP}|(?<![A-Za-z_])errors?(?:[ _-]?codes?)?(?:\sis)?{_GAP}"
    r"|(?:报错|错误码?|返回码|状态码)[是为]?[\s:：=\"'`“]{0,3}"
)
"""Text before an error code: an HTTP error status, or a word such as "error" or 错误码."""

_BEFORE_STATUS = r"[\"'`”]?\s?[,，(（]?\s?"
"""The characters that may stand between a code and the HTTP status after it."""

_LOWER_CASE_CODE = re.compile(
    rf"(?:{_BEFORE_CODE}){_SNAKE_CASE}{_NOT_A_FIELD}"
    rf"|{_SNAKE_CASE}{_BEFORE_STATUS}(?:(?:http|status|error)\s{ERROR_STATUS}(?![\d.%]){_NOT_A_COUNT}"
    rf"|{ERROR_STATUS}\serror\b)",
    re.IGNORECASE | re.ASCII,
)
"""Matches a code after an error word or a status, or before a status next to a word such as "HTTP".

For example, "error: slot_unavailable" and "slot_unavailable (HTTP 409)".
"""

_NAMED_FAILURE = re.compile(
    r"(?:(?<![A-Za-z_])(?:codes?|returns?|returned|returning|gets?|getting|got|gives?|throws?|fails with)"
    rf"(?:\san?|\sthe)?{_GAP}|(?:返回|遇到|提示|出现)了?[\s:：=\"'`“]{{0,3}}){_SNAKE_CASE}"
    rf"|{_SNAKE_CASE}{_BEFORE_STATUS}{ERROR_STATUS}(?![\d.%]){_NOT_A_COUNT}",
    re.IGNORECASE | re.ASCII,
)
"""Matches a code after a word such as "returns", or before a status alone: "card_declined 402"."""

_FAILURE = re.compile(
    r"^(?:in(?:valid|sufficient|correct|active)|no|not|too|bad|wrong|missing|unknown|duplicate)_"
    r"|(?:^|_)(?:not|too|already|invalid|missing)_"
    r"|^(?!(?:is|has|was|can|last|date|time|total)_)"
    r"(?!.*_(?:feed|need|seed|speed|embed|table|variable|created|updated|modified|completed|shipped"
    r"|delivered|enabled|verified)$)"
    r".*(?:ed|able|ible|_invalid|_missing|_unknown|_mismatch|_conflict|_exists?|_error|_failure|_exception)$"
)
"""Matches an error code with a word that says what is wrong, such as `card_declined`.

Fields and events such as `last_updated` and `order_created` are not errors, unlike `email_not_verified`.
"""

_VALUE_IN_FAILURE = re.compile(
    rf"[\"'](?:error(?:_?code)?|code|type)[\"']\s{{0,9}}:\s{{0,9}}[\"']{_SNAKE_CASE}[\"']",
    re.IGNORECASE | re.ASCII,
)
"""Matches a code as the value of a JSON key such as `error` or `type`: `"code": "slot_unavailable"`."""

_FAILURE_KEY = re.compile(
    r"[\"'](?:errors?|error_?code|err_?msg|error_?(?:message|description)|message|msg|detail)[\"']\s{0,9}:",
    re.IGNORECASE,
)
"""Matches a JSON key whose value is an error or a message: `"errMsg":`."""

SUCCESS = re.compile(r"0+|200|ok|true|success(?:ful(?:ly)?)?|[^不未没]{0,10}成功", re.IGNORECASE)
"""Matches a code or a message that means success, such as `0`, `ok` and 查询成功."""

_UNSPECIFIC_FAILURE = re.compile(r"fail(?:ed|ure)?|error|false", re.IGNORECASE)


def error_codes(text: str) -> list[str]:
    """Return the codes in `text`, such as `40014`, `-1001`, `isv.invalid-sign`, `SIGN_ERROR`, `BIL-0017`.

    A code is one of these:

    - a number of 4 to 9 digits
    - lower-case words joined by dots, with a `-` or `_` in the last one, unlike the domain `example.com`
      and the method `list.append`
    - words in capitals joined by `_`
    - capitals and then digits, such as `BIL-0017`, `BIL0017` or `SMS-UP-432`
    - in JSON, a word with a capital as the value of a key such as `err_code`: `ORDERPAID`, `NoApp`
    - lower-case words joined by `_` in the context of an error (see `lower_case_codes`)

    The numbers in dates and times are not codes.
    """
    codes: list[str] = ERROR_CODE.findall(without_timestamps(text))
    values = (value for value in _VALUE_OF_CODE_KEY.findall(text) if not value.islower())
    others = [*filter(is_specific_code, values), *lower_case_codes(text)]
    return [*codes, *(code for code in dict.fromkeys(others) if code not in codes)]


def without_timestamps(text: str) -> str:
    """Return `text` without dates and times such as `2024/05/01 10:00:00`, as they are in logs."""
    return _TIMESTAMP.sub(" ", text)


def named_error_code(text: str) -> str | None:
    """Return the first code that `text` names as an error, or None.

    Such a code follows a word such as "error" or 报错. A number may also follow a word such as "returns",
    or precede a word such as "error", "means" or 怎么解决. Other numbers may be years, amounts or ids.
    """
    text = without_timestamps(text)
    for match in ERROR_CODE.finditer(text):
        before, after = text[max(match.start() - 30, 0) : match.start()], text[match.end() :]
        is_number = match[0].lstrip("-").isdigit()
        if is_number and _UNIT_AFTER.match(after):
            continue
        is_returned = _RETURN_BEFORE.search(before) and not _COUNTED_AFTER.match(after)
        if _ERROR_BEFORE.search(before) or (
            is_number and (is_returned or _ERROR_AFTER.match(after))
        ):
            return match[0]
    return None


def lower_case_codes(text: str) -> list[str]:
    """Return the error codes in `text` that look like names of fields, such as `slot_unavailable`.

    Such a code counts in one of these places:

    - after an HTTP error status, or after a word such as "error" or 错误码
    - before an HTTP error status next to a word such as "error": "card_declined error 402", "card_declined
      402 error"
    - in the JSON of a response with an error or a message
    - before a status alone, as in "card_declined 402", or after a word such as "returns"; in these two
      places, the code must say what is wrong (see `_FAILURE`)
    """
    if "_" not in text:  # most questions
        return []
    matches = list(_LOWER_CASE_CODE.finditer(text))
    matches += (m for m in _NAMED_FAILURE.finditer(text) if _FAILURE.search(m[1] or m[2]))
    if _FAILURE_KEY.search(text):
        matches += _VALUE_IN_FAILURE.finditer(text)
    found = sorted((match.start(), "".join(filter(None, match.groups()))) for match in matches)
    return list(dict.fromkeys(code for _, code in found if code.islower()))


def failed_status(text: str) -> str | None:
    """Return the HTTP error status that `text` states, as in "GET /orders 404"; None if it states none."""
    match = _FAILED_CALL.search(text)
    return (match[1] or match[2]) if match else None


def is_specific_code(code: str) -> bool:
    """Return whether `code` says more than that a call succeeded or failed."""
    return not (SUCCESS.fullmatch(code) or _UNSPECIFIC_FAILURE.fullmatch(code))
