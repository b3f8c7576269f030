"""The names by which a chat client picks how it is answered."""

from collections.abc import Mapping

from app.desk import Desk
from schemas.errors import UnknownModel
from schemas.question import AnswerMode

MODELS: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}


def model_names(desk: Desk) -> list[str]:
    """The models that can answer: looking things up first takes a chat model."""
    return [name for name, mode in MODELS.items() if mode == "pipeline" or desk.models]


def mode_of(name: str, desk: Desk) -> AnswerMode:
    """How the model called `name` answers. Raises UnknownModel."""
    names = model_names(desk)
    if name not in names:
        raise UnknownModel(f"model: there is no {name[:100]}; there is {', '.join(names)}")
    return MODELS[name]
