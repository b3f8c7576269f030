"""Reads PDF documents: extracts the text within a cost limit and splits it into sections."""

import io
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ingestion.sources.formats.pdf_lines import LineCollector, PdfLine, remove_page_furniture
from ingestion.sources.formats.pdf_sections import split_sections
from ingestion.sources.pages import PageContent, PagePart
from schemas.errors import SourceError
from schemas.platform import SourceLimits

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MAX_WORK = 5_000_000
"""Maximum cost of text extraction, in units of about a microsecond.

A manual of a thousand pages costs about as much.
"""

MAX_STREAM_BYTES = 20_000_000
"""Maximum unpacked size of one stream, in bytes. A page's text typically has about 20,000 bytes."""

MAX_PAGE_CHARS = 500_000
"""Maximum number of characters on one page."""

_OPERAND_COSTS = MappingProxyType({b"Tj": 5, b"'": 5, b'"': 5, b"TJ": 2, b"Do": 20})
"""Cost per operand of some PDF operators, in the unit of `MAX_WORK`. It is 2 for all other operators."""


def read_pdf(data: bytes, limits: SourceLimits) -> PageContent:
    """Return the sections and the properties of a document.

    The value `page` of a section is its page number, as text.

    Raises SourceError if `data` is not a PDF, needs a password, contains no text or exceeds a limit.
    """
    from pypdf import PdfReader, apply_configuration
    from pypdf.errors import LimitReachedError

    max_bytes = min(MAX_STREAM_BYTES, limits.unpacked_bytes)
    try:
        with apply_configuration(
            zlib_maximum_output_length=max_bytes,
            lzw_maximum_output_length=max_bytes,
            run_length_maximum_output_length=max_bytes,
            array_based_stream_maximum_output_length=max_bytes,
            brotli_maximum_output_length=max_bytes,
            stream_parsing_work_maximum_count=MAX_WORK // 10,
            jbig2dec_binary=None,
            disable_legacy_handling=True,
        ):
            return _read(PdfReader(io.BytesIO(data)), limits)
    except SourceError:
        raise
    except LimitReachedError as error:
        raise SourceError(f"extracting the text takes too much work: {_one_line(error)}") from None
    except Exception as error:  # pypdf: "broken PDF files might cause other Exceptions"
        raise SourceError(f"not a readable PDF ({_one_line(error)})") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _read(reader: "PdfReader", limits: SourceLimits) -> PageContent:
    if reader.is_encrypted and not reader.decrypt(""):
        raise SourceError("needs a password")
    work = _WorkBudget(limits)
    pages = [_page_lines(page, work) for page in reader.pages]
    lines = remove_page_furniture(pages)
    if not lines:
        raise SourceError("contains no text; run OCR on scanned pages first")
    sections = split_sections(lines, dict(_read_outline(reader)))
    parts = [
        PagePart(section.markdown, section.parents, {"page": str(section.page)})
        for section in sections
    ]
    return PageContent(_properties(reader), parts)


