"""Schemas of the structured output of models: condensed question, passage order, topics, verdicts.

The schemas are lenient, because models send null for defaults, numbers as text, and extra keys.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from schemas.base import ApiModel

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: False if value in (None, "") else value)]


MAX_NAME_CHARS = 60
"""Maximum length of a topic's name, in characters; longer ones are truncated."""

_NUMBER = re.compile(r"[0-9]{1,3}")


class CondensedQuestion(ApiModel):
    """A follow-up as a standalone question."""

    model_config = ConfigDict(extra="ignore")

    question: _Text = Field(
        description="the follow-up as a standalone question in its own language; "
        "word for word if it already is one"
    )
    small_talk: _Flag = Field(
        default=False, description="true for thanks, greetings, praise: nothing is asked"
    )


def _passage_number(value: object) -> int | None:
    """Parse a number sent as `3`, `3.0`, `"[3]"` or `{"number": 3}`; None for anything else."""
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _NUMBER.search(value)):
        return int(match[0])
    return value if isinstance(value, int) else None


def _numbers(value: object) -> object:
    """Parse numbers sent as a list or as one text; drop items that are not numbers."""
    if isinstance(value, str):
        value = _NUMBER.findall(value)
    if not isinstance(value, list | tuple):
        return value
    return [number for item in value if (number := _passage_number(item)) is not None]


PassageNumbers = Annotated[list[int], BeforeValidator(_numbers)]
"""Numbers of passages or groups, in any format that `_numbers` accepts."""


class PassageOrder(ApiModel):
    """The numbers of passages, best first. Numbers may be missing, invalid or repeated."""

    model_config = ConfigDict(extra="ignore")

    ranking: PassageNumbers = Field(
        min_length=1, description="the numbers of all documents, each once, the most relevant first"
    )


def _one_line(name: str) -> str:
    return " ".join(name.split())[:MAX_NAME_CHARS].strip()


class QuestionTopic(ApiModel):
    """Groups of questions about the same topic, and its name."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        description="what the questions are about, in two to five words of their language"
    )
    groups: PassageNumbers = Field(description="the numbers of the groups that ask for it")


def _valid_topics(value: object) -> object:
    """Return a list without its invalid topics; any other value unchanged."""
    return [item for item in value if _is_topic(item)] if isinstance(value, list) else value


def _is_topic(item: object) -> bool:
    try:
        QuestionTopic.model_validate(item)
    except ValidationError:
        return False
    return True


class QuestionTopics(ApiModel):
    """Topics. Group numbers may be invalid or occur in several topics."""

    model_config = ConfigDict(extra="ignore")

    topics: Annotated[list[QuestionTopic], BeforeValidator(_valid_topics)] = Field(
        description="one entry for each topic"
    )

    def assign(self, count: int) -> list[QuestionTopic]:
        """Return the topics, keeping each group only in the first topic that lists it.

        Numbers outside 1 to `count` and topics without groups are dropped.
        """
        unassigned = set(range(1, count + 1))
        topics = []
        for topic in self.topics:
            groups = [number for number in dict.fromkeys(topic.groups) if number in unassigned]
            unassigned -= set(groups)
            if groups:
                topics.append(topic.model_copy(update={"groups": groups}))
        return topics


def _statement_number(value: object) -> object:
    """Parse a number sent as `"[3]"` or `"statement 3"`; reject booleans."""
    if isinstance(value, bool):
        return None
    match = _NUMBER.search(value) if isinstance(value, str) else None
    return int(match[0]) if match else value


class Verdict(ApiModel):
    """Whether the cited documents support a statement."""

    model_config = ConfigDict(extra="ignore")

    statement: Annotated[int, BeforeValidator(_statement_number)] = Field(
        description="the number of the statement"
    )
    supported: bool = Field(
        description="true if the documents that the statement cites say all of it"
    )


def _valid_verdicts(value: object) -> object:
    """Return a list without its invalid verdicts; any other value unchanged."""
    return [item for item in value if _is_verdict(item)] if isinstance(value, list) else value


def _is_verdict(item: object) -> bool:
    try:
        Verdict.model_validate(item)
    except ValidationError:
        return False
    return True


class Verdicts(ApiModel):
    """Verdicts on statements. Statements may have none or several."""

    model_config = ConfigDict(extra="ignore")

    verdicts: Annotated[list[Verdict], BeforeValidator(_valid_verdicts)] = Field(
        min_length=1, description="one verdict for each statement"
    )

    def by_number(self) -> dict[int, bool]:
        """Return the verdict for each statement number; contradictory verdicts are left out."""
        values_by_number: dict[int, set[bool]] = {}
        for verdict in self.verdicts:
            values_by_number.setdefault(verdict.statement, set()).add(verdict.supported)
        return {
            number: values.pop() for number, values in values_by_number.items() if len(values) == 1
        }
