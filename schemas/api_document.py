"""The JSON format of a source with `kind = "api_docs"`: one file per operation.

An operation is a method with a URL. This format calls it an API.

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
    """A header, or a field of a request or response.

    The `children` of an object, or of an array of objects, are the fields of the object.
    """

    name: str = Field(min_length=1)
    type: str = "string"
    required: bool = False
    description: str = ""
    example: str = ""
    values: tuple[AllowedValue, ...] = ()
    children: tuple["Parameter", ...] = ()
    dimensions: int = 0
    """Number of nested arrays around the children. Two are indexed as `items[][].id`."""
    location: str = ""
    """Location (query, path, body) to show in the indexed table; empty to show none."""


class ErrorCode(ApiModel):
    """An error that the operation returns."""

    code: str = Field(min_length=1)
    message: str = ""
    cause: str = ""
    remedy: str = ""


class PermissionPackage(ApiModel):
    """A permission package (scope) that an application needs to call the operation."""

    name: str = Field(min_length=1)
    description: str = ""


class Example(ApiModel):
    """An example of a request or response, as a JSON value or verbatim text."""

    title: str = ""
    value: JsonValue


class ApiDocument(ApiModel):
    """The reference of one operation.

    Omit `page_url` if the source in platform.toml has a template `page_url`, which builds the URL from
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
    """Parameters that many operations share (公共参数)."""
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
    """Base URLs. In documents made from OpenAPI, `url` already includes the path of the first one."""
