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
    HttpUrl,
    RootModel,
    model_validator,
)
from pydantic_core import PydanticCustomError

from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import LANGUAGES, Language
from schemas.settings import Settings


@dataclass(frozen=True)
class SourceLimits:
    """Limits and a cache for reading source documents. A document above a maximum size is refused."""

    file_bytes: int = 50_000_000
    """Maximum size in bytes of a file or a download.

    For an OpenAPI description, the documents that it refers to are included.
    """
    unpacked_bytes: int = 200_000_000
    """Maximum unpacked size of a docx or pdf file or a compressed sitemap, in bytes."""
    values: int = 2_000_000
    """Maximum number of values in a YAML or JSON document, with aliases and `$ref` expanded."""
    fetch_seconds: float = 30.0
    """Time limit in seconds for downloading all documents of an OpenAPI description, or one web page."""
    private_hosts: tuple[str, ...] = ()
    """Hosts at private addresses from which downloads are allowed."""
    website_cache: Path | None = None
    """Cache file for downloaded pages of web sites; None disables the cache."""

    @classmethod
    def from_settings(cls, settings: Settings) -> "SourceLimits":
        """Return the limits that `settings` contains."""
        return cls(
            file_bytes=settings.max_file_bytes,
            unpacked_bytes=settings.max_unpacked_bytes,
            values=settings.max_values,
            fetch_seconds=settings.fetch_timeout,
            private_hosts=settings.private_hosts,
            website_cache=settings.website_cache,
        )


def _to_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


PageUrl = Annotated[tuple[str, ...], BeforeValidator(_to_tuple)]
"""Templates of a document's URL; the first one with values for all of its placeholders is used.

Only `{page_path}`, `{folder}` and `{anchor}` may have an empty value.
"""

PageFormat = Literal["markdown", "html", "text"]
"""The format of a page.

Pages in `markdown` and `html` are converted to plain Markdown, and API operations in them are
recognised. `description` and `keywords` in the metadata of `markdown` pages are indexed as text.
"""

Pattern = Annotated[re.Pattern[str], Field(description="a regular expression with named groups")]


