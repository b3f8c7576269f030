"""An operation of an API as a page describes it, before it becomes an API document."""

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ingestion.sources.api_calls import CALL, Method
from ingestion.sources.api_columns import text_of
from ingestion.text.markdown_blocks import MarkdownBlock
from schemas.api_document import ApiDocument, ErrorCode, Parameter, PermissionPackage
from schemas.choices import Language

MAX_DESCRIPTION_CHARS = 300
"""Maximum length of the description that is taken from the text of a page, in characters."""

Role = Literal["headers", "public", "request", "response", "errors", "permissions", ""]
"""What a table or list holds."""


@dataclass
class PageOperation:
    """An operation of an API as a page describes it."""

    method: Method
    url: str
    name: str
    request_headers: list[Parameter] = field(default_factory=list)
    public_parameters: list[Parameter] = field(default_factory=list)
    request_parameters: list[Parameter] = field(default_factory=list)
    response_parameters: list[Parameter] = field(default_factory=list)
    error_codes: list[ErrorCode] = field(default_factory=list)
    permissions: list[PermissionPackage] = field(default_factory=list)
    prose: list[MarkdownBlock] = field(default_factory=list)
    """The blocks that are none of these, in order."""
    evidence: list[str] = field(default_factory=list)
    """Why the page is read as an operation, for people: one clause per mark, table and list."""
    has_labelled_parameters: bool = False
    """Whether a heading or label announces parameters, and they say whether they are required."""
    is_stated: bool = True
    """Whether the page states the method and the URL; otherwise they are from an example of a call."""

    def document(self, api_id: str, service_id: str, language: Language) -> ApiDocument:
        """Return the operation in the format of API documents; a host in the URL becomes a server."""
        address = urlsplit(self.url)
        return ApiDocument(
            service_id=service_id,
            api_id=api_id,
            name=self.name,
            method=self.method,
            url=address.path or self.url,
            language=language,
            description=self._description(),
            request_headers=tuple(self.request_headers),
            public_parameters=tuple(self.public_parameters),
            request_parameters=tuple(self.request_parameters),
            response_parameters=tuple(self.response_parameters),
            error_codes=tuple(self.error_codes),
            permission_packages=tuple(self.permissions),
            servers=(f"{address.scheme}://{address.netloc}",) if address.netloc else (),
        )

    def _description(self) -> str:
        paragraphs = (text_of(block.text) for block in self.prose if block.kind == "paragraph")
        described = (text for text in paragraphs if len(text) > 8 and not CALL.search(text))
        return next(described, "")[:MAX_DESCRIPTION_CHARS]

    def parameters_of(self, role: Role) -> list[Parameter]:
        """Return the list that parameters of `role` belong to."""
        lists: dict[Role, list[Parameter]] = {
            "headers": self.request_headers,
            "public": self.public_parameters,
            "response": self.response_parameters,
        }
        return lists.get(role, self.request_parameters)
