"""Extraction of the details pasted into a question: URLs, paths, JSON, XML, trace ids and errors."""

import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from pydantic import JsonValue, TypeAdapter

from ingestion.text.words import plain_key, split_words
from runnables.question.error_codes import (
    ERROR_CODE,
    ERROR_STATUS,
    SUCCESS,
    failed_status,
    is_specific_code,
    lower_case_codes,
)
from runnables.question.stack_trace import remove_frames
from runnables.question.xml_bodies import replace_xml
from schemas.question import GENERAL_OUTCOME, ExtractedDetails, Question

JsonObject = dict[str, JsonValue]

_JSON_OBJECT = TypeAdapter(JsonObject)

URL = re.compile(r"https?://[^\s\"'<>，。；、）)】\]]+", re.IGNORECASE)
_SEGMENT = r"(?::?[A-Za-z0-9_.{}-]+(?::[A-Za-z0-9_.{}-]+)*|<[A-Za-z][A-Za-z0-9_.-]{0,60}>)"
"""A segment of a path, such as `{id}`, `:id`, `<id>` and `urn:acme:orders`."""
_PATH = re.compile(
    r"(?<![A-Za-z0-9_/.:-])"
    rf"(?:/(?=[A-Za-z]){_SEGMENT}(?:/{_SEGMENT})*|[A-Za-z][A-Za-z0-9_.-]*(?:/{_SEGMENT}){{2,}})/?"
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

_CODE_KEY = re.compile(r"(?:err|fail|reason|result|ret|sub)(?:or|ure)?(?:code|no)$|error$")
"""Matches the end of the key of an error code, in the form of `plain_key`: `deliveryerrorcode`."""


_SINGLE_LETTER_TERM = re.compile(r"(?<![\w+/.-])[A-Za-z][+/-]\d{1,3}(?![\w+/-]|\.\d)", re.ASCII)

_FLAG = re.compile(
    r"(?<![^\s\"'`“‘(（\[|,，、/\u4e00-\u9fff])(?:--[a-z][a-z0-9]*(?:-[a-z0-9]+)*|-[a-z])(?![\w-])",
    re.IGNORECASE | re.ASCII,
)
"""A flag such as `--draft` or `-f`, but not the dashes within a word or before a number."""

_GENERAL_COMMAND = re.compile(
    r"(?<![\w./-])(?:curl|wget|npm|npx|yarn|pnpm|pip3?|docker|git|kubectl|helm|brew|openssl|ssh)\s"
    r"(?:\\\n|[^\n])*"
)
"""A command of a tool that every platform uses, such as `curl -X POST`, to the end of its last line."""

_REQUEST_BEFORE = re.compile(
    r"(?:(?P<answer>(?:\b(?:answer|repl|respon|reject|block|refus|error|fail)\w*"
    r"(?:\s(?:to|of|for|on))?(?:\s(?:an?|my|the|every|each))?|\bfrom)\s)?"
    r"\b(?:GET|POST|PUT|PATCH|DELETE)\s/\S*\swith(?:\s(?:the\s)?body)?|\brequest body|请求体"
    r"|(?<!\S)(?:-d|--data(?:-raw)?)"
    r"|(?:(?:\A|[，,。；;？?！!]|(?<![给向对])我们?|怎么|如何)(?:[给向往]\s?/\S{0,200})?"
    r"|调用\s?/\S{0,200})\s?(?:发送|传)[了入]?)"
    r"\s?(?:is\s|[是为:：=])?\s?(?:```\w*\s)?[\s`'\"]?\Z",
    re.IGNORECASE,
)
"""Matches text before JSON that is a request, or its `answer`, as in "replies to POST /chat with"."""

_CODE_KEYS = (
    "code", "returncode", "resultcode", "errcode", "errorcode", "retcode", "errno", "error",
    "subcode", "ret",
)  # fmt: skip
_MESSAGE_KEYS = (
    "message", "msg", "retmsg", "returnmsg",
    "errmsg", "errormsg", "errormessage", "errordescription", "errcodedes", "submsg",
)  # fmt: skip
"""Keys of the messages in a response, in the form that `plain_key` returns.

`_error_of` reads first the keys in `_CODE_KEYS` and then these, both in the order given here.
"""

_PROBLEM_KEYS = ("title", "detail")
"""Keys of messages, but only in a body with the status or type of an error (see `_states_error`)."""

_ENVELOPE_KEYS = ("value", "data", "result", "response", "body", "detail")
"""Keys under which some platforms put the whole response, as the only key of the body."""

_STATUS_KEYS = ("status", "statuscode", "httpstatus", "code")
_HTTP_ERROR = re.compile(ERROR_STATUS)
_NUMERIC_CODE = re.compile(r"-\d{1,9}|\d{3,9}", re.ASCII)
_STATUS_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus)
"""The standard phrases of HTTP statuses, such as "not found"."""

_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.:/]")
"""Matches the place between two words of a kind of error, as in `cardError` and `card-error`."""

