"""Converts errors to problem details (RFC 9457) without stack traces.

The problem of an ApideskError contains the error's message. The message of an unexpected error is only
logged.
"""

import json
import logging
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.plugins.problem_details import ProblemDetailsException

from schemas.base import ApiModel
from schemas.errors import (
    ApideskError,
    CollectionMismatch,
    CollectionMissing,
    Forbidden,
    IngestionRunning,
    ModelBusy,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    QuestionError,
    QuestionTooLong,
    RateLimited,
    ServerStopping,
    ServiceBusy,
    StoreUnavailable,
    Unauthorized,
    UnknownModel,
)

PROBLEM_JSON = "application/problem+json"

RETRY_AFTER_S = "5"
"""The `Retry-After` header of retryable responses with status 503, in seconds."""

STATUS_BY_ERROR: dict[type[ApideskError], HTTPStatus] = {
    UnknownModel: HTTPStatus.NOT_FOUND,
    QuestionTooLong: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    QuestionError: HTTPStatus.BAD_REQUEST,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    CollectionMismatch: HTTPStatus.CONFLICT,
    IngestionRunning: HTTPStatus.CONFLICT,
    CollectionMissing: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    ServiceBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerStopping: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelTimeout: HTTPStatus.GATEWAY_TIMEOUT,
    ModelRefused: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelOutputInvalid: HTTPStatus.BAD_GATEWAY,
    ApideskError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""The HTTP status of each error class. A class that is not listed has the status of its base class."""

_CODES = {
    400: "invalid_input",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "too_large",
}
"""The `code` in the problem for a Litestar error, by status. Other statuses have the code `http_error`."""

NOT_JSON = "body: not a valid JSON document in UTF-8"

log = logging.getLogger(__name__)


class Problem(ApiModel):
    """An RFC 9457 problem: the body of error responses, except those of `/v1`, MCP and health checks."""

    status: int
    type: str
    """Always `about:blank`."""
    title: str
    """The reason phrase of the status."""
    detail: str
    """A sentence that explains the error."""
    code: str
    """A stable code for programs."""
    retryable: bool
    """Whether the same request may succeed later."""


def apidesk_problem(error: ApideskError) -> ProblemDetailsException:
    """Return the problem for an ApideskError, with its message."""
    status = status_of(type(error))
    return _problem(status, str(error), error.code, error.retryable, _headers(error, status))


def status_of(error: type[ApideskError]) -> HTTPStatus:
    """Return the HTTP status for an error class."""
    return next(STATUS_BY_ERROR[cls] for cls in error.__mro__ if cls in STATUS_BY_ERROR)


def http_problem(error: HTTPException) -> ProblemDetailsException:
    """Return the problem for an error of Litestar, such as an invalid body or an unknown path.

    An error with status 500 or above is logged.
    """
    status = HTTPStatus(error.status_code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("unexpected error", exc_info=error)
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        detail = "; ".join(_field_sentence(item) for item in error.extra) or error.detail
    elif status == HTTPStatus.BAD_REQUEST:
        detail = NOT_JSON
    elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        detail = "body: larger than the limit of this server"
    elif status == HTTPStatus.REQUEST_TIMEOUT:
        detail = "body: not received within the time limit of this server"
    elif status == HTTPStatus.NOT_FOUND and error.detail != status.phrase:
        detail = error.detail  # names the resource that was not found
    else:
        detail = status.description or status.phrase
    return _problem(status, detail, _CODES.get(status, "http_error"), False, error.headers)


def to_problem(error: Exception) -> ProblemDetailsException:
    """Return the problem for any error. An unexpected error is logged."""
    if isinstance(error, ApideskError):
        return apidesk_problem(error)
    return http_problem(error) if isinstance(error, HTTPException) else _unexpected(error)


def problem_json(error: Exception) -> str:
    """Return the problem as JSON, for an error that occurs after the response has started."""
    problem = to_problem(error)
    fields = {
        "status": problem.status_code,
        "type": problem.type_,
        "title": problem.title,
        "detail": problem.detail,
    }
    return json.dumps(fields | dict(problem.extra or {}))


def unexpected_problem(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Log an unexpected error and return a response without its details."""
    return _unexpected(error).to_response(request)


def _unexpected(error: Exception) -> ProblemDetailsException:
    log.error("unexpected error", exc_info=error)
    return _problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "an unexpected error occurred", "internal_error", False
    )


def _headers(error: ApideskError, status: HTTPStatus) -> dict[str, str] | None:
    if isinstance(error, RateLimited):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": RETRY_AFTER_S} if status == 503 and error.retryable else None


def _field_sentence(item: Any) -> str:
    """Return the message of a validation error of Litestar, preceded by the name of the field."""
    key, message = item.get("key"), item.get("message", "invalid")
    if key is None:
        return "body: not a JSON object"
    if message == "'data'":  # Litestar's message if there is no body
        return "body: missing"
    if message.startswith("Input should be a valid dictionary"):
        message = "Input should be a JSON object"
    if message.startswith("Dictionary should have at most"):
        message = message.replace("Dictionary", "Object").partition(" after validation")[0]
    return f"{key or 'body'}: {message}"


def _problem(
    status: HTTPStatus,
    detail: str,
    code: str,
    retryable: bool,
    headers: dict[str, str] | None = None,
) -> ProblemDetailsException:
    return ProblemDetailsException(
        status_code=status,
        type_="about:blank",
        title=status.phrase,
        detail=detail,
        headers=headers,
        extra={"code": code, "retryable": retryable},
    )
