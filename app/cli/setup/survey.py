"""Finds the documents in a folder or OpenAPI description, and configures them as sources."""

import re
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.analytics.report_text import count_of
from ingestion.sources import markdown
from ingestion.sources.files import file_suffixes
from ingestion.sources.folder import MARKDOWN_SUFFIXES, check_size, list_files, read_text
from ingestion.sources.markdown import markdown_content
from ingestion.sources.openapi.reader import DescriptionSummary, summarise_openapi
from ingestion.sources.registry import EmptyFile, read_source
from ingestion.text.clean_markdown import inline_links
from ingestion.text.markdown_blocks import parse_blocks, plain_text
from schemas.choices import Language
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import (
    FilesSourceConfig,
    MarkdownSourceConfig,
    OpenApiSourceConfig,
    SourceConfig,
    SourceLimits,
)

DESCRIPTION_SUFFIXES = (".json", ".yaml", ".yml")

FILE_SUFFIXES = file_suffixes(FilesSourceConfig(name="files", kind="files", path=Path())) - {".txt"}
"""Suffixes of the files that become a source of kind `files`. Files with the suffix .txt are left out."""

DESCRIPTION_FOLDERS = frozenset({"_static"})
"""Folders with files for download. Their pages are not read, but OpenAPI descriptions in them are."""

SNIFF_BYTES = 20_000
"""Number of bytes at the start of a file that are searched for `openapi` or `swagger`."""

MAX_DESCRIPTIONS = 20
"""Maximum number of OpenAPI descriptions that are used as sources."""

LANGUAGE_SAMPLE_DOCUMENTS = 5
"""Maximum number of documents per source whose languages are counted."""

INTRODUCTIONS = ("readme.md", "index.md", "index.mdx", "_index.md")
"""Lower-case names of files whose first paragraph may describe the platform, the best first."""

MIN_INTRODUCTION_CHARS = 20
MIN_CHINESE_INTRODUCTION_CHARS = 10
MAX_INTRODUCTION_CHARS = 300
"""Limits of the length of a paragraph that describes the platform, in characters."""

_IMAGE = re.compile(
    r"!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\([^)]*\)|\[[^\]]*\])?|<img\b[^>]*>", re.IGNORECASE
)
_LINK = re.compile(
    r"\[([^\[\]]*)\](?:\([^)]*\)|\[[^\]]*\])|<a\b[^>]*>(.*?)</a\s*>", re.DOTALL | re.IGNORECASE
)
_LINK_START, _LINK_END = "\ue100", "\ue101"
"""Private-use characters that are inserted before and after the label of a link."""
_LABEL = re.compile(f"{_LINK_START}[^{_LINK_END}]*{_LINK_END}")
_CHINESE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_SEPARATOR = re.compile(r"[|•]|\s[·/]\s")
"""Separates the entries of a menu bar, such as `English | 中文`."""
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？]")

_REFERENCE = re.compile(r"\$ref[\"']?\s*:\s*[\"']?(?:[^\s\"'#]*/)?([^\s\"'#/]+)")
"""Matches a `$ref` to another file in the text of an OpenAPI file. The group is the name of that file."""

MAX_NAMED_PROBLEMS = 3
"""Maximum number of unusable files that an error message names."""


@dataclass(frozen=True)
class DocumentSurvey:
    """The sources that were found, and what they reveal about the platform."""

    sources: tuple[SourceConfig, ...]
    contents: tuple[str, ...]
    """The contents of each source, such as "14 Markdown pages"."""
    summary: DescriptionSummary | None
    """Summary of the first OpenAPI description; None if there is no description."""
    language: Language
    """The most frequent language of the sampled documents."""
    left_out: str = ""
    """The files that no source reads, by suffix, such as "2 .rst, 1 .txt"; empty if there are none."""
    introduction: str = ""
    """The first paragraph of the README or index page, if there are more pages than operations."""


def survey_documents(where: str, limits: SourceLimits) -> DocumentSurvey:
    """Survey `where`: a folder, an OpenAPI description file, or the URL of a description.

    Raises SourceError if `where` does not exist or contains no readable document.
    """
    surveyed = list(_find_sources(where, limits))
    if not surveyed:
        raise SourceError(
            f"{where}: contains no Markdown, no OpenAPI description and no HTML, PDF, Word or CSV file"
        )
    return DocumentSurvey(
        sources=tuple(found.source for found in surveyed),
        contents=tuple(found.contents for found in surveyed),
        summary=next((found.summary for found in surveyed if found.summary), None),
        language=_most_frequent_language(surveyed, limits),
        left_out=_count_left_out(
            Path(where).expanduser(),
            {found.source.path for found in surveyed if found.summary and found.source.path},
            limits,
        ),
        introduction=_introduction(surveyed),
    )


