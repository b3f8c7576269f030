"""The JSON format of a `kind = "api_docs"` source: one file, one API.

A team exports its own reference to this format; `samples/api` holds examples.
"""

from typing import Literal

from pydantic import Field, JsonValue

from schemas.base import ApiModel


class AllowedValue(ApiModel):
    """One value of an enumerated parameter and what it stands for."""

    value: str
    meaning: str = ""


class Parameter(ApiModel):
    """One field of a header, request or response; objects and arrays list theirs as `children`."""

    name: str = Field(min_length=1)
    type: str = "string"
    required: bool = False
    description: str = ""
    example: str = ""
    values: tuple[AllowedValue, ...] = ()
    children: tuple["Parameter", ...] = ()
    dimensions: int = 0
    """How many lists the children lie within; their names say `[]` for each."""
    location: str = ""
    """Where it is sent (query, path, body), where the table is to say so."""


class ErrorCode(ApiModel):
    """One error that the API answers with: what it says, why it comes, what mends it."""

    code: str = Field(min_length=1)
    message: str = ""
    cause: str = ""
    remedy: str = ""


class PermissionPackage(ApiModel):
    """A permission package (scope) that an application needs before it may call the API."""

    name: str = Field(min_length=1)
    description: str = ""


class Example(ApiModel):
    """A request or a response as it may look: a JSON value, or text as it stands."""

    title: str = ""
    value: JsonValue


class ApiDocument(ApiModel):
    """The reference of one API, as a platform exports it.

    `page_url` may be left out where the source's `page_url` template in platform.toml
    can make it from the other fields.
    """

    service_id: str = Field(min_length=1)
    service_name: str = ""
    api_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"] = "POST"
    url: str = Field(min_length=1)
    page_url: str = ""
    version: str = ""
    language: Literal["zh", "en"] = "zh"
    deprecated: bool = False
    description: str = ""
    request_headers: tuple[Parameter, ...] = ()
    public_parameters: tuple[Parameter, ...] = ()
    request_parameters: tuple[Parameter, ...] = ()
    response_parameters: tuple[Parameter, ...] = ()
    error_codes: tuple[ErrorCode, ...] = ()
    permission_packages: tuple[PermissionPackage, ...] = ()
    request_example: JsonValue = None
    response_example: JsonValue = None
    request_examples: tuple[Example, ...] = ()
    """Further ones, with titles."""
    response_examples: tuple[Example, ...] = ()
    request_description: str = ""
    """What is said of the request's body as a whole."""
    response_description: str = ""
    servers: tuple[str, ...] = ()
    """Whole urls that `url` begins at."""
