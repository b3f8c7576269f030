"""GET /v1/models"""

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.desk import Desk
from app.openai.models import mode_of, model_names
from app.openai.response import Model, Models


@get(
    "/models",
    include_in_schema=False,  # OpenAI describes it
    sync_to_thread=False,
    needs="ask",
)
def list_models(desk: NamedDependency[Desk]) -> Models:
    """What the desk is as a model: `apidesk`, and `apidesk-tools` where a chat model is configured."""
    return Models(data=[Model(id=name) for name in model_names(desk)])


@get(
    "/models/{model:str}",
    include_in_schema=False,  # OpenAI describes it
    sync_to_thread=False,
    needs="ask",
)
def get_model(model: FromPath[str], desk: NamedDependency[Desk]) -> Model:
    """One of them. 404 where there is none of the name."""
    mode_of(model, desk)
    return Model(id=model)
