"""GET /v1/models"""

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.answer_service import AnswerService
from app.openai.models import mode_of, model_names
from app.openai.response import ModelInfo, ModelList


@get(
    "/models",
    include_in_schema=False,  # OpenAI describes it
    sync_to_thread=False,
    needs="ask",
)
def list_models(answer_service: NamedDependency[AnswerService]) -> ModelList:
    """What the desk is as a model: `apidesk`, and `apidesk-tools` where a chat model is configured."""
    return ModelList(data=[ModelInfo(id=name) for name in model_names(answer_service)])


@get(
    "/models/{model:str}",
    include_in_schema=False,  # OpenAI describes it
    sync_to_thread=False,
    needs="ask",
)
def get_model(model: FromPath[str], answer_service: NamedDependency[AnswerService]) -> ModelInfo:
    """One of them. 404 where there is none of the name."""
    mode_of(model, answer_service)
    return ModelInfo(id=model)
