"""Reads folders of text, HTML, PDF, Word and CSV files, and splits the files into sections at headings.

The readers in `formats` keep the headings, because each chunk names the headings of its section.
LangChain's community loaders for these formats drop headings.
"""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from ingestion.sources.folder import read_bytes
from ingestion.sources.formats.csv_table import read_csv
from ingestion.sources.formats.docx import read_docx
from ingestion.sources.formats.html import read_html
from ingestion.sources.formats.pdf import read_pdf
from ingestion.sources.formats.text import read_txt
from ingestion.sources.pages import PageContent, PageFolderReader
from schemas.errors import SourceError
from schemas.platform import FilesSourceConfig, SourceLimits

MAX_DOCUMENT_CHARS = 5_000_000
"""Maximum length of a document, in characters: about five thick books."""

_FORMATS: MappingProxyType[str, Callable[[bytes, FilesSourceConfig, SourceLimits], PageContent]] = (
    MappingProxyType(
        {
            ".txt": lambda data, source, _: read_txt(data, source),
            ".html": lambda data, *_: read_html(data),
            ".htm": lambda data, *_: read_html(data),
            ".pdf": lambda data, _, limits: read_pdf(data, limits),
            ".docx": lambda data, _, limits: read_docx(data, limits),
            ".csv": lambda data, *_: read_csv(data),
            ".tsv": lambda data, *_: read_csv(data, "\t"),
        }
    )
)


def file_suffixes(source: FilesSourceConfig) -> set[str]:
    """Return the suffixes of the files that `source` accepts."""
    return set(source.suffixes or _FORMATS)


def read_content(source: FilesSourceConfig, limits: SourceLimits, path: Path) -> PageContent:
    """Return the content of a file; the content of an empty file has no parts.

    Raises SourceError if the file cannot be read or has more than MAX_DOCUMENT_CHARS characters.
    """
    data = read_bytes(path)
    if not data.strip():
        return PageContent({}, [])
    content = _FORMATS[path.suffix.lower()](data, source, limits)
    if sum(len(part.markdown) for part in content.parts) > MAX_DOCUMENT_CHARS:
        raise SourceError(
            f"contains more than {MAX_DOCUMENT_CHARS / 1_000_000:g} million characters"
        )
    return content


READER = PageFolderReader[FilesSourceConfig](file_suffixes, read_content)
