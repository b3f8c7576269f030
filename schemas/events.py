"""What is told while an answer is made: the events of `Accept: text/event-stream`."""

from typing import Literal, NamedTuple

from schemas.answer import Source
from schemas.wire import ApiModel

EventName = Literal["structured", "sources", "step", "answer", "error"]


class Event(NamedTuple):
    """One event, as its name and the JSON that it carries."""

    name: EventName
    data: ApiModel


class Sources(ApiModel):
    """What the answer is being written from; a list of steps begins, or begins anew."""

    sources: list[Source]


class Step(ApiModel):
    """A step of the answer, complete and grounded."""

    number: int
    text: str
    unverified: list[str]
    supported: bool