_ERROR_KIND = re.compile(
    r"(?:^|_)(?:err|errors?|exception|fail|failed|failure|fault|invalid|bad|not|missing|denied|exceeded"
    r"|unauthorized|forbidden|conflict)(?:_|$)"
)
"""Matches a kind of error, such as `card_error` and `not_found`. `_` separates its words."""

_PROBLEM_TYPE = re.compile(r"(?:https?|urn|about):")
"""Matches the start of the type of an error in the format of RFC 9457, which is a URI."""

_RESPONSE_KEYS = {*_CODE_KEYS, *_MESSAGE_KEYS, "traceid", "requestid", "success", "errors", "data"}


def extract_details(question: str) -> ExtractedDetails:
    """Return the details pasted into `question`; all other text stays prose.

    The frames of stack traces are ignored. XML is read like JSON.
    """
    text = replace_xml(remove_frames(question))
    bodies, prose = take_json(text, " ")
    urls, prose = _take(URL, prose)
    traces, prose = _take(_TRACE, prose)
    paths, prose = _take(_PATH, prose)
    details = ExtractedDetails(question, text, _one_line(prose))
    for url in urls:
        path, query = _path_and_query(url)
        details.paths.append(path)
        details.request_param.update(query)
    paths = [*details.paths, *map(_without_line, paths)]
    details.paths = [path.rstrip("/") for path in paths if path.strip("/")]
    details.response = _response_among(bodies, text)
    for _, body in bodies:
        if body is not details.response:
            details.request_param.update(body)
    details.trace_id = traces[0] if traces else _trace_id_of(details.response)
    details.error = (
        _error_of(details.response)
        or _error_in(prose)
        or _code_in(details.request_param)
        or next(iter(lower_case_codes(prose)), None)
        or failed_status(text)
    )
    return details


def details_of(question: Question) -> ExtractedDetails:
    """Return the details stored in the question; extract them if they are missing or of another text."""
    details = question.details
    if details is not None and details.question == question.text:
        return details
    return extract_details(question.text)


def single_letter_terms(text: str) -> list[str]:
    """Return the terms in `text` such as `T+1`: a letter, one of `+`, `-` and `/`, and a number."""
    return _SINGLE_LETTER_TERM.findall(text)


def code_in_response(details: ExtractedDetails) -> str:
    """Return the numeric error code of a pasted response, such as `-352`; empty if it has none.

    The status of an HTTP error, or a number of one or two digits without a sign, does not count.
    """
    first_word = (details.error or "").partition(" ")[0]
    is_code = details.response is not None and _NUMERIC_CODE.fullmatch(first_word)
    return first_word if is_code and not _HTTP_ERROR.fullmatch(first_word) else ""


def command_flags(text: str) -> list[str]:
    """Return the flags in `text`, such as `--draft` and `-f`, in lower case.

    Flags of general tools such as curl do not count, because documents need not describe them.
    """
    if "-" not in text:  # most questions
        return []
    return list(dict.fromkeys(map(str.lower, _FLAG.findall(_GENERAL_COMMAND.sub(" ", text)))))


def _take(pattern: re.Pattern[str], text: str) -> tuple[list[str], str]:
    """Return the matches in `text` (only their group, if `pattern` has one), and `text` without them."""
    return pattern.findall(text), pattern.sub(" ", text)


def _without_line(path: str) -> str:
    """Return `path` without the line and column in a source file: `src/app.py` for `src/app.py:12:5`."""
    return re.sub(r"(?::\d+){1,2}$", "", path)


def _error_in(prose: str) -> str | None:
    match = _ERROR.search(prose)
    return match[1].strip(" ，。,.;；`") if match else None


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


def _response_among(bodies: Iterable[tuple[str, JsonObject]], text: str) -> JsonObject | None:
    """Return the first of the `bodies` in `text` that looks like a response; None if there is none.

    An object with a message as its only key may be a request. It is the response only if no other body is,
    it is the last such object, and the text before it does not say that it is a request.
    """
    last = None
    for raw, body in bodies:
        fields = _by_plain_key(body)
        if any(fields.keys() == {key} for key in _MESSAGE_KEYS):
            last = raw, body
        elif _is_response(fields):
            return body
    if last is None:
        return None
    request = _REQUEST_BEFORE.search(text.rpartition(last[0])[0])
    return last[1] if request is None or request["answer"] else None


def _is_response(fields: JsonObject) -> bool:
    """Return whether pasted JSON is a response.

    It is a response if its keys are typical of a response, if it contains an error object, or if it
    contains a message together with the status or type of an error. Without such a status or type, a
    `message` or `title` is not enough, because requests may have these keys as well. An object with
    `message` as its only key is a response.
    """
    keys = fields.keys()
    if keys and len(keys & _RESPONSE_KEYS) >= min(2, len(keys)):
        return True
    if _inner_error(fields) is not None:
        return True
    has_message = bool(_texts(fields, ("error", *_MESSAGE_KEYS, *_PROBLEM_KEYS)))
    return has_message and _states_error(fields)