def _introduction(surveyed: list["_SurveyedSource"]) -> str:
    """Return the first paragraph of the README or index page of the Markdown source.

    The result is empty if there is no such page or source, or if `_first_paragraph` returns no text. It is
    also empty if the OpenAPI descriptions have at least as many operations as the source has pages.
    """
    operations = sum(found.summary.operations for found in surveyed if found.summary)
    folder = next((found.source.path for found in surveyed if found.pages > operations), None)
    if folder is None:
        return ""
    paths = {path.name.lower(): path for path in folder.iterdir()}
    texts = (_first_paragraph(paths[name]) for name in INTRODUCTIONS if name in paths)
    return next(filter(None, texts), "")


def _first_paragraph(path: Path) -> str:
    """Return the first paragraph of prose as plain text; empty if there is none, or if it is too long."""
    try:
        content = markdown_content(_mark_links(read_text(path)))
    except SourceError:
        return ""
    blocks = (block for part in content.parts for block in parse_blocks(part.markdown))
    texts = (unescape(plain_text(block.text)) for block in blocks if block.kind == "paragraph")
    first = next(filter(_has_prose, texts), "")
    text = " ".join(_without_link_marks(first).split())
    return text if len(text) <= MAX_INTRODUCTION_CHARS else ""


def _mark_links(markdown: str) -> str:
    """Return a page without images; each link becomes `_LINK_START`, its label and `_LINK_END`."""
    return _LINK.sub(
        lambda link: f"{_LINK_START}{link[1] or link[2] or ''}{_LINK_END}",
        inline_links(_IMAGE.sub("", markdown)),
    )


def _without_link_marks(text: str) -> str:
    return text.replace(_LINK_START, "").replace(_LINK_END, "")


def _has_prose(paragraph: str) -> bool:
    """Return whether a paragraph with marked links is long enough, and not just links or a menu bar."""
    text, rest = _without_link_marks(paragraph).strip(), _LABEL.sub(" ", paragraph)
    if _SEPARATOR.search(rest) and not _SENTENCE_END.search(rest):
        return False
    word_chars = len(re.findall(r"\w", rest))
    return len(text) >= _min_chars(text) and word_chars >= _min_chars(rest) / 2


def _min_chars(text: str) -> int:
    is_chinese = _CHINESE.search(text)
    return MIN_CHINESE_INTRODUCTION_CHARS if is_chinese else MIN_INTRODUCTION_CHARS


@dataclass(frozen=True)
class _SurveyedSource:
    source: SourceConfig
    contents: str
    summary: DescriptionSummary | None = None
    pages: int = 0
    """Number of Markdown pages."""


def _find_sources(where: str, limits: SourceLimits) -> Iterator[_SurveyedSource]:
    if where.startswith(("http://", "https://")):
        yield _survey_description(
            OpenApiSourceConfig(name="reference", kind="openapi", url=where), limits
        )
        return
    path = Path(where).expanduser()
    if path.is_dir():
        yield from _survey_folder(path, limits)
    elif path.is_file():
        yield _survey_description(
            OpenApiSourceConfig(name="reference", kind="openapi", path=path), limits
        )
    else:
        raise SourceError(f"{where}: no such file or folder")


def _survey_description(source: OpenApiSourceConfig, limits: SourceLimits) -> _SurveyedSource:
    """Summarise an OpenAPI description.

    Raises SourceError if `source` is not a description, or if it describes no operation.
    """
    location = source.url or str(source.path)
    try:
        summary = summarise_openapi(source, limits)
    except SourceError as error:
        name = source.path.name if source.path else "the description"
        message = str(error).removeprefix(f"{name}: ")
        raise SourceError(f"{location}: {message}") from None
    if not summary.operations:
        raise SourceError(f"{location}: describes no operation")
    title = f"“{summary.title}”, " if summary.title else ""
    return _SurveyedSource(source, f"{title}{count_of(summary.operations, 'operation')}", summary)


def _survey_folder(folder: Path, limits: SourceLimits) -> Iterator[_SurveyedSource]:
    yield from _descriptions(folder, limits)
    source = MarkdownSourceConfig(name="pages", kind="markdown", path=folder)
    if pages := _count_pages(source):
        yield _SurveyedSource(source, count_of(pages, "Markdown page"), pages=pages)
    files = FilesSourceConfig(name="files", kind="files", path=folder)
    if paths := _files(folder, FILE_SUFFIXES):
        suffixes = sorted({path.suffix.lower() for path in paths})
        contents = f"{count_of(len(paths), 'file')} ({', '.join(suffixes)})"
        yield _SurveyedSource(files.model_copy(update={"suffixes": tuple(suffixes)}), contents)


