"""Fields that several requests share, with sentences for what is wrong with them."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "is empty")
    return text


def _whole_number(value: object) -> object:
    """Litestar validates leniently, where "5" and true would pass for numbers."""
    if type(value) is not int:
        raise PydanticCustomError("whole_number", "is not a whole number")
    return value


_SESSION = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,64}")


def check_session(name: str) -> str:
    """`name`, if a session may be called so; "." and ".." are not, since clients take them out of a path.

    Raises PydanticCustomError.
    """
    if not _SESSION.fullmatch(name):
        message = "is not 1 to 64 of the characters A-Z a-z 0-9 . _ - (dots alone will not do)"
        raise PydanticCustomError("session", message)
    return name


QuestionText = Annotated[str, AfterValidator(_not_blank)]
"""What is asked; not blank."""

ChunkCount = Annotated[int, BeforeValidator(_whole_number), Field(ge=1, le=50)]
"""How many chunks to retrieve."""

SessionId = Annotated[str, AfterValidator(check_session)]
"""The conversation that a question belongs to; the caller makes the name up."""
