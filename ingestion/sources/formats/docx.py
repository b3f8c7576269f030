"""Reads Word documents: checks the package against limits, and converts its text to Markdown via HTML.

The package of a document is a ZIP file. Its parts are the files in it, most of them XML.
"""

import io
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.parsers import expat

from ingestion.sources.formats.docx_numbering import HeadingNumbers
from ingestion.sources.formats.docx_structure import restructure
from ingestion.sources.formats.docx_styles import WordStyles
from ingestion.sources.formats.html import WIDE_SPACES, html_page
from ingestion.sources.pages import PageContent
from schemas.errors import SourceError
from schemas.platform import SourceLimits

MAX_ELEMENTS = 150_000
"""Maximum number of XML elements in a document. A book of 300 pages has about 100,000.

Every four attributes of an element count as one more element.
"""

MAX_XML_BYTES = 20_000_000
"""Maximum size of the XML in all parts together, in bytes."""

MAX_PACKAGE_PARTS = 5_000
"""Maximum number of parts in a package."""

MAX_DEPTH = 150
"""Maximum depth of nested XML elements."""

_BODY = "word/document.xml"
_PIECE_BYTES = 1 << 20
_ORDINARY_SPACES = str.maketrans(dict.fromkeys(WIDE_SPACES, " "))
"""Maps no-break spaces and wide spaces to ordinary spaces.

The conversion to Markdown would write them as entities at the start of a cell.
"""
_PROPERTY_NAMES = {
    "{http://purl.org/dc/elements/1.1/}title": "title",
    "{http://purl.org/dc/elements/1.1/}creator": "author",
    "{http://purl.org/dc/elements/1.1/}subject": "subject",
    "{http://purl.org/dc/elements/1.1/}description": "description",
    "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}keywords": "keywords",
    "{http://purl.org/dc/terms/}modified": "modified",
}


def read_docx(data: bytes, limits: SourceLimits) -> PageContent:
    """Return the content of a document, with its properties (`title`, `author`, ...) as values.

    Raises SourceError if `data` is not a Word document, is encrypted or exceeds a limit.
    """
    import mammoth

    try:
        parts = dict(_checked_parts(data, limits))
        styles = WordStyles(parts.get("word/styles.xml", b""))
        if _BODY in parts:
            numbers = HeadingNumbers(styles, parts.get("word/numbering.xml", b""))
            parts[_BODY] = restructure(parts[_BODY], styles, numbers)
        html = mammoth.convert_to_html(
            _package(parts),
            style_map=styles.style_map(),
            include_embedded_style_map=False,
            convert_image=lambda _: [],
        ).value
    except SourceError:
        raise
    except Exception as error:  # mammoth does not validate documents
        raise SourceError(f"not a Word document ({type(error).__name__})") from None
    page = html_page(html.translate(_ORDINARY_SPACES))
    return PageContent(_properties(parts.get("docProps/core.xml", b"")), page.parts)


def _checked_parts(data: bytes, limits: SourceLimits) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the XML parts.

    All parts are unpacked and count towards the limits, including those that are not XML. Raises
    SourceError if a limit is exceeded, or if the document is encrypted or older than Word 2007.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise SourceError("encrypted, or saved by a version of Word before 2007")
    budget = _Budget(limits)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if len(package.infolist()) > MAX_PACKAGE_PARTS:
            raise SourceError(f"contains more than {MAX_PACKAGE_PARTS} parts")
        for entry in package.infolist():
            if entry.flag_bits & 1:
                raise SourceError("encrypted")
            is_xml = entry.filename.endswith((".xml", ".rels"))
            check = _XmlCheck(budget) if is_xml else None
            kept: list[bytes] = []
            with package.open(entry) as stream:
                while piece := stream.read(_PIECE_BYTES):
                    budget.spend(len(piece))
                    if check is not None:
                        check.feed(piece)
                        kept.append(piece)
            if check is not None:
                check.close()
                yield entry.filename, b"".join(kept)


class _Budget:
    """Counts the bytes and XML elements that may still be read from a package."""

    def __init__(self, limits: SourceLimits) -> None:
        self.max_bytes = limits.unpacked_bytes
        self.bytes_left = limits.unpacked_bytes
        self.xml_bytes_left = MAX_XML_BYTES
        self.elements_left = MAX_ELEMENTS

    def spend(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise SourceError(
                f"unpacks to more than {self.max_bytes / 1_000_000:g} MB (APIDESK_MAX_UNPACKED_BYTES)"
            )


class _XmlCheck:
    """Parses XML as a stream, and raises SourceError if it is too large or too deeply nested.

    A document type declaration is an error as well.
    """

    def __init__(self, budget: _Budget) -> None:
        self.budget = budget
        self.depth = 0
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def feed(self, piece: bytes) -> None:
        self.budget.xml_bytes_left -= len(piece)
        if self.budget.xml_bytes_left < 0:
            raise SourceError(f"contains more than {MAX_XML_BYTES / 1_000_000:g} MB of XML")
        self.parser.Parse(piece, False)

    def close(self) -> None:
        self.parser.Parse(b"", True)

    def _doctype(self, *_: object) -> None:
        raise SourceError("contains a document type declaration, which Word never writes")

    def _start(self, _: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.budget.elements_left -= 1 + len(attributes) // 4
        if self.budget.elements_left < 0:
            raise SourceError(f"contains more than {MAX_ELEMENTS} XML elements")
        if self.depth > MAX_DEPTH:
            raise SourceError(f"nests more than {MAX_DEPTH} elements deep")

    def _end(self, _: str) -> None:
        self.depth -= 1


def _package(parts: dict[str, bytes]) -> io.BytesIO:
    """Return a package that contains only `parts`, so that mammoth cannot read unchecked parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for name, part in parts.items():
            package.writestr(name, part)
    file.seek(0)
    return file


def _properties(core: bytes) -> dict[str, object]:
    if not core:
        return {}
    root = ElementTree.fromstring(core)
    values = {
        _PROPERTY_NAMES[element.tag]: " ".join((element.text or "").split())
        for element in root
        if element.tag in _PROPERTY_NAMES
    }
    return {name: text for name, text in values.items() if text}
