"""Replaces XML documents in a question, such as the reply of an API, by the same data as JSON.

All other modules then read only one format.
"""

import json
import re
from contextlib import suppress
from xml.parsers import expat

from pydantic import JsonValue

MAX_DEPTH = 50
"""Maximum nesting depth of elements. A document that is nested deeper is not read."""

MAX_DOCUMENTS = 5
"""Maximum number of places in a question that are parsed as the start of an XML document.

Each attempt may read the whole rest of the question.
"""

_START = re.compile(
    r"<\?xml\s[^<>]{0,200}\?>\s{0,9}<[A-Za-z]|<[A-Za-z][\w.:-]{0,60}(?:\s[^<>]{0,200})?>\s{0,99}<[A-Za-z]"
)
"""The start of a document: an XML declaration, or two opening tags."""

_HTML_ROOTS = frozenset(
    ["a", "article", "b", "body", "button", "details", "div", "dl", "em", "footer", "form", "h1", "h2",
     "head", "header", "html", "i", "label", "li", "main", "nav", "ol", "p", "script", "section",
     "select", "span", "strong", "style", "svg", "table", "tbody", "template", "thead", "tr", "ul"]
)  # fmt: skip
"""Elements of HTML. A document with one of these as its root is markup, not data."""


class _StopParsing(Exception):
    """Raised in a handler to end the parsing."""


class _Reader:
    """Reads the document at the start of a text, and ignores what follows it."""

    def __init__(self) -> None:
        self.body: JsonValue = None
        self.end: int | None = None
        """Position in bytes after the document; None if the document is incomplete or invalid."""
        self._data = b""
        self._open: list[tuple[str, dict[str, JsonValue], list[str]]] = []
        """The name, the children and the texts of each open element."""
        # The text is in UTF-8 here, whatever encoding the XML declaration names.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._close
        self._parser.CharacterDataHandler = lambda text: self._open[-1][2].append(text)
        self._parser.StartDoctypeDeclHandler = self._reject

    def read(self, text: str) -> None:
        """Set `body` and `end`."""
        self._data = text.encode(errors="replace")
        with suppress(expat.ExpatError, _StopParsing):
            self._parser.Parse(self._data, True)

    def _start(self, name: str, _: object) -> None:
        if len(self._open) == MAX_DEPTH:
            raise _StopParsing
        self._open.append((name, {}, []))

    def _close(self, _: str) -> None:
        name, children, texts = self._open.pop()
        value: JsonValue = children or "".join(texts).strip()
        if self._open:
            self._open[-1][1][name] = value
            return
        self.body = value if name.lower() not in _HTML_ROOTS else None
        self.end = self._data.index(b">", self._parser.CurrentByteIndex) + 1
        raise _StopParsing

    def _reject(self, *_: object) -> None:
        raise _StopParsing  # entities in a document type can expand to gigabytes


def replace_xml(text: str) -> str:
    """Return `text` with up to `MAX_DOCUMENTS` XML documents replaced by JSON objects.

    Only a document whose root contains other elements is replaced. The JSON object leaves out attributes
    and the name of the root. Of several elements with the same name, it has only the last one. HTML, and
    documents that are incomplete or have a document type, stay as they are.
    """
    position = 0
    for _ in range(MAX_DOCUMENTS):
        start = _START.search(text, position)
        if start is None:
            break
        reader = _Reader()
        reader.read(text[start.start() :])
        position = start.end()
        if reader.end is not None and isinstance(reader.body, dict):
            body = json.dumps(reader.body, ensure_ascii=False)
            rest = text[start.start() :].encode(errors="replace")[reader.end :].decode()
            text = f"{text[: start.start()]}{body}{rest}"
            position = start.start() + len(body)
    return text
