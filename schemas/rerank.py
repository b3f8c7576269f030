"""What a model writes that puts passages in order."""

import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from schemas.wire import ApiModel

_NUMBER = re.compile(r"[0-9]{1,3}")


def _passage_number(value: object) -> int | None:
    """A number, be it sent as `3`, `3.0`, `"[3]"` or `{"number": 3}`."""
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (found := _NUMBER.search(value)):
        return int(found[0])
    return value if isinstance(value, int) else None


def _numbers(value: object) -> object:
    """A list of numbers, be it sent as one text; what is none is left out."""
    if isinstance(value, str):
        value = _NUMBER.findall(value)
    if not isinstance(value, list | tuple):
        return value
    return [number for each in value if (number := _passage_number(each)) is not None]


PassageNumbers = Annotated[list[int], BeforeValidator(_numbers)]
"""Numbers, in whichever of these forms a model sends them."""


class PassageOrder(ApiModel):
    """The numbers of passages, best first. Nothing says that each is there, or is there once."""

    model_config = ConfigDict(extra="ignore")

    ranking: PassageNumbers = Field(
        min_length=1, description="the numbers of all documents, each once, the most relevant first"
    )
