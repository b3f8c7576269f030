"""Errors under /v1, in the shape that OpenAI's clients read.
The names by which a chat client picks how it is answered.
GET /v1/models
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import FromPath
from litestar.types import ExceptionHandlersMap
from pydantic import BaseModel

from app.api.openai_response import ModelInfo, ModelList
from app.api.problems import problem_for
from app.service.answer_service import AnswerService
from schemas.errors import ApideskError, QuestionError, UnknownModel
from schemas.question import AnswerMode

PREFIX = "/v1/"

TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


class ErrorBody(BaseModel):
    """What went wrong, in one sentence, and with which parameter."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorResponse(BaseModel):
    """The body of every error under /v1."""

    error: ErrorBody


def error_response(error: Exception) -> ErrorResponse:
    """The body that tells of `error` when a response has begun already."""
    return _told(error)[0]


def _handle(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorResponse]:
    body, status, headers = _told(error)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


HANDLERS: ExceptionHandlersMap = {
    ApideskError: _handle,
    HTTPException: _handle,
    Exception: _handle,
}
"""For the routes under /v1."""


def handle_lost(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Tell of a path or a method that no route has: in OpenAI's shape where the path is under /v1."""
    if request.scope["path"].startswith(PREFIX):
        return _handle(request, error)
    return problem_for(error).to_response(request)


def _told(error: Exception) -> tuple[ErrorResponse, int, dict[str, str] | None]:
    problem = problem_for(error)
    body = ErrorBody(
        message=problem.detail,
        type=_type(problem.status_code),
        param=_param(error),
        code=dict(problem.extra or {})["code"],
    )
    return ErrorResponse(error=body), problem.status_code, problem.headers


def _type(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return TYPES.get(HTTPStatus(status), "invalid_request_error")


def _param(error: Exception) -> str | None:
    """The parameter that is wrong, as OpenAI names it: the question stands in the messages."""
    if isinstance(error, QuestionError):
        return "messages" if error.field == "question" else error.field
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        return str(error.extra[0].get("key")).partition(".")[0]
    return None


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
