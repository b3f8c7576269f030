"""GET /v1/models: lists one model per answer mode. Also converts errors under /v1 to OpenAI's format."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import FromPath
from litestar.types import ExceptionHandlersMap
from pydantic import BaseModel

from app.api.openai.response import ModelInfo, ModelList
from app.api.problems import to_problem
from app.service.answer_service import AnswerService
from schemas.errors import ApideskError, QuestionError, UnknownModel
from schemas.question import AnswerMode

OPENAI_PREFIX = "/v1/"

MODEL_MODES: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}
"""The answer mode of each model."""

ERROR_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


class ErrorBody(BaseModel):
    """The message of an error and the parameter that caused it."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorResponse(BaseModel):
    """The body of every error response under /v1."""

    error: ErrorBody


def error_response(error: Exception) -> ErrorResponse:
    """Return the body of an error response. A stream that has started sends it as an event."""
    return _describe_error(error)[0]


def _handle(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorResponse]:
    body, status, headers = _describe_error(error)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


OPENAI_EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    ApideskError: _handle,
    HTTPException: _handle,
    Exception: _handle,
}
"""Exception handlers for the routes under /v1."""


def handle_unrouted(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Return the response to an unknown path or method, in OpenAI's format for paths under /v1."""
    if request.scope["path"].startswith(OPENAI_PREFIX):
        return _handle(request, error)
    return to_problem(error).to_response(request)


def _describe_error(error: Exception) -> tuple[ErrorResponse, int, dict[str, str] | None]:
    """Return the body, the status and the headers of the response to an error."""
    problem = to_problem(error)
    body = ErrorBody(
        message=problem.detail,
        type=_error_type(problem.status_code),
        param=_error_param(error),
        code=dict(problem.extra or {})["code"],
    )
    return ErrorResponse(error=body), problem.status_code, problem.headers


def _error_type(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return ERROR_TYPES.get(HTTPStatus(status), "invalid_request_error")


def _error_param(error: Exception) -> str | None:
    """Return OpenAI's name for the invalid parameter, or None. OpenAI names the question `messages`."""
    if isinstance(error, QuestionError):
        return "messages" if error.field == "question" else error.field
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        return str(error.extra[0].get("key")).partition(".")[0]
    return None


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
    """Return one model, or 404 if no model has this name."""
    model_mode(model, answer_service)
    return ModelInfo(id=model)
