"""The contents of platform.toml, and the limits of source documents."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    model_validator,
)
from pydantic_core import PydanticCustomError

from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import LANGUAGES, Language
from schemas.settings import Settings


@dataclass(frozen=True)
class SourceLimits:
    """Maximum sizes of a source document; larger documents are refused."""

    file_bytes: int = 50_000_000
    """Maximum size of a file or download, in bytes."""
    unpacked_bytes: int = 200_000_000
    """Maximum unpacked size of a docx or pdf file, in bytes."""
    values: int = 2_000_000
    """Maximum number of values in a YAML or JSON document, with aliases expanded."""
    fetch_seconds: float = 30.0
    """Seconds to wait for a download."""
    private_hosts: tuple[str, ...] = ()
    """Hosts at private addresses from which downloads are allowed."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "SourceLimits":
        """Return the limits that `settings` contains."""
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
"""Templates of a document's URL; the first one whose placeholders all have values is used."""

Pattern = Annotated[re.Pattern[str], Field(description="a regular expression with named groups")]


def _line_by_line(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


LinePattern = Annotated[Pattern, AfterValidator(_line_by_line)]
"""A pattern in which `^` and `$` match at every line."""


class ApiDocsSourceConfig(ConfigModel):
    """A folder of API documents in the JSON format of `schemas.api_document`."""

    name: NonEmptyStr
    kind: Literal["api_docs"]
    path: Path
    page_url: PageUrl = ()
    """Templates with the document's camelCase fields, for documents without a `pageUrl`."""


class OpenApiSourceConfig(ConfigModel):
    """An OpenAPI 3.0, 3.1 or Swagger 2.0 description in JSON or YAML, as a file or URL."""

    name: NonEmptyStr
    kind: Literal["openapi"]
    path: Path | None = None
    url: str | None = None
    root: Path | None = None
    """The folder that `$ref` may refer to; default: the folder of the file."""
    page_url: PageUrl = ()
    """Templates with the camelCase fields, `{operationId}`, `{tag}`, `{method}` and `{path}`."""
    language: Language | None = None
    """The language of the descriptions; default: detected."""

    @model_validator(mode="after")
    def _file_or_url(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise PydanticCustomError("file_or_url", "must name either a path or a url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise PydanticCustomError("file_or_url", "url must begin with http:// or https://")
        return self


class PageConfig(ConfigModel):
    """Common fields of sources of pages. Each page has named values, such as its front matter."""

    name: NonEmptyStr
    page_url: PageUrl = ()
    """Templates with the page's values."""
    title: str = "title"
    """Name of the value with the title; fallback: the first heading, then the last part of its id."""
    skip: tuple[str, ...] = ()
    """A page is skipped if one of these values is true, such as `draft`."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Metadata names and the values that they are read from."""
    api_pages: bool = True
    """Whether pages that describe API operations are read as such; otherwise they are prose."""


class PageSourceConfig(PageConfig):
    """Common fields of folders of pages.

    Each page has named values: `{path}` (relative, without suffix), `{page_path}` (the same without
    a final `index`, `_index` or `README`), `{folder}` (the parent of that), `{stem}`, `{suffix}`,
    the named groups of `file_name`, and the page's own properties (front matter, document
    properties). At the top level `{page_path}` and `{folder}` are empty, and a slash after them is
    removed.
    """

    path: Path
    file_name: Pattern | None = None
    """Searched in the file name; named groups become values. Files without a match are skipped."""


class MarkdownSourceConfig(PageSourceConfig):
    """A folder of Markdown pages (.md, .mdx) with YAML, TOML or JSON front matter."""

    kind: Literal["markdown"]
    skip: tuple[str, ...] = ("draft", "hidden", "unlisted")
    """As for all pages; the default is what documentation generators do not publish or list."""


class FilesSourceConfig(PageSourceConfig):
    """A folder of .txt, .html, .htm, .pdf and .docx files."""

    kind: Literal["files"]
    suffixes: tuple[Literal[".txt", ".html", ".htm", ".pdf", ".docx"], ...] = ()
    """Suffixes of the files to read; default: all."""
    header: LinePattern | None = None
    """Searched at the start of a text file; named groups become values, the match is not content."""
    section: LinePattern | None = None
    """Start of a section in a text file; named groups become values, `heading` the heading."""


SourceConfig = Annotated[
    ApiDocsSourceConfig | OpenApiSourceConfig | MarkdownSourceConfig | FilesSourceConfig,
    Field(discriminator="kind"),
]


class LocalizedText(RootModel[dict[Language, NonEmptyStr]]):
    """A sentence per language; in platform.toml one string stands for all languages."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _one_for_all(cls, value: object) -> object:
        return dict.fromkeys(LANGUAGES, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if not self.root:
            raise PydanticCustomError("missing", "has no sentence")
        return self

    def in_language(self, language: Language) -> str:
        """Return the sentence in `language` or, if it is missing, in another language."""
        return self.root.get(language) or next(iter(self.root.values()))


class PlatformInfo(ConfigModel):
    """`[platform]`: name, audience and tone of the platform."""

    name: NonEmptyStr
    description: NonEmptyStr
    """The platform and the topics that questions may be about."""
    audience: NonEmptyStr
    tone: NonEmptyStr
    greeting: LocalizedText
    refusal: LocalizedText
    """The reply to an off-topic question."""
    language: Language = "zh"
    hosts: tuple[NonEmptyStr, ...] = ()
    """The platform's own hosts and their subdomains. An answer may link to a path on them that a chunk
    contains; any other link must be a retrieved page.
    """


GlossaryEntry = Annotated[
    tuple[NonEmptyStr, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)
]


class IngestionSchedule(ConfigModel):
    """`[ingestion]`: the schedule of automatic runs."""

    schedule: NonEmptyStr | None = None
    """A cron expression with five fields; None disables automatic runs."""
    timezone: NonEmptyStr = "UTC"
    """The time zone of the expression, such as `Asia/Shanghai`."""
    retries: int = Field(default=2, ge=0, le=10)
    """Retries of a failed run before the next scheduled run."""
    retry_seconds: float = Field(default=60, ge=0)
    """Delay before each retry, in seconds."""


class PlatformConfig(ConfigModel):
    """The contents of platform.toml, with paths resolved against its folder."""

    platform: PlatformInfo
    sources: tuple[SourceConfig, ...] = Field(min_length=1)
    ingestion: IngestionSchedule = IngestionSchedule()
    glossary: dict[NonEmptyStr, GlossaryEntry] = Field(default_factory=dict)
    """Synonyms and translations of terms, applied in both directions."""
