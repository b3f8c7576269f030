"""What a model writes that says which groups of questions ask for the same."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from schemas.rerank import PassageNumbers
from schemas.wire import ApiModel

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
