"""Types of request fields, and functions that read ids, query parameters and the header Accept."""

import re
from itertools import chain
from typing import Annotated, Any, get_args
from uuid import UUID

from litestar import MediaType, Request, Response
from litestar.connection import ASGIConnection
from litestar.datastructures.headers import Accept, MediaTypeHeader
from litestar.enums import ParamType
from litestar.exceptions import NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import PathParameter, QueryParameter
from litestar.typing import FieldDefinition
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.api.problems import to_problem

NOT_BLANK_PATTERN = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""Matches a character that `str.strip` does not remove.

The whitespace characters are listed, because `\\s` matches a different set of characters in JSON Schema
(ECMA-262).
"""

SESSION_SCHEMA: dict[str, Any] = {
    "minLength": 1,
    "maxLength": 64,
    "pattern": r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
}
"""The JSON Schema of a session id."""

_SESSION_PATTERN = re.compile(SESSION_SCHEMA["pattern"])


def _validate_not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def validate_whole_number(value: object) -> int:
    """Return `value` as an int if it is an integer in JSON Schema; otherwise raise PydanticCustomError.

    5.0 is an integer, but "5" and true are not.
    """
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise PydanticCustomError("whole_number", "must be a whole number")
    return value


def validate_session_id(session: str) -> str:
    """Return `session` if it is a valid session id; otherwise raise PydanticCustomError.

    An id that consists only of dots is invalid, because HTTP clients remove the segments "." and ".." from
    URL paths.
    """
    if len(session) > SESSION_SCHEMA["maxLength"] or not _SESSION_PATTERN.fullmatch(session):
        message = (
            "must consist of 1 to 64 characters from A-Z, a-z, 0-9, '.', '_' and '-', "
            "not all of them dots"
        )
        raise PydanticCustomError("session", message)
    return session


def parse_id(text: str, resource: str) -> UUID:
    """Convert `text`, an id from a URL path, to a UUID.

    If `text` is not a UUID, raises `not_found(resource)`.
    """
    try:
        return UUID(text)
    except ValueError:
        raise not_found(resource) from None


def not_found(resource: str) -> NotFoundException:
    """Return the error for an id that does not exist.

    `resource` is the kind of resource that the message names, such as "answer".
    """
    return NotFoundException(f"there is no {resource} with this id")


def prefers(request: Request[Any, Any, Any], media_type: str) -> bool:
    """Return whether the header Accept prefers `media_type` to JSON."""
    # `q=0` means that the client refuses the media type, but `best_match` would accept it.
    accepted = [name for name in request.accept if MediaTypeHeader(name).priority[0] > 0]
    return Accept(",".join(accepted)).best_match([MediaType.JSON, media_type]) == media_type


async def check_query(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """Litestar guard: raise ValidationException for unknown query parameters.

    If a route declares no query parameters, those in the request are ignored.
    """
    known = _query_parameters(handler)
    unknown = sorted(connection.query_params.keys() - known.keys())
    if known and unknown:
        message = f"unknown query parameter; available: {', '.join(known)}"
        raise ValidationException(extra=[{"key": name, "message": message} for name in unknown])


def invalid_request(
    request: Request[Any, Any, Any], error: ValidationException
) -> Response[dict[str, Any]]:
    """Return a response with the problem details (RFC 9457) of an invalid request.

    A message about a query parameter lists its valid values.
    """
    parameters = _query_parameters(request.route_handler)
    for item in error.extra if isinstance(error.extra, list) else ():
        if item.get("source") == ParamType.QUERY:
            item["message"] = _expected_message(parameters[item["key"]])
    return to_problem(error).to_response(request)


def _query_parameters(handler: BaseRouteHandler) -> dict[str, FieldDefinition]:
    """Return the query parameters of a route by name."""
    fields = handler.parsed_fn_signature.parameters.items()
    return {name: f for name, f in fields if isinstance(f.kwarg_definition, QueryParameter)}


def _expected_message(field: FieldDefinition) -> str:
    """Return a message in pydantic's style, such as "Input should be 'json' or 'csv'"."""
    definition = field.kwarg_definition
    assert isinstance(definition, QueryParameter)
    if field.annotation is int:
        return f"Input should be a whole number from {definition.ge} to {definition.le}"
    # The annotation is an optional literal, such as `Literal["json", "csv"] | None`.
    choices = chain.from_iterable(map(get_args, get_args(field.annotation)))
    *values, last = map(repr, choices)
    return f"Input should be {', '.join(values)} or {last}"


PathId = Annotated[str, PathParameter(schema_extra={"format": "uuid"})]
"""A UUID in a path, received as text.

The handler converts it with `parse_id`, after the guard has checked the caller. A caller without access
therefore gets 401 or 403 even if the id is invalid.
"""

QuestionText = Annotated[
    str,
    AfterValidator(_validate_not_blank),
    Field(json_schema_extra={"minLength": 1, "pattern": NOT_BLANK_PATTERN}),
]
"""A question that is not blank."""

ChunkCount = Annotated[int, Field(ge=1, le=50), BeforeValidator(validate_whole_number)]
"""Maximum number of chunks to retrieve."""

SessionId = Annotated[
    str, AfterValidator(validate_session_id), Field(json_schema_extra=SESSION_SCHEMA)
]
"""The id of a session, which the caller chooses."""
