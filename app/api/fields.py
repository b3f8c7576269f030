"""The body of a request, read so that whatever cannot be read is the caller's error.
Fields that several requests share, with sentences for what is wrong with them.
"""

import json
import re
from typing import Annotated, Any
from uuid import UUID

from litestar import Request
from litestar.exceptions import ClientException, NotFoundException, SerializationException
from litestar.params import PathParameter
from litestar.serialization import decode_json
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from ingestion.text.language import whole_characters


class JsonRequest(Request[Any, Any, Any]):
    r"""A request whose JSON may hold half of a surrogate pair (`"\ud83d"`)."""

    async def json(self) -> Any:
        """The body's JSON value. Raises ClientException when it has none, or nests too deeply."""
        try:
            return _decode(await self.body())
        except (ValueError, RecursionError, SerializationException) as error:
            raise ClientException from error


def _decode(body: bytes) -> Any:
    text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
    return decode_json(whole_characters(text))


NOT_BLANK = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""A character that is no space to Python; ECMA-262 would have another `\\s`."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "is empty")
    return text


def whole_number(value: object) -> int:
    """`value` as JSON Schema takes it: 5.0 is one, "5" and true are none. Raises PydanticCustomError."""
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise PydanticCustomError("whole_number", "is not a whole number")
    return value


SESSION: dict[str, Any] = {
    "minLength": 1,
    "maxLength": 64,
    "pattern": r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
}
"""What a session may be called, as JSON Schema."""

_SESSION = re.compile(SESSION["pattern"].strip("^$"))


def check_session(name: str) -> str:
    """`name`, if a session may be called so; "." and ".." are not, since clients take them out of a path.

    Raises PydanticCustomError.
    """
    if len(name) > SESSION["maxLength"] or not _SESSION.fullmatch(name):
        message = "is not 1 to 64 of the characters A-Z a-z 0-9 . _ - (dots alone will not do)"
        raise PydanticCustomError("session", message)
    return name


def id_of(text: str) -> UUID:
    """The id that stands in a path. Raises NotFoundException, since nothing has another kind of id."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFoundException from None


PathId = Annotated[str, PathParameter(schema_extra={"format": "uuid"})]
"""An id in a path, for `id_of`: whoever may not come in is not told that it is none."""

QuestionText = Annotated[
    str,
    AfterValidator(_not_blank),
    Field(json_schema_extra={"minLength": 1, "pattern": NOT_BLANK}),
]
"""What is asked; not blank."""

ChunkCount = Annotated[int, Field(ge=1, le=50), BeforeValidator(whole_number)]
"""How many chunks to retrieve."""

SessionId = Annotated[str, AfterValidator(check_session), Field(json_schema_extra=SESSION)]
"""The conversation that a question belongs to; the caller makes the name up."""
