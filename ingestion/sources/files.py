"""Folders of text, HTML, PDF and Word files, each with its headings.

LangChain's community loaders for these formats give a file's text without its headings, so a chunk
could not say which section it is from; the formats' own libraries tell both.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ingestion.sources.folder import FileResult, KnownFiles, read_files
from ingestion.sources.formats.docx import read_docx
from ingestion.sources.formats.html import read_html
from ingestion.sources.formats.pdf import read_pdf
from ingestion.sources.formats.text import TextFile, read_txt
from ingestion.sources.markdown import page_document
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import FilesSourceConfig, SourceLimits

MOST_CHARACTERS = 5_000_000
"""Of a document: some five thick books."""

_READERS: MappingProxyType[str, Callable[[bytes, FilesSourceConfig, SourceLimits], TextFile]] = (
    MappingProxyType(
        {
            ".txt": lambda data, source, _: read_txt(data, source),
            ".html": lambda data, *_: read_html(data),
            ".htm": lambda data, *_: read_html(data),
            ".pdf": lambda data, _, limits: read_pdf(data, limits),
            ".docx": lambda data, _, limits: read_docx(data, limits),
        }
    )
)


def file_suffixes(source: FilesSourceConfig) -> set[str]:
    """The suffixes of the files that `source` takes."""
    return set(source.suffixes or _READERS)


def read_files_source(
    source: FilesSourceConfig, limits: SourceLimits, known: KnownFiles
) -> Iterator[FileResult]:
    """One document a file, one section a heading; files without text are refused.

    Raises SourceError for a folder that is not there or has no such file.
    """
    return read_files(
        source, file_suffixes(source), limits, known, partial(_document, source, limits)
    )


def _document(source: FilesSourceConfig, limits: SourceLimits, path: Path) -> SourceDocument | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None
    if not data.strip():
        return None
    found = _READERS[path.suffix.lower()](data, source, limits)
    if sum(len(part.markdown) for part in found.parts) > MOST_CHARACTERS:
        raise SourceError(f"holds more than {MOST_CHARACTERS / 1_000_000:g} million characters")
    return page_document(source, path, found.values, found.parts)
