"""Fields that several requests share, with sentences for what is wrong with them."""

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


QuestionText = Annotated[str, AfterValidator(_not_blank)]
"""What is asked; not blank."""

ChunkCount = Annotated[int, BeforeValidator(_whole_number), Field(ge=1, le=50)]
"""How many chunks to retrieve."""
