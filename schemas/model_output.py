"""Schemas of the structured output of models: condensed question, passage order, topics, verdicts.

The schemas are lenient, because models send null for defaults, numbers as text, and extra keys. Models read
the docstrings as part of the schemas, so docstrings say only what a model should write.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, OnErrorOmit

from schemas.base import ApiModel

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: False if value in (None, "") else value)]


MAX_NAME_CHARS = 60
"""Maximum length of a topic's name, in characters; longer ones are truncated."""

_NUMBER = re.compile(r"[0-9]{1,3}")


class ModelOutput(ApiModel):
    """Base class of the objects that models write. Extra keys are ignored."""

    model_config = ConfigDict(extra="ignore")


class CondensedQuestion(ModelOutput):
    """A follow-up as a standalone question."""

    question: _Text = Field(
        description="the follow-up as a standalone question in its own language; "
        "word for word if it already is one"
    )
    small_talk: _Flag = Field(
        default=False, description="true for thanks, greetings, praise: nothing is asked"
    )


def _parse_number(value: object) -> int | None:
    """Return the number in `value`, or None: `3`, `3.0`, `"[3]"` and `{"number": 3}` give 3."""
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _NUMBER.search(value)):
        return int(match[0])
    return value if isinstance(value, int) else None


def _parse_numbers(value: object) -> object:
    """Parse numbers sent as a list or as one text; drop items that are not numbers."""
    if isinstance(value, str):
        value = _NUMBER.findall(value)
    if not isinstance(value, list | tuple):
        return value
    return [number for item in value if (number := _parse_number(item)) is not None]


PassageNumbers = Annotated[list[int], BeforeValidator(_parse_numbers)]
"""Numbers of passages or groups, in any format that `_parse_numbers` accepts."""


class PassageOrder(ModelOutput):
    """The numbers of the documents, best first."""

    # Models leave out, repeat and invent numbers; the reranker accepts that.
    ranking: PassageNumbers = Field(
        min_length=1, description="the numbers of all documents, each once, the most relevant first"
    )


def _to_one_line(name: str) -> str:
    return " ".join(name.split())[:MAX_NAME_CHARS].strip()


class QuestionTopic(ModelOutput):
    """Groups of questions about the same topic, and its name."""

    name: Annotated[str, AfterValidator(_to_one_line)] = Field(
        description="what the questions are about, in two to five words of their language"
    )
    groups: PassageNumbers = Field(description="the numbers of the groups that ask for it")


class QuestionTopics(ModelOutput):
    """The topics of the groups. A group is listed at most once."""

    # Models list groups several times and invent numbers; `assign` corrects that.
    topics: list[OnErrorOmit[QuestionTopic]] = Field(description="one entry for each topic")

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


class Verdict(ModelOutput):
    """Whether the cited documents support a statement."""

    statement: Annotated[int, BeforeValidator(_parse_number)] = Field(
        description="the number of the statement"
    )
    supported: bool = Field(
        description="true if the documents that the statement cites say all of it"
    )


class Verdicts(ModelOutput):
    """One verdict for each statement."""

    # Models leave out statements and contradict themselves; `by_number` accepts that.
    verdicts: list[OnErrorOmit[Verdict]] = Field(
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