def _count_left_out(folder: Path, descriptions: Set[Path], limits: SourceLimits) -> str:
    """Count the files below `folder` that no source reads, by suffix.

    Hidden files are not counted, nor are the OpenAPI `descriptions` and the files to which they may refer.
    """
    others = {path.suffix.lower() for path in folder.rglob("*")} - {
        *MARKDOWN_SUFFIXES,
        *FILE_SUFFIXES,
    }
    paths = [path for path in _files(folder, others) if not path.name.startswith(".")]
    used = _with_referenced(descriptions, paths, limits)
    counts = Counter(path.suffix.lower() for path in paths if path not in used)
    return ", ".join(
        f"{count} {suffix or 'without suffix'}" for suffix, count in counts.most_common()
    )


def _with_referenced(descriptions: Set[Path], paths: list[Path], limits: SourceLimits) -> set[Path]:
    """Return `descriptions` and those of `paths` to which they refer, directly or indirectly.

    Files are compared by name only, because a reference may be relative to any of several folders.
    """
    used: set[Path] = set()
    unread = set(descriptions)
    while unread:
        path = unread.pop()
        used.add(path)
        names = _referenced_names(path, limits)
        unread |= {other for other in paths if other.name in names} - used
    return used


def _referenced_names(path: Path, limits: SourceLimits) -> set[str]:
    """Return the names of the files to which an OpenAPI file refers; empty if it is unreadable."""
    try:
        check_size(path.stat().st_size, limits)
        return {unquote(name) for name in _REFERENCE.findall(read_text(path))}
    except (OSError, SourceError):
        return set()


def _descriptions(folder: Path, limits: SourceLimits) -> list[_SurveyedSource]:
    """Return the valid OpenAPI descriptions in `folder`, at most `MAX_DESCRIPTIONS`."""
    surveyed: list[_SurveyedSource] = []
    for path in _files(folder, DESCRIPTION_SUFFIXES, DESCRIPTION_FOLDERS):
        if len(surveyed) == MAX_DESCRIPTIONS or not _looks_like_description(path):
            continue
        name = f"reference-{len(surveyed) + 1}" if surveyed else "reference"
        source = OpenApiSourceConfig(name=name, kind="openapi", path=path)
        try:
            surveyed.append(_survey_description(source, limits))
        except SourceError:
            continue
    return surveyed


def _looks_like_description(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(SNIFF_BYTES)
    except OSError:
        return False
    return b"openapi" in head or b"swagger" in head


def _files(
    folder: Path, suffixes: tuple[str, ...] | set[str], read_anyway: Set[str] = frozenset()
) -> list[Path]:
    try:
        return list_files(folder, suffixes, read_anyway)
    except SourceError:
        return []


def _count_pages(source: MarkdownSourceConfig) -> int:
    try:
        return markdown.READER.count_files(source)
    except SourceError:
        return 0


def _most_frequent_language(surveyed: list[_SurveyedSource], limits: SourceLimits) -> Language:
    """Return the most frequent language of the sampled documents.

    If no document can be read, raises SourceError; the message names the first unusable files.
    """
    counts: Counter[Language] = Counter()
    problems: list[str] = []
    for source in surveyed:
        counts.update(_sample_languages(source, limits, problems))
    if not counts:
        named = "; ".join(problems[:MAX_NAMED_PROBLEMS])
        more = len(problems) - MAX_NAMED_PROBLEMS
        rest = f"; and {more} more" if more > 0 else ""
        raise SourceError(f"none of the files can be used: {named}{rest}")
    return counts.most_common(1)[0][0]


def _sample_languages(
    surveyed: _SurveyedSource, limits: SourceLimits, problems: list[str]
) -> list[Language]:
    """Return the languages of the first `LANGUAGE_SAMPLE_DOCUMENTS` documents of a source.

    Also appends a message to `problems` for each unusable file.
    """
    if summary := surveyed.summary:  # the description has already been read
        return [summary.language] * min(summary.operations, LANGUAGE_SAMPLE_DOCUMENTS)
    languages: list[Language] = []
    for result in read_source(surveyed.source, limits):
        if isinstance(result, SourceDocument):
            languages.append(result.language)
        elif isinstance(result, EmptyFile):
            problem = "is skipped" if result.is_skipped else "has no body"
            problems.append(f"{result.name} {problem}")
        else:
            problems.append(str(result))
        if len(languages) == LANGUAGE_SAMPLE_DOCUMENTS:
            break
    return languages


def distinct_hosts(urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct hosts of `urls`. URLs whose host is missing or has a placeholder are skipped."""
    return tuple(dict.fromkeys(host for host in map(_host, urls) if host))


def _host(url: str) -> str | None:
    """Return the host of `url`; None for a path, an invalid URL, or a host with placeholders."""
    try:
        parts = urlsplit(url)
        return None if "{" in parts.netloc else parts.hostname
    except ValueError:
        return None
