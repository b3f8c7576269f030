"""Word documents: checked part by part, then by way of HTML."""

import io
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.parsers import expat

from ingestion.sources.formats.html import html_page
from ingestion.sources.formats.text import TextFile
from schemas.errors import SourceError
from schemas.source import SourceLimits

MOST_ELEMENTS = 150_000
"""XML elements of a document; a book of three hundred pages has some hundred thousand."""

MOST_TEXT = 20_000_000
"""Bytes of XML."""

MOST_PARTS = 5_000

MOST_STYLES = 200
"""Styles that are headings: each is tried on each paragraph."""

DEEPEST = 150
"""XML elements within each other."""

_PIECE = 1 << 20
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SAID = {
    "{http://purl.org/dc/elements/1.1/}title": "title",
    "{http://purl.org/dc/elements/1.1/}creator": "author",
    "{http://purl.org/dc/elements/1.1/}subject": "subject",
    "{http://purl.org/dc/elements/1.1/}description": "description",
    "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}keywords": "keywords",
    "{http://purl.org/dc/terms/}modified": "modified",
}
_HEADINGS = {
    name: level
    for level in range(1, 10)
    for name in (f"heading {level}", f"标题 {level}", f"标题{level}", f"標題 {level}")
} | {"title": 1, "标题": 1, "標題": 1}
"""What Word calls its heading styles, whatever ids it gives them."""


def read_docx(data: bytes, limits: SourceLimits) -> TextFile:
    """The document's content, and its properties `title`, `author`, `subject`, `keywords` as values.

    Raises SourceError for what is no document, is encrypted, or holds more than it may.
    """
    import mammoth

    try:
        parts = dict(_checked_parts(data, limits))
        html = mammoth.convert_to_html(
            _package(parts),
            style_map=_style_map(parts.get("word/styles.xml", b"")),
            include_embedded_style_map=False,
            convert_image=lambda _: [],
        ).value
    except SourceError:
        raise
    except Exception as error:  # mammoth takes a document's sense for granted
        raise SourceError(f"not a Word document ({type(error).__name__})") from None
    page = html_page(html)
    return TextFile(_properties(parts.get("docProps/core.xml", b"")), page.parts)


def _checked_parts(data: bytes, limits: SourceLimits) -> Iterator[tuple[str, bytes]]:
    """The XML of the document; everything in the package is unpacked once, and counted."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise SourceError("is encrypted, or of Word before 2007")
    budget = _Budget(limits)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        if len(package.infolist()) > MOST_PARTS:
            raise SourceError(f"holds more than {MOST_PARTS} parts")
        for entry in package.infolist():
            if entry.flag_bits & 1:
                raise SourceError("is encrypted")
            is_xml = entry.filename.endswith((".xml", ".rels"))
            check = _XmlCheck(budget) if is_xml else None
            kept: list[bytes] = []
            with package.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    budget.unpacked(len(piece))
                    if check is not None:
                        check.feed(piece)
                        kept.append(piece)
            if check is not None:
                check.close()
                yield entry.filename, b"".join(kept)


class _Budget:
    """How much of a package has been used up."""

    def __init__(self, limits: SourceLimits) -> None:
        self.bytes = limits.unpacked_bytes
        self.most = limits.unpacked_bytes
        self.elements = MOST_ELEMENTS
        self.text = MOST_TEXT

    def unpacked(self, size: int) -> None:
        self.bytes -= size
        if self.bytes < 0:
            raise SourceError(
                f"unpacks to more than {self.most / 1_000_000:g} MB (APIDESK_MAX_UNPACKED_BYTES)"
            )


class _XmlCheck:
    """Reads XML as it comes, for what it would cost to build a tree of it."""

    def __init__(self, budget: _Budget) -> None:
        self.budget = budget
        self.depth = 0
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def feed(self, piece: bytes) -> None:
        self.budget.text -= len(piece)
        if self.budget.text < 0:
            raise SourceError(f"holds more than {MOST_TEXT / 1_000_000:g} MB of XML")
        self.parser.Parse(piece, False)

    def close(self) -> None:
        self.parser.Parse(b"", True)

    def _doctype(self, *_: object) -> None:
        raise SourceError("declares a document type, which a Word document never does")

    def _start(self, _: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.budget.elements -= 1 + len(attributes) // 4
        if self.budget.elements < 0:
            raise SourceError(f"holds more than {MOST_ELEMENTS} elements")
        if self.depth > DEEPEST:
            raise SourceError(f"nests more than {DEEPEST} elements deep")

    def _end(self, _: str) -> None:
        self.depth -= 1


def _package(parts: dict[str, bytes]) -> io.BytesIO:
    """A package of just the parts that were checked: nothing else can be reached from them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for name, part in parts.items():
            package.writestr(name, part)
    file.seek(0)
    return file


def _style_map(styles: bytes) -> str:
    """Which paragraph styles are headings: by name, by outline level, or by the style under them."""
    if not styles:
        return ""
    found: dict[str, ElementTree.Element] = {}
    for style in ElementTree.fromstring(styles).iter(f"{_WORD}style"):
        if style.get(f"{_WORD}type") == "paragraph":
            found[style.get(f"{_WORD}styleId", "")] = style
    lines: list[str] = []
    for style_id, style in found.items():
        level = _level(style_id, found)
        name = _value(style, "name")
        if level and name and not set(name) & set("'\\\n\r"):
            lines.append(f"p[style-name='{name}'] => h{min(level, 6)}:fresh")
    return "\n".join(lines[:MOST_STYLES])


def _level(style_id: str, styles: dict[str, ElementTree.Element]) -> int:
    """1 to 9 for a heading, else 0."""
    for _ in range(10):  # styles upon styles, maybe in a circle
        style = styles.get(style_id)
        if style is None:
            return 0
        outline = _value(style, f"pPr/{_WORD}outlineLvl")
        level = _HEADINGS.get(_value(style, "name").lower(), 0)
        if level or outline:
            return level or (int(outline) + 1 if outline in "012345678" else 0)
        style_id = _value(style, "basedOn")
    return 0


def _value(element: ElementTree.Element, path: str) -> str:
    found = element.find(f"{_WORD}{path}")
    return "" if found is None else found.get(f"{_WORD}val", "")


def _properties(core: bytes) -> dict[str, object]:
    if not core:
        return {}
    root = ElementTree.fromstring(core)
    said = {_SAID[e.tag]: " ".join((e.text or "").split()) for e in root if e.tag in _SAID}
    return {name: text for name, text in said.items() if text}
