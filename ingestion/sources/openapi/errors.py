"""Finds the error codes of an operation: HTTP statuses and the platform's own codes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from ingestion.sources.openapi.operations import NamedExample, Operation, OperationResponse
from ingestion.sources.openapi.schema import Schema, SchemaReader
from ingestion.text.words import plain_key
from schemas.document import ErrorCode

MAX_ERROR_CODES = 300
"""Maximum number of error codes of one operation."""

MAX_CODE_CHARS = 100
"""Maximum length of an error code, in characters."""

_CODE_KEYS = ("code", "errorcode", "errcode", "subcode", "retcode", "error", "errno", "type")
_MESSAGE_KEYS = ("message", "msg", "errormessage", "errmsg", "errordescription", "retmsg", "detail",
                 "description", "wording", "title")  # fmt: skip
_NESTED_KEYS = ("error", "errors", "data", "response")
_CODE_LIST_ITEM = re.compile(
    r"^\s*(?:[-*+]\s+)?[`'\"]([^\s`'\"]+)[`'\"]\s*(?:[:：]|--?|—|–)\s*(\S.*)$"
)
"""A line of a response's description that explains an error code: "- `name_taken`: Choose another name"."""
_ERROR_NAME = re.compile(r"err|fail|错误|失败|异常", re.IGNORECASE)


@dataclass
class _CollectedError:
    """Message and causes of one error code, collected from descriptions, examples and schemas."""

    message: str = ""
    causes: list[str] = field(default_factory=list)

    def add(self, message: str, cause: str) -> None:
        self.message = self.message or message
        if cause and cause not in self.causes:
            self.causes.append(cause)


def errors_of_operation(operation: Operation, reader: SchemaReader) -> tuple[ErrorCode, ...]:
    """Return the error codes of `operation`. Raises SourceError.

    Each error status is followed by the codes in the description, examples and schema of its response. A
    success response contributes the codes of its error examples. Responses with a 1xx or 3xx status are
    ignored.
    """
    errors: dict[str, _CollectedError] = {}
    successes, failures = operation.success_responses, error_responses(operation)
    for response in operation.responses:
        if response in successes:
            _add_examples(errors, filter(is_error_example, response.examples), "")
        elif response in failures:
            _add_response(errors, response, reader)
    return tuple(
        ErrorCode(code=code, message=error.message, cause="; ".join(error.causes))
        for code, error in list(errors.items())[:MAX_ERROR_CODES]
    )


def error_responses(operation: Operation) -> tuple[OperationResponse, ...]:
    """Return all responses except successes and those with a 1xx or 3xx status."""
    successes = operation.success_responses
    return tuple(
        response
        for response in operation.responses
        if response not in successes and not response.status.startswith(("1", "3"))
    )


def is_error_example(named: NamedExample) -> bool:
    """Return whether the name or title of an example mentions an error.

    Platforms that always return status 200 declare errors as examples of the success response.
    """
    return bool(_ERROR_NAME.search(named.name) or _ERROR_NAME.search(named.example.title))


def listed_codes(schema: Schema, reader: SchemaReader, depth: int = 0) -> Iterator[str]:
    """Yield the codes that the schema of an error response lists in `enum`."""
    for name, nodes in schema.properties.items():
        plain = plain_key(name)
        if plain not in (*_CODE_KEYS, *_NESTED_KEYS):
            continue
        inner = reader.read(*nodes)
        listed = inner.get("enum")
        if listed is not None and plain in _CODE_KEYS and isinstance(listed.value, list):
            yield from filter(None, map(_normalise_code, listed.value[:MAX_ERROR_CODES]))
        elif depth < 1:
            yield from listed_codes(inner, reader, depth + 1)


def _add_response(
    errors: dict[str, _CollectedError], response: OperationResponse, reader: SchemaReader
) -> None:
    """Add the status of `response`, then the platform's codes in the response.

    The status `default` is added only if the response contains no codes.
    """
    code_lines = [
        match
        for line in response.description.splitlines()
        if (match := _CODE_LIST_ITEM.match(line))
    ]
    codes: dict[str, _CollectedError] = {}
    status = "" if response.status == "default" else f"HTTP {response.status}"
    for match in code_lines:
        codes.setdefault(match[1][:MAX_CODE_CHARS], _CollectedError()).add(
            "", _with_status(status, match[2].strip())
        )
    _add_examples(codes, response.examples, status)
    for media in response.media[:1]:
        for code in listed_codes(reader.read(media.schema), reader):
            error = codes.setdefault(code, _CollectedError())
            error.add("", "" if error.causes else status)
    # A code that repeats the status, such as 404, is part of the entry of the status.
    status_as_code = codes.pop(response.status, _CollectedError())
    if status or not codes:
        entry = errors.setdefault(response.status, _CollectedError())
        entry.add(
            _status_phrase(response.status) or status_as_code.message,
            _explanation(response, code_lines),
        )
    for code, error in codes.items():
        for cause in error.causes or [""]:
            errors.setdefault(code, _CollectedError()).add(error.message, cause)


def _explanation(response: OperationResponse, code_lines: list[re.Match[str]]) -> str:
    """Return the cause to show for the status of `response`: usually the whole description.

    `code_lines` match the lines of the description that explain a code. If every line explains a code, the
    result is the explanation in the line whose code is the status, such as "`404`: No such order", and a
    list of the other codes. Their explanations are left out, because each code has an entry of its own.
    """
    lines = [line for line in response.description.splitlines() if line.strip()]
    if not code_lines or len(code_lines) < len(lines):
        return response.description
    explanations = [line[2].strip() for line in code_lines if line[1] == response.status]
    others = dict.fromkeys(line[1] for line in code_lines if line[1] != response.status)
    return "; ".join(filter(None, [*explanations, ", ".join(f"`{code}`" for code in others)]))


def _add_examples(
    errors: dict[str, _CollectedError], examples: Iterable[NamedExample], status: str
) -> None:
    """Add the code in each example. Its cause is `status`, unless the code already has a cause."""
    for _, example in examples:
        code_and_message = _code_and_message(example.value)
        if code_and_message is not None:
            code, message = code_and_message
            error = errors.setdefault(code, _CollectedError())
            error.add(message, "" if error.causes else status)


def _code_and_message(value: object, depth: int = 0) -> tuple[str, str] | None:
    """Return the code and the message in an error example; None if the example contains no code."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or depth > 1:
        return None
    normalised = {plain_key(str(key)): inner for key, inner in value.items()}
    codes = (_normalise_code(normalised.get(key)) for key in _CODE_KEYS)
    code = next(filter(None, codes), "")
    if code:
        texts = (normalised.get(key) for key in _MESSAGE_KEYS)
        return code, next((text for text in texts if isinstance(text, str) and text != code), "")
    inner = (_code_and_message(normalised.get(key), depth + 1) for key in _NESTED_KEYS)
    return next(filter(None, inner), None)


def _normalise_code(value: object) -> str:
    """Return `value` as text if it can be a code; otherwise, return an empty string.

    A code is one word or an integer other than 0, and has at most MAX_CODE_CHARS.
    """
    if isinstance(value, bool) or not isinstance(value, str | int) or value in (0, "0"):
        return ""
    code = str(value).strip()
    return "" if len(code) > MAX_CODE_CHARS or len(code.split()) != 1 else code


def _status_phrase(status: str) -> str:
    try:
        return HTTPStatus(int(status)).phrase
    except ValueError:
        return ""


def _with_status(status: str, text: str) -> str:
    return f"{status}: {text}" if status else text
