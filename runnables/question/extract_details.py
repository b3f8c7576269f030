"""Extraction of the details pasted into a question: URLs, paths, JSON, trace ids and errors."""

import json
import re
from urllib.parse import parse_qsl, urlsplit

from pydantic import JsonValue, TypeAdapter

from ingestion.text.words import plain_key
from schemas.question import ExtractedDetails, Question

JsonObject = dict[str, JsonValue]

_JSON_OBJECT = TypeAdapter(JsonObject)

URL = re.compile(r"https?://[^\s\"'<>，。；、）)】\]]+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![A-Za-z0-9_/.:-])"
    r"(?:/[A-Za-z][A-Za-z0-9_.{}-]*(?:/[A-Za-z0-9_.{}-]+)*"
    r"|[A-Za-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.{}-]+){2,})/?"
)
_TRACE = re.compile(
    r"\b(?:[a-z]{1,20}[-_]){0,3}(?:trace(?:[-_ ]?id)?|request[-_ ]?id)\b"
    r"[\"']?\s{0,9}(?:[:：=]|是|为|is\b)?\s{0,9}[\"']?"
    r"(?=[A-Za-z-]{0,64}\d)([A-Za-z0-9][A-Za-z0-9-]{7,63})",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"(?:报错(?:信息)?|错误(?:信息|提示|码)?|提示|返回|异常|\berror(?:[ _](?:message|code))?|"
    r"\bexception|\bmessage|\bmsg)\s{0,9}(?:[:：=]|是|为|\bis\b)\s{0,9}[\"'“「]?([^\"'”」\n]{2,200})",
    re.IGNORECASE,
)
_ERROR_CODE = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:[a-z]{2,40}(?:\.[a-z]{1,40}){1,4}(?:[_-][a-z]{1,40}){1,6}|-?\d{4,9}"
    r"|[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8}|[A-Z]{2,8}(?:-[A-Z]{1,8}){0,3}[.-]?\d{3,9})"
    r"(?![A-Za-z0-9_-]|\.\w)"
)
_CODE_KEY = re.compile(r"(?:err|fail|reason|result|ret|sub)(?:or|ure)?(?:code|no)$|error$")
"""Matches the end of a key such as `deliveryErrorCode`, as `plain_key` returns it."""
_MESSAGE_KEYS = (
    "code", "errcode", "errorcode", "retcode", "errno", "error", "subcode",
    "message", "msg", "errmsg", "errormsg", "errormessage", "errordescription", "retmsg", "submsg",
)  # fmt: skip
"""Keys of the code and the message in the response of a failed call, as `plain_key` returns them.

`_error_of` reads them in this order.
"""

_RESPONSE_KEYS = {*_MESSAGE_KEYS, "traceid", "requestid", "success", "errors", "data"}
_SUCCESS = {"0", "200", "success", "ok", "true"}


def extract_details(question: str) -> ExtractedDetails:
    """Return the details pasted into `question`; all other text stays prose."""
    bodies, prose = take_json(question, " ")
    urls, prose = _take(URL, prose)
    traces, prose = _take(_TRACE, prose)
    paths, prose = _take(_PATH, prose)
    details = ExtractedDetails(question, _one_line(prose))
    for url in urls:
        path, query = _path_and_query(url)
        details.paths.append(path)
        details.request_param.update(query)
    details.paths = [path.rstrip("/") for path in [*details.paths, *paths] if path.strip("/")]
    for _, body in bodies:
        _assign_body(body, details)
    details.trace_id = traces[0] if traces else _trace_id_of(details.response)
    details.error = (
        _error_of(details.response) or _error_in(prose) or _code_in(details.request_param)
    )
    return details


def details_of(question: Question) -> ExtractedDetails:
    """Return the details stored in the question; extract them if they are missing or of another text."""
    details = question.details
    if details is not None and details.text == question.text:
        return details
    return extract_details(question.text)


def error_codes(text: str) -> list[str]:
    """Return the codes in `text`, such as `40014`, `-1001`, `isv.invalid-sign`, `SIGN_ERROR`, `BIL-0017`.

    A code is one of these:

    - a number of 4 to 9 digits
    - lower-case words joined by dots, with a `-` or `_` in the last one, so that domains and methods are
      not codes
    - words in capitals joined by `_`
    - capitals and then digits, such as `BIL-0017`, `BIL0017` or `SMS-UP-432`
    """
    return _ERROR_CODE.findall(text)


def _take(pattern: re.Pattern[str], text: str) -> tuple[list[str], str]:
    """Return the matches in `text` (only their group, if `pattern` has one), and `text` without them."""
    return pattern.findall(text), pattern.sub(" ", text)


def _error_in(prose: str) -> str | None:
    match = _ERROR.search(prose)
    return match[1].strip(" ，。,.;；") if match else None


def take_json(text: str, placeholder: str) -> tuple[list[tuple[str, JsonObject]], str]:
    """Return the JSON objects in `text`, each as text and value, and `text` with placeholders for them."""
    decoder = json.JSONDecoder()
    bodies: list[tuple[str, JsonObject]] = []
    position = 0
    while (start := text.find("{", position)) >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
            body = _JSON_OBJECT.validate_python(value)
            _JSON_OBJECT.dump_json(body)  # lone surrogates can be parsed, but not encoded
        except (ValueError, RecursionError):
            position = start + 1
            continue
        bodies.append((text[start:end], body))
        text = f"{text[:start]}{placeholder}{text[end:]}"
        position = start + len(placeholder)
    return bodies, text


def _path_and_query(url: str) -> tuple[str, dict[str, str]]:
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed bracket of an IPv6 address
        return "", {}
    return parts.path, dict(parse_qsl(parts.query))


def _assign_body(body: JsonObject, details: ExtractedDetails) -> None:
    """Store `body` as the response if its keys are typical of one, otherwise as request parameters."""
    keys = _by_plain_key(body).keys()
    is_response = bool(keys) and len(keys & _RESPONSE_KEYS) >= min(2, len(keys))
    if is_response and details.response is None:
        details.response = body
    else:
        details.request_param.update(body)


def _trace_id_of(response: JsonValue) -> str | None:
    if not isinstance(response, dict):
        return None
    values = map(_by_plain_key(response).get, ("traceid", "requestid"))
    return next((str(value) for value in values if value), None)


def _error_of(response: JsonValue) -> str | None:
    """Return the code and message of a failed response; None for any other value.

    The code and message may be nested, as in `{"errors": [{"code": "E1", "message": "expired"}]}`.
    """
    if not isinstance(response, dict):
        return None
    fields = _by_plain_key(response)
    for key in ("error", "errors"):
        inner = fields.get(key)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict) and (found := _error_of(inner)):
            return found
    values = [str(fields[key]) for key in _MESSAGE_KEYS if fields.get(key) not in (None, "")]
    if not values or values[0].lower() in _SUCCESS or fields.get("success") is True:
        return None
    return " ".join(values)


def _code_in(body: JsonObject) -> str | None:
    """Return the first error code in an object whose keys do not show that it is a response."""
    values = (str(value) for key, value in body.items() if _CODE_KEY.search(plain_key(key)))
    return next((value for value in values if _ERROR_CODE.fullmatch(value)), None)


def _by_plain_key(body: JsonObject) -> JsonObject:
    return {plain_key(key): value for key, value in body.items()}


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"```\w*", " ", text)).strip(" ,，;；:：")
