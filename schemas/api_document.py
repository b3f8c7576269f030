"""The JSON format of a source with `kind = "api_docs"`: one file per API.

Platform teams export their reference to this format; see `samples/api` for examples.
"""

from typing import Literal

from pydantic import Field, JsonValue

from schemas.base import ApiModel
from schemas.choices import Language


class AllowedValue(ApiModel):
    """One value of an enumerated parameter and its meaning."""

    value: str
    meaning: str = ""


class Parameter(ApiModel):
    """A field of a header, request or response. Fields of objects and arrays are its `children`."""

    name: str = Field(min_length=1)
    type: str = "string"
    required: bool = False
    description: str = ""
    example: str = ""
    values: tuple[AllowedValue, ...] = ()
    children: tuple["Parameter", ...] = ()
    dimensions: int = 0
    """Number of lists around the children; their names show `[]` for each."""
    location: str = ""
    """Location (query, path, body), if the table should show it."""


class ErrorCode(ApiModel):
    """An error that the API returns."""

    code: str = Field(min_length=1)
    message: str = ""
    cause: str = ""
    remedy: str = ""


class PermissionPackage(ApiModel):
    """A permission package (scope) that an application needs to call the API."""

    name: str = Field(min_length=1)
    description: str = ""


class Example(ApiModel):
    """An example of a request or response, as a JSON value or verbatim text."""

    title: str = ""
    value: JsonValue


class ApiDocument(ApiModel):
    """The reference of one API.

    `page_url` is optional if the template `page_url` of the source in platform.toml builds it from
    the other fields.
    """

    service_id: str = Field(min_length=1)
    service_name: str = ""
    api_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"] = "POST"
    url: str = Field(min_length=1)
    page_url: str = ""
    version: str = ""
    language: Language = "zh"
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
    """Further examples, with titles."""
    response_examples: tuple[Example, ...] = ()
    request_description: str = ""
    """Description of the request body as a whole."""
    response_description: str = ""
    servers: tuple[str, ...] = ()
    """Base URLs of `url`."""
