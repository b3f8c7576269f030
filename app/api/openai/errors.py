"""Errors under /v1 in OpenAI's format."""

from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.plugins.problem_details import ProblemDetailsException
from litestar.types import ExceptionHandlersMap

from app.api.problems import to_problem
from schemas.errors import ApideskError, QuestionError

OPENAI_PREFIX = "/v1/"

RESPONSES_PATH = "/responses"

ERROR_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def stream_error(error: Exception) -> dict[str, str | None]:
    """Return the fields of an error that occurs after a stream has started."""
    return _error_fields(error, to_problem(error))


def _handle(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    problem = to_problem(error)
    is_response = request.scope["path"].endswith(RESPONSES_PATH)
    fields = _error_fields(error, problem, "input" if is_response else "messages")
    return Response(
        {"error": fields},
        status_code=problem.status_code,
        headers=problem.headers,
        media_type="application/json",
    )


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


def _error_fields(
    error: Exception, problem: ProblemDetailsException, question_param: str = "messages"
) -> dict[str, str | None]:
    """Return OpenAI's fields for an error. `question_param` is the parameter that contains the question."""
    return {
        "message": problem.detail,
        "type": _error_type(problem.status_code),
        "param": _error_param(error, question_param),
        "code": dict(problem.extra or {})["code"],
    }


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
