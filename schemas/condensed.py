"""A follow-up as a model writes it: a question that stands by itself."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from schemas.wire import ApiModel

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
