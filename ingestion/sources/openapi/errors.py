"""Error codes: HTTP statuses, and the platform's own where a description names them readably."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from ingestion.sources.openapi.operations import NamedExample, Operation, OperationResponse
from ingestion.sources.openapi.schema import Schema, SchemaReader
from schemas.api_document import ErrorCode

MOST_CODES = 300
"""Error codes of one operation."""

LONGEST_CODE = 100

_CODE_KEYS = ("code", "errorcode", "errcode", "subcode", "retcode", "error", "errno", "type")
_MESSAGE_KEYS = ("message", "msg", "errormessage", "errmsg", "errordescription", "retmsg", "detail",
                 "description", "wording", "title")  # fmt: skip
_NESTED_KEYS = ("error", "errors", "data", "response")
_ITEM = re.compile(r"^\s*(?:[-*+]\s+)?[`'\"]([^\s`'\"]+)[`'\"]\s*(?:[:：]|--?|—|–)\s*(\S.*)$")
_ERROR_NAME = re.compile(r"err|fail|错误|失败|异常", re.IGNORECASE)
_OUTWORN = re.compile(r"[\s_-]")


@dataclass
class _Error:
    message: str = ""
    causes: list[str] = field(default_factory=list)

    def add(self, message: str, cause: str) -> None:
        """What is said of the same code again."""
        self.message = self.message or message
        if cause and cause not in self.causes:
            self.causes.append(cause)


def error_codes(operation: Operation, reader: SchemaReader) -> tuple[ErrorCode, ...]:
    """Each status that is no success, followed by the codes that its description, its examples and
    its schema name. Raises SourceError."""
    errors: dict[str, _Error] = {}
    has_success = any(response.is_success for response in operation.responses)
    for response in operation.responses:
        is_error = not response.is_success and (response.status != "default" or has_success)
        if is_error and not response.status.startswith(("1", "3")):
            _add_response(errors, response, reader)
        elif not is_error:
            named = [each for media in response.media for each in media.examples]
            _add_examples(errors, [each for each in named if is_of_error(each)], "")
    return tuple(
        ErrorCode(code=code, message=error.message, cause="; ".join(error.causes))
        for code, error in list(errors.items())[:MOST_CODES]
    )


def is_of_error(named: NamedExample) -> bool:
    """Whether an example of a success is one of a failure: some platforms always answer 200."""
    return bool(_ERROR_NAME.search(named.name) or _ERROR_NAME.search(named.example.title))


def _add_response(
    errors: dict[str, _Error], response: OperationResponse, reader: SchemaReader
) -> None:
    """The status, then its codes; a `default` that names codes says nothing by itself."""
    items = [match for line in response.description.splitlines() if (match := _ITEM.match(line))]
    lines = [line for line in response.description.splitlines() if line.strip()]
    named = ", ".join(f"`{code}`" for code in dict.fromkeys(match[1] for match in items))
    own: dict[str, _Error] = {}
    status = "" if response.status == "default" else f"HTTP {response.status}"
    for match in items:
        own.setdefault(match[1][:LONGEST_CODE], _Error()).add("", _joined(status, match[2].strip()))
    _add_examples(own, [e for media in response.media for e in media.examples], status)
    for media in response.media[:1]:
        for code in _listed(reader.read(media.schema), reader):
            error = own.setdefault(code, _Error())
            error.add("", "" if error.causes else status)
    same = own.pop(response.status, _Error())
    text = named if items and len(items) == len(lines) else response.description
    if status or not own:
        entry = errors.setdefault(response.status, _Error())
        entry.add(_phrase(response.status) or same.message, text)
    for code, error in own.items():
        for cause in error.causes or [""]:
            errors.setdefault(code, _Error()).add(error.message, cause)


def _add_examples(errors: dict[str, _Error], examples: list[NamedExample], status: str) -> None:
    for _, example in examples:
        found = _code_and_message(example.value)
        if found is not None:
            code, message = found
            known = errors.get(code)
            cause = status if known is None or not known.causes else ""
            errors.setdefault(code, _Error()).add(message, cause)


def _code_and_message(value: object, depth: int = 0) -> tuple[str, str] | None:
    """The code in the example of an error, and the message beside it."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict) or depth > 1:
        return None
    plain = {_OUTWORN.sub("", str(key)).lower(): inner for key, inner in value.items()}
    codes = (_code(plain.get(key)) for key in _CODE_KEYS)
    code = next(filter(None, codes), "")
    if code:
        texts = (plain.get(key) for key in _MESSAGE_KEYS)
        return code, next((text for text in texts if isinstance(text, str) and text != code), "")
    inner = (_code_and_message(plain.get(key), depth + 1) for key in _NESTED_KEYS)
    return next(filter(None, inner), None)


def _code(value: object) -> str:
    """`value`, if it can be a code: one word or a number, and not that of success."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value in (0, "0"):
        return ""
    code = str(value).strip()
    return "" if len(code) > LONGEST_CODE or len(code.split()) != 1 else code


def _listed(schema: Schema, reader: SchemaReader, depth: int = 0) -> Iterator[str]:
    """The codes that the schema of an error enumerates."""
    for name, nodes in schema.properties.items():
        plain = _OUTWORN.sub("", name).lower()
        if plain not in (*_CODE_KEYS, *_NESTED_KEYS):
            continue
        inner = reader.read(*nodes)
        listed = inner.say("enum")
        if listed is not None and plain in _CODE_KEYS and isinstance(listed.value, list):
            yield from filter(None, map(_code, listed.value[:MOST_CODES]))
        elif depth < 1:
            yield from _listed(inner, reader, depth + 1)


def _phrase(status: str) -> str:
    try:
        return HTTPStatus(int(status)).phrase
    except ValueError:
        return ""


def _joined(status: str, text: str) -> str:
    return f"{status}: {text}" if status else text
