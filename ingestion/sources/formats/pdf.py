"""PDF documents: text in reading order, sections by the size of their headings."""

import io
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ingestion.sources.formats.pdf_lines import PageLines, PdfLine, without_furniture
from ingestion.sources.formats.pdf_sections import PdfSection, sections
from ingestion.sources.formats.text import TextFile
from ingestion.sources.markdown import PagePart
from schemas.errors import SourceError
from schemas.source import SourceLimits

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MOST_WORK = 5_000_000
"""What extraction may cost; a manual of a thousand pages takes about so much."""

MOST_STREAM = 20_000_000
"""Bytes that one stream may unpack to; a page's text has some twenty thousand."""

MOST_PAGE_TEXT = 500_000
"""Characters on one page."""

_COSTS = MappingProxyType({b"Tj": 5, b"'": 5, b'"': 5, b"TJ": 2, b"Do": 20})
"""What each operand costs to work on, in millionths of a second or so, where that is not 2."""


def read_pdf(data: bytes, limits: SourceLimits) -> TextFile:
    """The document's sections, each with the value `page`; its properties are values.

    Raises SourceError for what is no PDF, is encrypted, holds no text, or more than it may.
    """
    from pypdf import PdfReader, apply_configuration
    from pypdf.errors import LimitReachedError

    most = min(MOST_STREAM, limits.unpacked_bytes)
    try:
        with apply_configuration(
            zlib_maximum_output_length=most,
            lzw_maximum_output_length=most,
            run_length_maximum_output_length=most,
            array_based_stream_maximum_output_length=most,
            brotli_maximum_output_length=most,
            stream_parsing_work_maximum_count=MOST_WORK // 10,
            jbig2dec_binary=None,
            disable_legacy_handling=True,
        ):
            return _read(PdfReader(io.BytesIO(data)), limits)
    except SourceError:
        raise
    except LimitReachedError as error:
        raise SourceError(f"takes too much to read: {_one_line(error)}") from None
    except Exception as error:  # pypdf: "broken PDF files might cause other Exceptions"
        raise SourceError(f"not a readable PDF ({_one_line(error)})") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _read(reader: "PdfReader", limits: SourceLimits) -> TextFile:
    if reader.is_encrypted and not reader.decrypt(""):
        raise SourceError("is encrypted")
    work = _Work(limits)
    pages = [_page_lines(page, work) for page in reader.pages]
    lines = without_furniture(pages)
    if not lines:
        raise SourceError("holds no text: scanned pages need recognition first")
    return TextFile(_properties(reader), list(map(_part, sections(lines, dict(_outline(reader))))))


def _part(section: PdfSection) -> PagePart:
    return PagePart(section.markdown, section.above, {"page": str(section.page)})


class _Work:
    """Counts what extraction costs, over all pages."""

    def __init__(self, limits: SourceLimits) -> None:
        self.left = MOST_WORK
        self.unpacked = limits.unpacked_bytes
        self.page_text = 0

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise SourceError("takes too much to read")

    def operator(self, operator: bytes, operands: Any) -> None:
        """What one operator costs: more the more it shows, and the more the page has already."""
        shown = len(operands[0]) if operator == b"TJ" and operands else len(operands) + 1
        self.spend(_COSTS.get(operator, 2) * shown + self.page_text // 5_000)

    def stream(self, size: int) -> None:
        self.unpacked -= size
        if self.unpacked < 0:
            raise SourceError("unpacks to too much (APIDESK_MAX_UNPACKED_BYTES)")

    def text(self, size: int) -> None:
        self.page_text += size
        if self.page_text > MOST_PAGE_TEXT:
            raise SourceError(f"has more than {MOST_PAGE_TEXT} characters on a page")


def _page_lines(page: "PageObject", work: _Work) -> list[PdfLine]:
    work.page_text = 0
    work.spend(300)
    for size, cost in _streams(page):
        work.stream(size)
        work.spend(cost)
    lines = PageLines((page.page_number or 0) + 1)

    def show(text: str, cm: list[float], tm: list[float], font: Any, size: float) -> None:
        work.text(len(text))
        lines.add(text, cm, tm, str((font or {}).get("/BaseFont", "")), size)

    page.extract_text(
        visitor_text=show, visitor_operand_before=lambda op, args, *_: work.operator(op, args)
    )
    work.spend(0)  # pypdf logs what is raised inside a form, and goes on
    return lines.finish()


def _streams(page: "PageObject") -> Iterator[tuple[int, int]]:
    """The unpacked size of each stream that reading the page's text takes, and what parsing costs."""
    contents = page.get("/Contents")
    contents = contents.get_object() if contents is not None else []
    for stream in contents if isinstance(contents, list) else [contents]:
        size = _size(stream.get_object())
        yield size, size // 20
    waiting = [page.get("/Resources")]
    seen: set[int] = set()
    while waiting:
        resources = _table(waiting.pop())
        if id(resources) in seen:
            continue
        seen.add(id(resources))
        for font in map(_table, _table(resources.get("/Font")).values()):
            size = _size(font.get("/ToUnicode"))
            yield size, 150 + size // (20 if size < 40_000 else 4)
        for form in map(_table, _table(resources.get("/XObject")).values()):
            if form.get("/Subtype") == "/Form":
                size = _size(form)
                yield size, size // 20
                waiting.append(form.get("/Resources"))


def _table(item: Any) -> dict[str, Any]:
    found = item.get_object() if item is not None and hasattr(item, "get_object") else item
    return found if isinstance(found, dict) else {}


def _size(item: Any) -> int:
    found = item.get_object() if hasattr(item, "get_object") else item
    return len(found.get_data()) if hasattr(found, "get_data") else 0


def _outline(reader: "PdfReader") -> Iterator[tuple[str, tuple[int, int]]]:
    """The bookmarks: title -> (level, page)."""
    waiting: list[tuple[Any, int]] = [(item, 1) for item in reversed(_bookmarks(reader))]
    while waiting:
        item, level = waiting.pop()
        if isinstance(item, list):
            waiting += [(child, level + 1) for child in reversed(item)]
        elif isinstance(title := item.get("/Title"), str):
            page = reader.get_destination_page_number(item)
            yield " ".join(title.split()), (level, (page or 0) + 1)


def _bookmarks(reader: "PdfReader") -> list[Any]:
    try:
        return list(reader.outline)
    except Exception:  # a document is read without its bookmarks
        return []


def _properties(reader: "PdfReader") -> dict[str, object]:
    said: Mapping[str, Any] = reader.metadata or {}
    names = {"/Title": "title", "/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}
    texts = {name: " ".join(str(said.get(key) or "").split()) for key, name in names.items()}
    if not _is_title(texts["title"]):
        texts["title"] = ""
    return {name: text for name, text in texts.items() if text and text[0] + text[-1] != "()"}


def _is_title(text: str) -> bool:
    """Whether a title is one, and not what a program made of a file's name."""
    name = text.lower()
    return (
        len(text) > 1
        and name not in ("untitled", "无标题", "文档")
        and not name.startswith("microsoft word - ")
        and not name.endswith((".pdf", ".doc", ".docx", ".dvi", ".tex", ".indd", ".ppt", ".pptx"))
    )