def _inner_error(fields: JsonObject) -> JsonObject | None:
    """Return the object under the key `error`, or the first object under the key `errors`.

    If `fields` is only an envelope of an object with a code and a message, this object is returned.
    """
    for key in ("error", "errors"):
        inner = fields.get(key)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict):
            return inner
    content = next((fields[key] for key in _ENVELOPE_KEYS if fields.keys() == {key}), None)
    if isinstance(content, dict):
        inner_keys = _by_plain_key(content).keys()
        if not inner_keys.isdisjoint(_CODE_KEYS) and not inner_keys.isdisjoint(_MESSAGE_KEYS):
            return content
    return None


def _states_error(fields: JsonObject) -> bool:
    """Return whether the status or type is that of an error, such as 409 or `card_error`.

    In an object with a title or a detail, a type that is a URI also states an error.
    """
    statuses = _texts(fields, _STATUS_KEYS).values()
    if any(map(_HTTP_ERROR.fullmatch, statuses)):
        return True
    kinds = _texts(fields, ("type", "status")).values()
    if any(_ERROR_KIND.search(_WORD_BREAK.sub("_", kind).lower()) for kind in kinds):
        return True
    is_problem = bool(_texts(fields, _PROBLEM_KEYS))
    return is_problem and _PROBLEM_TYPE.match(str(fields.get("type"))) is not None


def _trace_id_of(response: JsonValue) -> str | None:
    if not isinstance(response, dict):
        return None
    values = map(_by_plain_key(response).get, ("traceid", "requestid"))
    return next((str(value) for value in values if value), None)


def _error_of(response: JsonValue) -> str | None:
    """Return the codes and messages of a failed response; None for any other value.

    A response has failed if one of its codes is not a success code. The key `code` is ignored if `success`
    or the message says that the call succeeded. A response without a code has failed if it has a message
    and nothing says that it succeeded. The code and message may be nested, as in
    `{"errors": [{"code": "E1", "message": "expired"}]}`. An HTTP status is left out if a message is a
    sentence.
    """
    if not isinstance(response, dict):
        return None
    fields = _by_plain_key(response)
    if (inner := _inner_error(fields)) and (found := _error_of(inner)):
        return found
    message_keys = (*_PROBLEM_KEYS, *_MESSAGE_KEYS) if _states_error(fields) else _MESSAGE_KEYS
    codes, messages = _texts(fields, _CODE_KEYS), _texts(fields, message_keys)
    has_sentence = any(map(_is_sentence, messages.values()))
    if not codes:  # such as the type "rate_limit_error" of an error with a message
        codes = {
            key: text
            for key, text in _texts(fields, ("type", *_STATUS_KEYS)).items()
            if _HTTP_ERROR.fullmatch(text) or (key == "type" and _is_error_name(text))
        }
    is_success = fields.get("success") is True or any(
        SUCCESS.fullmatch(messages.get(key, "")) for key in ("message", "msg")
    )
    if is_success:  # such as code 10000 with the message "Success"
        codes.pop("code", None)
    failed = [code for code in codes.values() if not SUCCESS.fullmatch(code)]
    if (codes or is_success) and not failed:
        return None
    if has_sentence:  # which is more specific than a status
        failed = [code for code in failed if not _HTTP_ERROR.fullmatch(code)]
    texts = [message for message in messages.values() if not SUCCESS.fullmatch(message)]
    return " ".join([*filter(is_specific_code, failed), *texts] or failed) or None


def _texts(fields: JsonObject, keys: Iterable[str]) -> dict[str, str]:
    """Return the values of `keys` as text, without empty values and booleans."""
    values = {key: fields.get(key) for key in keys}
    return {
        key: str(value)
        for key, value in values.items()
        if value not in (None, "", {}, []) and not isinstance(value, bool)
    }


def _is_error_name(text: str) -> bool:
    """Return whether `text` names a specific error, such as `card_error`, unlike `api_error`."""
    is_name = "_" in text and text.replace("_", "").isalnum()
    return is_name and not GENERAL_OUTCOME.fullmatch(text)


def _is_sentence(message: str) -> bool:
    """Return whether `message` says what is wrong, unlike a word, or a phrase such as "Not Found"."""
    return len(split_words(message)) > 1 and message.lower() not in _STATUS_PHRASES


def _code_in(parameters: JsonObject) -> str | None:
    """Return the first error code in `parameters` under a key such as `delivery_error_code`.

    The parameters include pasted JSON whose keys do not show that it is a response.
    """
    values = (str(value) for key, value in parameters.items() if _CODE_KEY.search(plain_key(key)))
    return next((value for value in values if ERROR_CODE.fullmatch(value)), None)


def _by_plain_key(body: JsonObject) -> JsonObject:
    return {plain_key(key): value for key, value in body.items()}


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"```\w*", " ", text)).strip(" ,，;；:：")
