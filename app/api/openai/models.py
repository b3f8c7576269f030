"""GET /v1/models and GET /v1/models/{model}: one model name per answer mode."""

from collections.abc import Mapping

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.api.openai.response import ModelInfo, ModelList
from app.service.answer_service import AnswerService
from schemas.errors import UnknownModel
from schemas.question import AnswerMode

MODEL_MODES: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}


def model_names(answer_service: AnswerService) -> list[str]:
    """Return the names of the available models; `apidesk-tools` requires a chat model."""
    return [
        name for name, mode in MODEL_MODES.items() if mode == "pipeline" or answer_service.models
    ]


def model_mode(name: str, answer_service: AnswerService) -> AnswerMode:
    """Return the answer mode of the model `name`. Raises UnknownModel."""
    names = model_names(answer_service)
    if name not in names:
        raise UnknownModel(f"model: {name[:100]} does not exist; available: {', '.join(names)}")
    return MODEL_MODES[name]


@get(
    "/models",
    include_in_schema=False,  # OpenAI documents this endpoint
    sync_to_thread=False,
    needs="ask",
)
def list_models(answer_service: NamedDependency[AnswerService]) -> ModelList:
    """List the models: `apidesk`, and `apidesk-tools` if a chat model is configured."""
    return ModelList(data=[ModelInfo(id=name) for name in model_names(answer_service)])


@get(
    "/models/{model:str}",
    include_in_schema=False,  # OpenAI documents this endpoint
    sync_to_thread=False,
    needs="ask",
)
def get_model(model: FromPath[str], answer_service: NamedDependency[AnswerService]) -> ModelInfo:
    """Return one model. 404 if there is no model of this name."""
    model_mode(model, answer_service)
    return ModelInfo(id=model)
