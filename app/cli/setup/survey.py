"""What lies where somebody says that their documents are, and which sources that makes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from ingestion.sources.files import file_suffixes
from ingestion.sources.folder import list_files
from ingestion.sources.markdown import SUFFIXES as MARKDOWN
from ingestion.sources.openapi.reader import DescriptionSummary, summarise
from ingestion.sources.registry import read_source
from schemas.choices import Language
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import (
    FilesSourceConfig,
    MarkdownSourceConfig,
    OpenApiSourceConfig,
    SourceConfig,
    SourceLimits,
)

DESCRIPTIONS = (".json", ".yaml", ".yml")

SNIFFED = 20_000
"""Bytes at the beginning of a file in which a description says that it is one."""

MOST_DESCRIPTIONS = 20

SAMPLE = 5
"""Documents that the language is found out from."""


@dataclass(frozen=True)
class DocumentSurvey:
    """The sources that were found, what each holds, and what they say of the platform."""

    sources: tuple[SourceConfig, ...]
    holds: tuple[str, ...]
    """As many as `sources`: "14 Markdown pages"."""
    summary: DescriptionSummary | None
    """Of the first OpenAPI description."""
    language: Language


def survey(where: str, limits: SourceLimits) -> DocumentSurvey:
    """What is at `where`: a folder, an OpenAPI description as a file, or the url of one.

    Raises SourceError for what is not there or holds nothing that could be read.
    """
    found = list(_look(where, limits))
    if not found:
        raise SourceError(
            f"{where}: holds no Markdown, no OpenAPI description and no HTML, PDF or Word file"
        )
    return DocumentSurvey(
        sources=tuple(each.source for each in found),
        holds=tuple(each.holds for each in found),
        summary=next((each.summary for each in found if each.summary), None),
        language=_language(found, limits),
    )


@dataclass(frozen=True)
class _Find:
    source: SourceConfig
    holds: str
    summary: DescriptionSummary | None = None


def _look(where: str, limits: SourceLimits) -> Iterator[_Find]:
    if where.startswith(("http://", "https://")):
        yield _description(OpenApiSourceConfig(name="reference", kind="openapi", url=where), limits)
        return
    path = Path(where).expanduser()
    if path.is_dir():
        yield from _in_folder(path, limits)
    elif path.is_file():
        yield _description(OpenApiSourceConfig(name="reference", kind="openapi", path=path), limits)
    else:
        raise SourceError(f"{where}: no such file or folder")


def _description(source: OpenApiSourceConfig, limits: SourceLimits) -> _Find:
    """Raises SourceError for what is no description, or describes no operation."""
    at = source.url or str(source.path)
    try:
        summary = summarise(source, limits)
    except SourceError as error:
        known_as = source.path.name if source.path else "the description"
        said = str(error).removeprefix(f"{known_as}: ")
        raise SourceError(f"{at}: {said}") from None
    if not summary.operations:
        raise SourceError(f"{at}: describes no operation")
    name = f"“{summary.title}”, " if summary.title else ""
    return _Find(source, f"{name}{_several(summary.operations, 'operation')}", summary)


def _in_folder(folder: Path, limits: SourceLimits) -> Iterator[_Find]:
    yield from _descriptions(folder, limits)
    if pages := _files(folder, MARKDOWN):
        source = MarkdownSourceConfig(name="pages", kind="markdown", path=folder)
        yield _Find(source, _several(len(pages), "Markdown page"))
    files = FilesSourceConfig(name="files", kind="files", path=folder)
    if found := _files(folder, file_suffixes(files) - {".txt"}):
        suffixes = sorted({path.suffix.lower() for path in found})
        # As if read from TOML: the field's type is one of literals.
        source_of = {"name": "files", "kind": "files", "path": folder, "suffixes": suffixes}
        holds = f"{_several(len(found), 'file')} ({', '.join(suffixes)})"
        yield _Find(FilesSourceConfig.model_validate(source_of), holds)


def _descriptions(folder: Path, limits: SourceLimits) -> Iterator[_Find]:
    """Files that call themselves a description; one that is none after all is left out."""
    found: list[_Find] = []
    for path in _files(folder, DESCRIPTIONS):
        if len(found) == MOST_DESCRIPTIONS or not _claims_to_be_one(path):
            continue
        name = f"reference-{len(found) + 1}" if found else "reference"
        try:
            found.append(
                _description(OpenApiSourceConfig(name=name, kind="openapi", path=path), limits)
            )
        except SourceError:
            continue
    yield from found


def _claims_to_be_one(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(SNIFFED)
    except OSError:
        return False
    return b"openapi" in head or b"swagger" in head


def _files(folder: Path, suffixes: tuple[str, ...] | set[str]) -> list[Path]:
    try:
        return list_files(folder, suffixes)
    except SourceError:
        return []


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _language(found: list[_Find], limits: SourceLimits) -> Language:
    """The language of most of the first documents. Raises SourceError where none can be read."""
    counts: Counter[Language] = Counter()
    for each in found:
        counts.update(_languages(each, limits))
    if not counts:
        raise SourceError("none of the files there can be read")
    return counts.most_common(1)[0][0]


def _languages(found: _Find, limits: SourceLimits) -> list[Language]:
    if found.summary is not None:  # fetched once is enough
        return [found.summary.language] * min(found.summary.operations, SAMPLE)
    documents = islice(read_source(found.source, limits), SAMPLE)
    return [each.language for each in documents if isinstance(each, SourceDocument)]


def hosts_of(urls: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts of those `urls` that have one, each once."""
    return tuple(dict.fromkeys(host for host in map(_host, urls) if host))


def _host(url: str) -> str | None:
    """None for a path, for what is no url, and for a host that is a template."""
    try:
        parts = urlsplit(url)
        return None if "{" in parts.netloc else parts.hostname
    except ValueError:
        return None
