"""How much of a source is taken, and from where.
`[[sources]]` of platform.toml: where documents lie and how their pages are named.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import Language
from schemas.settings import Settings


@dataclass(frozen=True)
class SourceLimits:
    """What a document may cost before it is refused."""

    file_bytes: int = 50_000_000
    """A file or a download."""
    unpacked_bytes: int = 200_000_000
    """What a packed document holds."""
    values: int = 2_000_000
    """Scalars, lists and tables of a YAML or JSON document, aliases as often as they are used."""
    fetch_seconds: float = 30.0
    private_hosts: tuple[str, ...] = ()
    """Hosts at private addresses that may be fetched from all the same."""

    @classmethod
    def of(cls, settings: Settings) -> "SourceLimits":
        """The limits in Settings."""
        return cls(
            file_bytes=settings.max_file_bytes,
            unpacked_bytes=settings.max_unpacked_bytes,
            values=settings.max_values,
            fetch_seconds=settings.fetch_timeout,
            private_hosts=settings.private_hosts,
        )


def _one_or_several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


PageUrl = Annotated[tuple[str, ...], BeforeValidator(_one_or_several)]
"""Templates for a document's link, best first: the first whose names all have a value makes it."""

Pattern = Annotated[re.Pattern[str], Field(description="a regular expression with named groups")]


def _line_by_line(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


LinePattern = Annotated[Pattern, AfterValidator(_line_by_line)]
"""`^` and `$` are the beginning and the end of any line."""


class ApiDocsSourceConfig(ConfigModel):
    """A folder of API documents in the JSON format of `schemas.api_document`."""

    name: NonEmptyStr
    kind: Literal["api_docs"]
    path: Path
    page_url: PageUrl = ()
    """Templates over the document's camelCase fields, for documents that name no `pageUrl`."""


class OpenApiSourceConfig(ConfigModel):
    """One OpenAPI 3.0, 3.1 or Swagger 2.0 description, in JSON or YAML: a file or a url."""

    name: NonEmptyStr
    kind: Literal["openapi"]
    path: Path | None = None
    url: str | None = None
    root: Path | None = None
    """The folder that a `$ref` may lead to; the file's own unless set."""
    page_url: PageUrl = ()
    """Templates over the operation's camelCase fields, `{operationId}`, `{tag}`, `{method}`, `{path}`."""
    language: Language | None = None
    """The language of the descriptions; found out where it is not said."""

    @model_validator(mode="after")
    def _file_or_url(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise PydanticCustomError("file_or_url", "names either a path or a url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise PydanticCustomError("file_or_url", "url begins with http:// or https://")
        return self


class PageSourceConfig(ConfigModel):
    """What folders of pages have in common.

    Every page has values by name: `{path}` (relative, without suffix), `{page_path}` (the same
    without a last `index`, `_index` or `README`), `{folder}` (what stands above that), `{stem}`,
    `{suffix}`, the named groups of `file_name`, and what the page says of itself (front matter,
    document properties). At the top `{page_path}` and `{folder}` are empty, and a slash behind
    them falls away.
    """

    name: NonEmptyStr
    path: Path
    page_url: PageUrl = ()
    """Templates over the page's values."""
    file_name: Pattern | None = None
    """Named groups of it, searched in a file's name, are values; a file without a match is left out."""
    title: str = "title"
    """The value that is the title; else the first heading, else the file's name."""
    skip: tuple[str, ...] = ()
    """A page is left out when one of these values is true (a draft, a hidden page)."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Metadata name -> the value it is read from."""


class MarkdownSourceConfig(PageSourceConfig):
    """A folder of Markdown pages (.md, .mdx) with YAML, TOML or JSON front matter."""

    kind: Literal["markdown"]


class FilesSourceConfig(PageSourceConfig):
    """A folder of .txt, .html, .htm, .pdf and .docx files."""

    kind: Literal["files"]
    suffixes: tuple[Literal[".txt", ".html", ".htm", ".pdf", ".docx"], ...] = ()
    """Which files are read; all of these kinds unless set."""
    header: LinePattern | None = None
    """Searched in a text file's beginning; its named groups are values, its text is no content."""
    section: LinePattern | None = None
    """Where a section of a text file begins: named groups are its values, `heading` its heading."""


SourceConfig = Annotated[
    ApiDocsSourceConfig | OpenApiSourceConfig | MarkdownSourceConfig | FilesSourceConfig,
    Field(discriminator="kind"),
]
