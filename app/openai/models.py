"""The names by which a chat client picks how it is answered."""

from collections.abc import Mapping

from app.answer_service import AnswerService
from schemas.errors import UnknownModel
from schemas.question import AnswerMode

MODELS: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}


def model_names(answer_service: AnswerService) -> list[str]:
    """The models that can answer: looking things up first takes a chat model."""
    return [name for name, mode in MODELS.items() if mode == "pipeline" or answer_service.models]


def mode_of(name: str, answer_service: AnswerService) -> AnswerMode:
    """How the model called `name` answers. Raises UnknownModel."""
    names = model_names(answer_service)
    if name not in names:
        raise UnknownModel(f"model: there is no {name[:100]}; there is {', '.join(names)}")
    return MODELS[name]
