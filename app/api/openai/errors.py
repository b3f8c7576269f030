"""Errors under /v1 in OpenAI's format."""

from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap
from pydantic import BaseModel

from app.api.problems import to_problem
from schemas.errors import ApideskError, QuestionError

OPENAI_PREFIX = "/v1/"

RESPONSES_PATH = "/responses"

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
    is_response = request.scope["path"].endswith(RESPONSES_PATH)
    body, status, headers = _describe_error(error, "input" if is_response else "messages")
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


def _describe_error(
    error: Exception, question_param: str = "messages"
) -> tuple[ErrorResponse, int, dict[str, str] | None]:
    """Return the body, the status and the headers of the response to an error.

    `question_param` is OpenAI's name for the parameter with the question.
    """
    problem = to_problem(error)
    body = ErrorBody(
        message=problem.detail,
        type=_error_type(problem.status_code),
        param=_error_param(error, question_param),
        code=dict(problem.extra or {})["code"],
    )
    return ErrorResponse(error=body), problem.status_code, problem.headers


def _error_type(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return ERROR_TYPES.get(HTTPStatus(status), "invalid_request_error")


def _error_param(error: Exception, question_param: str) -> str | None:
    """Return OpenAI's name for the invalid parameter, or None."""
    if isinstance(error, QuestionError):
        return question_param if error.field == "question" else error.field
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        return str(error.extra[0].get("key")).partition(".")[0]
    return None
