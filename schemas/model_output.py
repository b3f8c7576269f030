"""A follow-up as a model writes it: a question that stands by itself.
What a model writes that puts passages in order.
What a model writes that says which groups of questions ask for the same.
What a model writes that judges statements by what they cite.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from schemas.base import ApiModel

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: False if value in (None, "") else value)]


class CondensedQuestion(ApiModel):
    """What a follow-up asks. A model may write it: null stands for a default, additions are ignored."""

    model_config = ConfigDict(extra="ignore")

    question: _Text = Field(
        description="the follow-up as a question that stands by itself, in its own language; "
        "word for word where it already does"
    )
    small_talk: _Flag = Field(
        default=False, description="true for thanks, greetings, praise: where nothing is asked"
    )


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


LONGEST_NAME = 60
"""Characters of a name that are kept: more is no name."""


def _one_line(name: str) -> str:
    return " ".join(name.split())[:LONGEST_NAME].strip()


class QuestionGroup(ApiModel):
    """Groups that ask for the same, and what that is called."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        description="what the questions are about, in two to five words of their language"
    )
    groups: PassageNumbers = Field(description="the numbers of the groups that ask for it")


def _readable_group(value: object) -> object:
    """The items that are topics; what is none is left out."""
    return [item for item in value if _is_topic(item)] if isinstance(value, list) else value


def _is_topic(item: object) -> bool:
    try:
        QuestionGroup.model_validate(item)
    except ValidationError:
        return False
    return True


class QuestionGroups(ApiModel):
    """Topics. Nothing says that a number exists, or stands in one topic only."""

    model_config = ConfigDict(extra="ignore")

    topics: Annotated[list[QuestionGroup], BeforeValidator(_readable_group)] = Field(
        description="one entry for each topic"
    )

    def among(self, count: int) -> list[QuestionGroup]:
        """The topics with numbers from 1 to `count`, each in the first topic that names it."""
        free = set(range(1, count + 1))
        found = []
        for topic in self.topics:
            taken = [number for number in dict.fromkeys(topic.groups) if number in free]
            free -= set(taken)
            if taken:
                found.append(topic.model_copy(update={"groups": taken}))
        return found


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
