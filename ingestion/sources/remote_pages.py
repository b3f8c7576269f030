"""Converts pages of web sites and of LangChain loaders to documents.

A page with the same content as in the last run is not parsed.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.sources.folder import READER_VERSION, PageValues, check_size
from ingestion.sources.formats.html import read_html
from ingestion.sources.formats.text import decode_text
from ingestion.sources.markdown import markdown_content
from ingestion.sources.pages import PageContent, PagePart, SourcePage, documents_of_page
from ingestion.sources.registry import (
    FileResult,
    KnownFiles,
    UnchangedFile,
    Waiting,
    file_results,
)
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import PageFormat, RemoteSourceConfig, SourceLimits

MAX_ID_CHARS = 400
"""Maximum length of a page's id, in characters."""

MAX_RETRY_DELAY_S = 60.0
"""Maximum delay before a retry after an error, in seconds, even if the server asks for a longer one."""


@dataclass(frozen=True)
class RemotePage:
    """A page as it was received."""

    id: str
    format: PageFormat
    data: bytes
    values: PageValues
    """Values that came with the page, such as its URL. They take precedence over values in the content."""


def read_remote_page(
    source: RemoteSourceConfig, limits: SourceLimits, known: KnownFiles, page: RemotePage
) -> Iterator[FileResult]:
    """Yield the documents of `page`, or one result that says why there are none.

    A page whose fingerprint is in `known` is not parsed and yields an UnchangedFile. Raises
    ConfigurationError for a malformed `page_url`.
    """
    fingerprint = _fingerprint(source, page)
    if fingerprint in known:
        yield UnchangedFile(fingerprint, known[fingerprint])
        return
    name = page.id[:MAX_ID_CHARS]
    yield from file_results(name, fingerprint, lambda: _documents(source, limits, page))


def _documents(
    source: RemoteSourceConfig, limits: SourceLimits, page: RemotePage
) -> list[SourceDocument] | None:
    if len(page.id) > MAX_ID_CHARS:
        raise SourceError(f"its id is longer than {MAX_ID_CHARS} characters")
    check_size(len(page.data), limits)
    content = _content(page)
    values = {**content.values, **page.values}
    return documents_of_page(source, SourcePage(page.id, content._replace(values=values)))


def _content(page: RemotePage) -> PageContent:
    if not page.data.strip():
        return PageContent({}, [])
    if page.format == "html":
        return read_html(page.data)
    text = decode_text(page.data)
    return (
        markdown_content(text) if page.format == "markdown" else PageContent({}, [PagePart(text)])
    )


def _fingerprint(source: RemoteSourceConfig, page: RemotePage) -> str:
    """Return a digest of all fields of the page, the source's configuration and READER_VERSION."""
    values = json.dumps(page.values, default=str, sort_keys=True)
    key = f"{READER_VERSION}\0{source.model_dump_json()}\0{page.id}\0{page.format}\0{values}\0"
    return hashlib.sha256(key.encode() + page.data).hexdigest()


class SourceAbandoned(SourceError):
    """The time limit of a source has passed; the rest of the source is not read."""


class Deadline:
    """Limits the time for reading a source: the time in `sleep` plus the time reported to `spend`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.seconds_left = seconds

    def spend(self, started: float) -> None:
        """Subtract the time since `started`, a value of `time.monotonic()`, from the time that is left.

        Raises SourceAbandoned if no time is left.
        """
        self.seconds_left -= time.monotonic() - started
        if self.seconds_left <= 0:
            raise SourceAbandoned(
                f"not completely read within {self._seconds:g} s (timeout_seconds)"
            )

    def sleep(self, seconds: float) -> Iterator[Waiting]:
        """Wait for `seconds`. Yields Waiting every half second.

        Raises SourceAbandoned at the time limit.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            started = time.monotonic()
            time.sleep(min(left, 0.5))
            self.spend(started)
            yield Waiting()
