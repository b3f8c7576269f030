"""Errors -> RFC 9457 problem details. Nothing of the inside leaks: no stack, no key, no path."""

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

RETRY_AFTER_SECONDS = "5"

STATUS: dict[type[ApideskError], HTTPStatus] = {
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
"""The status of each error; of one not listed, its nearest ancestor's."""

_CODES = {400: "invalid_input", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}

NOT_JSON = "body: not a valid JSON document in UTF-8"

log = logging.getLogger(__name__)


class Problem(ApiModel):
    """An RFC 9457 problem, as every error is told."""

    status: int
    type: str
    """Always `about:blank`."""
    title: str
    """The status in words."""
    detail: str
    """What is wrong, in one sentence."""
    code: str
    """Stable, and meant for programs."""
    retryable: bool
    """Whether the same request can succeed later."""


def apidesk_problem(error: ApideskError) -> ProblemDetailsException:
    """An error raised on purpose: its sentence is meant for the caller."""
    status = status_of(type(error))
    return _problem(status, str(error), error.code, error.retryable, _headers(error, status))


def status_of(error: type[ApideskError]) -> HTTPStatus:
    """The status that an error is told with."""
    return next(STATUS[cls] for cls in error.__mro__ if cls in STATUS)


def http_problem(error: HTTPException) -> ProblemDetailsException:
    """An error of Litestar's own: a wrong body, an unknown path, a wrong method."""
    status = HTTPStatus(error.status_code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("unexpected error", exc_info=error)
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        detail = "; ".join(_field_sentence(item) for item in error.extra) or error.detail
    elif status == HTTPStatus.BAD_REQUEST:
        detail = NOT_JSON
    elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        detail = "body: larger than this server takes"
    else:
        detail = status.description or status.phrase
    return _problem(status, detail, _CODES.get(status, "http_error"), False, error.headers)


def problem_for(error: Exception) -> ProblemDetailsException:
    """The problem that any error is."""
    if isinstance(error, ApideskError):
        return apidesk_problem(error)
    return http_problem(error) if isinstance(error, HTTPException) else _unexpected(error)


def problem_of(error: Exception) -> str:
    """The problem, as JSON, of an error that comes when a response has begun already."""
    problem = problem_for(error)
    said = {"status": problem.status_code, "type": problem.type_, "title": problem.title}
    return json.dumps(said | {"detail": problem.detail} | dict(problem.extra or {}))


def unexpected_problem(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """An error that nobody foresaw: the log has it whole, the caller learns only that it happened."""
    return _unexpected(error).to_response(request)


def _unexpected(error: Exception) -> ProblemDetailsException:
    log.error("unexpected error", exc_info=error)
    return _problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "something went wrong here", "internal_error", False
    )


def _headers(error: ApideskError, status: HTTPStatus) -> dict[str, str] | None:
    if isinstance(error, RateLimited):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": RETRY_AFTER_SECONDS} if status == 503 else None


def _field_sentence(item: Any) -> str:
    """One of Litestar's validation messages, with the field it is about first."""
    key, message = item.get("key"), item.get("message", "is invalid")
    if key is None:
        return "body: is not a JSON object"
    if message == "'data'":  # the handler's own name for a body that is not there
        return "body: is missing"
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
