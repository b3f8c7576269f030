"""Types of request fields, with readable validation errors."""

import re
from typing import Annotated, Any
from uuid import UUID

from litestar.exceptions import NotFoundException
from litestar.params import PathParameter
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

NOT_BLANK_PATTERN = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""Matches a character that is not whitespace in Python.

The whitespace characters are listed, because `\\s` matches a different set of characters in JSON Schema
(ECMA-262).
"""

SESSION_SCHEMA: dict[str, Any] = {
    "minLength": 1,
    "maxLength": 64,
    "pattern": r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
}
"""The JSON Schema of a session id."""

_SESSION_PATTERN = re.compile(SESSION_SCHEMA["pattern"].strip("^$"))


def _validate_not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def validate_whole_number(value: object) -> int:
    """Return `value` as an int if it is an integer in JSON Schema; otherwise raise PydanticCustomError.

    5.0 is an integer, but "5" and true are not.
    """
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise PydanticCustomError("whole_number", "must be a whole number")
    return value


def validate_session_id(session: str) -> str:
    """Return `session` if it is a valid session id; otherwise raise PydanticCustomError.

    An id of dots alone is invalid, because clients remove "." and ".." from paths.
    """
    if len(session) > SESSION_SCHEMA["maxLength"] or not _SESSION_PATTERN.fullmatch(session):
        message = (
            "must consist of 1 to 64 characters from A-Z, a-z, 0-9, '.', '_' and '-', "
            "not all of them dots"
        )
        raise PydanticCustomError("session", message)
    return session


def parse_id(text: str) -> UUID:
    """Convert an id in a path to a UUID. Raises NotFoundException if `text` is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFoundException from None


PathId = Annotated[str, PathParameter(schema_extra={"format": "uuid"})]
"""A UUID in a path. The handler parses the text with `parse_id`, after the guard has checked access."""

QuestionText = Annotated[
    str,
    AfterValidator(_validate_not_blank),
    Field(json_schema_extra={"minLength": 1, "pattern": NOT_BLANK_PATTERN}),
]
"""A question that is not blank."""

ChunkCount = Annotated[int, Field(ge=1, le=50), BeforeValidator(validate_whole_number)]
"""Maximum number of chunks to retrieve."""

SessionId = Annotated[
    str, AfterValidator(validate_session_id), Field(json_schema_extra=SESSION_SCHEMA)
]
"""The id of a session, which the caller chooses."""
