"""What a model writes that judges statements by what they cite."""

import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from schemas.wire import ApiModel

_NUMBER = re.compile(r"[0-9]{1,3}")


def _number(value: object) -> object:
    """The number in `"[3]"` or `"statement 3"`; a truth value is none."""
    if isinstance(value, bool):
        return None
    found = _NUMBER.search(value) if isinstance(value, str) else None
    return int(found[0]) if found else value


class Verdict(ApiModel):
    """Whether what a statement cites says what it says."""

    model_config = ConfigDict(extra="ignore")

    statement: Annotated[int, BeforeValidator(_number)] = Field(
        description="the number of the statement"
    )
    supported: bool = Field(
        description="true if the documents that the statement cites say all of it"
    )


def _readable(value: object) -> object:
    """The items that are verdicts; what is none is left out."""
    return [item for item in value if _is_verdict(item)] if isinstance(value, list) else value


def _is_verdict(item: object) -> bool:
    try:
        Verdict.model_validate(item)
    except ValidationError:
        return False
    return True


class Verdicts(ApiModel):
    """Verdicts by number. Nothing says that each statement has one, or only one."""

    model_config = ConfigDict(extra="ignore")

    verdicts: Annotated[list[Verdict], BeforeValidator(_readable)] = Field(
        min_length=1, description="one verdict for each statement"
    )

    def by_number(self) -> dict[int, bool]:
        """The verdicts by their statements' numbers, without those that contradict each other."""
        said: dict[int, set[bool]] = {}
        for verdict in self.verdicts:
            said.setdefault(verdict.statement, set()).add(verdict.supported)
        return {number: values.pop() for number, values in said.items() if len(values) == 1}