def _make_multiline(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


LinePattern = Annotated[Pattern, AfterValidator(_make_multiline)]
"""A pattern in which `^` and `$` match at every line."""


class ApiDocsSourceConfig(ConfigModel):
    """A folder of API documents in the JSON format of `schemas.document`."""

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
    """The folder with the files that `$ref` may refer to; default: the folder of `path`."""
    page_url: PageUrl = ()
    """Templates with the camelCase fields of `ApiDocument`, and with `{operationId}`, `{tag}`, `{method}`
    and `{path}`.
    """
    language: Language | None = None
    """The language of the descriptions; default: detected."""

    @model_validator(mode="after")
    def _check_path_or_url(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise PydanticCustomError("file_or_url", "must name either a path or a url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise PydanticCustomError("file_or_url", "url must begin with http:// or https://")
        return self


class PageSourceConfig(ConfigModel):
    """Common fields of sources of pages. Each page has named values, such as its front matter."""

    name: NonEmptyStr
    page_url: PageUrl = ()
    """Templates with the page's values, and `{anchor}` of a section's heading."""
    anchors: Literal["github", "docusaurus", "vitepress", "mkdocs"] = "github"
    """The rule by which the site derives `{anchor}` from a heading."""
    title: str = "title"
    """Name of the value that is the title. docs/reference/platform.md lists the fallbacks."""
    skip: tuple[str, ...] = ()
    """Names of values, such as `draft`. A page is skipped if one of these values is true."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Maps each metadata name to the page value that supplies it, for example to a front matter key."""
    api_pages: bool = True
    """Whether pages that describe API operations are read as such instead of as prose."""


class PageFolderConfig(PageSourceConfig):
    """Common fields of folders of pages.

    Each page has named values: `{path}` (relative, without suffix), `{page_path}` (`{path}` without a final
    `index`, `_index` or `README`), `{folder}` (the folder of `{page_path}`), `{stem}`, `{suffix}`, the
    named groups of `file_name`, and the page's own properties (front matter, document properties).
    `{folder}` is empty for a page at the top level. `{page_path}` is empty for the index page of the top
    level. In the URL made from a template, the slash after an empty value is removed.
    """

    path: Path
    file_name: Pattern | None = None
    """A pattern to search for in the file name without suffix; its named groups become values.

    Files whose names do not match are skipped.
    """


class MarkdownSourceConfig(PageFolderConfig):
    """A folder of Markdown pages (.md, .mdx) with YAML, TOML or JSON front matter."""

    kind: Literal["markdown"]
    skip: tuple[str, ...] = ("draft", "hidden", "unlisted")
    """See `PageSourceConfig.skip`. The defaults mark pages that generators do not publish or list."""


FileSuffix = Literal[".txt", ".html", ".htm", ".pdf", ".docx", ".csv", ".tsv"]
"""A suffix of the files that a source of kind `files` reads."""


class FilesSourceConfig(PageFolderConfig):
    """A folder of .txt, .html, .htm, .pdf, .docx, .csv and .tsv files."""

    kind: Literal["files"]
    suffixes: tuple[FileSuffix, ...] = ()
    """Suffixes of the files to read; default: all."""
    header: LinePattern | None = None
    """A pattern to search for in the first 10,000 characters of a text file.

    Its named groups become values. The matched text is not part of the content.
    """
    section: LinePattern | None = None
    """Matches where a section of a text file starts. Named groups become values of the section.

    The heading is the group `heading` or, without this group, the matched text.
    """


class RemoteSourceConfig(PageSourceConfig):
    """Common fields of sources whose pages are read over the network."""

    timeout_seconds: float = Field(default=3_600, gt=0)
    """Time limit for reading the source in seconds; embedding and writing do not count."""
    max_errors: int = Field(default=2, ge=0)
    """Maximum number of failed pages of a web site, or of transient failures of a loader.

    After one more failure, the rest of the source is not read.
    """

    @property
    def path(self) -> None:
        """None: the source has no files that could be watched."""


_REFERENCES = ({"env"}, {"import"}, {"search"})
"""The keys of tables such as `{ env = "NAME" }`, each of which is replaced by another value.

`LoaderSourceConfig.arguments` explains them.
"""

_SECRET_NAME = re.compile(r"(token|secret|password|passwd|api_?key|private_?key)$", re.IGNORECASE)


def _check_no_secrets(arguments: dict[str, object]) -> dict[str, object]:
    for name, value in arguments.items():
        if isinstance(value, str) and _SECRET_NAME.search(name):
            raise PydanticCustomError(
                "secret", '{name} must be written as { env = "NAME" }', {"name": name}
            )
        if isinstance(value, dict) and value.keys() not in _REFERENCES:
            _check_no_secrets(value)
    return arguments


class LoaderSourceConfig(RemoteSourceConfig):
    """The documents that a LangChain `BaseLoader` loads, for example one of langchain-community."""

    kind: Literal["loader"]
    loader: Annotated[str, Field(pattern=r"^\w+(\.\w+)+$")]
    """Dotted path of the loader's class."""
    arguments: Annotated[dict[str, object], AfterValidator(_check_no_secrets)] = Field(
        default_factory=dict
    )
    """Keyword arguments of the class. `{ env = "NAME" }` is the value of an environment variable,
    `{ import = "package.name" }` an imported object, and `{ search = "pattern" }` a function that says
    whether a text contains the pattern.
    """
    id: str = "{source}"
    """Template of a document's id, with the values of its metadata; ids must be unique and stable."""
    format: PageFormat = "markdown"
    """The format of the documents' content."""


class WebsiteSourceConfig(RemoteSourceConfig):
    """The pages of a web site, found by links from a start page or by a sitemap.

    A page's values are `{url}`, `{path}`, and either its `<title>` and `<meta>` elements (HTML) or its
    front matter (Markdown).
    """

    kind: Literal["website"]
    url: str | None = None
    """The start page."""
    sitemap: str | None = None
    """The URL of a sitemap or of an index of sitemaps, instead of `url`."""
    include: tuple[re.Pattern[str], ...] = ()
    """A page is read if its path, with its query, matches one of these patterns.

    Default: the pages in the folder of `url`, or all pages of `sitemap`.
    """
    exclude: tuple[re.Pattern[str], ...] = ()
    """A page is not read if its path, with its query, matches one of these patterns."""
    depth: int = Field(default=10, ge=0)
    """Maximum number of links from the start page to a page."""
    max_pages: int = Field(default=10_000, ge=1)
    """Maximum number of pages to request; if a site has more, reading it fails."""
    requests_per_second: float = Field(default=5, gt=0)
    """Maximum rate of requests; a `Crawl-delay` in robots.txt that allows fewer takes precedence."""
    page_url: PageUrl = ("{url}",)
    max_errors: int = Field(default=20, ge=0)

    @model_validator(mode="after")
    def _check_url_or_sitemap(self) -> Self:
        if (self.url is None) == (self.sitemap is None):
            raise PydanticCustomError("url_or_sitemap", "must name either a url or a sitemap")
        if not self.site_url.startswith(("http://", "https://")):
            raise PydanticCustomError(
                "url_or_sitemap", "url or sitemap must begin with http:// or https://"
            )
        return self

    @property
    def site_url(self) -> str:
        """`url` or `sitemap`; all requests go to its origin."""
        return self.url or self.sitemap or ""


SourceConfig = Annotated[
    ApiDocsSourceConfig
    | OpenApiSourceConfig
    | MarkdownSourceConfig
    | FilesSourceConfig
    | LoaderSourceConfig
    | WebsiteSourceConfig,
    Field(discriminator="kind"),
]


class LocalizedText(RootModel[dict[Language, NonEmptyStr]]):
    """A sentence per language; in platform.toml, a single string may stand for all languages."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _copy_to_all_languages(cls, value: object) -> object:
        return dict.fromkeys(LANGUAGES, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.root:
            raise PydanticCustomError("missing", "must contain a text in at least one language")
        return self

    def in_language(self, language: Language) -> str:
        """Return the sentence in `language` or, if it is missing, in another language."""
        return self.root.get(language) or next(iter(self.root.values()))


def _check_image(path: Path) -> Path:
    if path.suffix not in (".svg", ".png", ".webp"):
        raise PydanticCustomError("image", "must be a .svg, .png or .webp file")
    return path


class PlatformInfo(ConfigModel):
    """`[platform]`: name, audience and tone of the platform, and the look of its question page."""

    name: NonEmptyStr
    names: dict[Language, NonEmptyStr] = Field(default_factory=dict)
    """The name by language; if a language is missing here, `name` is used."""
    description: NonEmptyStr
    """The platform and the topics that questions may be about."""
    descriptions: dict[Language, NonEmptyStr] = Field(default_factory=dict)
    """The description that the question page shows, by language.

    If a language is missing here, `description` is used.
    """
    audience: NonEmptyStr
    tone: NonEmptyStr
    greeting: LocalizedText
    refusal: LocalizedText
    """The reply to an off-topic question."""
    language: Language = "zh"
    hosts: tuple[NonEmptyStr, ...] = ()
    """The platform's own hosts; their subdomains are included.

    An answer may contain a URL on these hosts if a retrieved chunk contains the path of the URL.
    """
    docs_url: HttpUrl | None = None
    """The documentation site that the question page links back to."""
    logo: Annotated[Path, AfterValidator(_check_image)] | None = None
    """An image that the page shows before the name."""
    accent: Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")] | None = None
    """The colour of links and buttons; None means the default colour."""

    def name_in(self, language: Language) -> str:
        """Return the name in `language` or, if `names` lacks it, `name`."""
        return self.names.get(language, self.name)

    def description_in(self, language: Language) -> str:
        """Return the description in `language` or, if `descriptions` lacks it, `description`."""
        return self.descriptions.get(language, self.description)


GlossaryEntry = Annotated[tuple[NonEmptyStr, ...], BeforeValidator(_to_tuple)]


class IngestionSchedule(ConfigModel):
    """`[ingestion]`: the schedule of automatic runs."""

    schedule: NonEmptyStr | None = None
    """A cron expression with five fields; None disables automatic runs."""
    timezone: NonEmptyStr = "UTC"
    """The time zone of the expression, such as `Asia/Shanghai`."""
    retries: int = Field(default=2, ge=0, le=10)
    """Maximum number of retries of a failed run before the next scheduled run."""
    retry_seconds: float = Field(default=60, ge=0)
    """Delay before each retry, in seconds."""


class PlatformConfig(ConfigModel):
    """The contents of platform.toml. `read_platform` resolves relative paths against the file's folder."""

    platform: PlatformInfo
    sources: tuple[SourceConfig, ...] = Field(min_length=1)
    ingestion: IngestionSchedule = IngestionSchedule()
    glossary: dict[NonEmptyStr, GlossaryEntry] = Field(default_factory=dict)
    """Synonyms and translations of terms, applied in both directions."""