class _WorkBudget:
    """Counts the cost and bytes that the limits still allow, and the characters on the current page."""

    def __init__(self, limits: SourceLimits) -> None:
        self.cost_left = MAX_WORK
        self.bytes_left = limits.unpacked_bytes
        self.page_chars = 0

    def spend(self, cost: int) -> None:
        self.cost_left -= cost
        if self.cost_left < 0:
            raise SourceError("extracting the text takes too much work")

    def spend_operator(self, operator: bytes, operands: Any) -> None:
        """Spend the cost of an operator, which grows with its operands and with the page's text so far."""
        size = len(operands[0]) if operator == b"TJ" and operands else len(operands) + 1
        self.spend(_OPERAND_COSTS.get(operator, 2) * size + self.page_chars // 5_000)

    def spend_stream(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise SourceError("unpacks to more than APIDESK_MAX_UNPACKED_BYTES")

    def spend_text(self, size: int) -> None:
        self.page_chars += size
        if self.page_chars > MAX_PAGE_CHARS:
            raise SourceError(f"contains more than {MAX_PAGE_CHARS} characters on a page")


def _page_lines(page: "PageObject", work: _WorkBudget) -> list[PdfLine]:
    work.page_chars = 0
    work.spend(300)
    for size, cost in _stream_costs(page):
        work.spend_stream(size)
        work.spend(cost)
    lines = LineCollector((page.page_number or 0) + 1)

    def show(text: str, cm: list[float], tm: list[float], font: Any, size: float) -> None:
        work.spend_text(len(text))
        lines.add(text, cm, tm, str((font or {}).get("/BaseFont", "")), size)

    page.extract_text(
        visitor_text=show, visitor_operand_before=lambda op, args, *_: work.spend_operator(op, args)
    )
    work.spend(0)  # pypdf catches errors raised inside a form, so check the cost again here
    return lines.finish()


def _stream_costs(page: "PageObject") -> Iterator[tuple[int, int]]:
    """Yield the unpacked size and the parsing cost of every stream that the page's text needs."""
    contents = page.get("/Contents")
    contents = contents.get_object() if contents is not None else []
    for stream in contents if isinstance(contents, list) else [contents]:
        size = _unpacked_size(stream.get_object())
        yield size, size // 20
    pending = [page.get("/Resources")]
    seen: set[int] = set()
    while pending:
        resources = _as_dict(pending.pop())
        if id(resources) in seen:
            continue
        seen.add(id(resources))
        for font in map(_as_dict, _as_dict(resources.get("/Font")).values()):
            size = _unpacked_size(font.get("/ToUnicode"))
            yield size, 150 + size // (20 if size < 40_000 else 4)
        for form in map(_as_dict, _as_dict(resources.get("/XObject")).values()):
            if form.get("/Subtype") == "/Form":
                size = _unpacked_size(form)
                yield size, size // 20
                pending.append(form.get("/Resources"))


def _as_dict(item: Any) -> dict[str, Any]:
    value = item.get_object() if hasattr(item, "get_object") else item
    return value if isinstance(value, dict) else {}


def _unpacked_size(item: Any) -> int:
    value = item.get_object() if hasattr(item, "get_object") else item
    return len(value.get_data()) if hasattr(value, "get_data") else 0


def _read_outline(reader: "PdfReader") -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the title and page of each bookmark, and its level. Pages and levels are counted from 1."""
    pending: list[tuple[Any, int]] = [(item, 1) for item in reversed(_bookmarks(reader))]
    while pending:
        item, level = pending.pop()
        if isinstance(item, list):
            pending += [(child, level + 1) for child in reversed(item)]
        elif isinstance(title := item.get("/Title"), str):
            page = reader.get_destination_page_number(item)
            yield (" ".join(title.split()), (page or 0) + 1), level


def _bookmarks(reader: "PdfReader") -> list[Any]:
    try:
        return list(reader.outline)
    except Exception:  # bookmarks are optional
        return []


def _properties(reader: "PdfReader") -> dict[str, object]:
    metadata: Mapping[str, Any] = reader.metadata or {}
    names = {"/Title": "title", "/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}
    texts = {name: " ".join(str(metadata.get(key) or "").split()) for key, name in names.items()}
    if not _is_real_title(texts["title"]):
        texts["title"] = ""
    # Texts in parentheses are placeholders such as "(anonymous)".
    return {name: text for name, text in texts.items() if text and text[0] + text[-1] != "()"}


def _is_real_title(text: str) -> bool:
    """Return whether an author wrote the title. Many programs write a file name or "Untitled" instead."""
    name = text.lower()
    return (
        len(text) > 1
        and name not in ("untitled", "无标题", "文档")
        and not name.startswith("microsoft word - ")
        and not name.endswith((".pdf", ".doc", ".docx", ".dvi", ".tex", ".indd", ".ppt", ".pptx"))
    )
