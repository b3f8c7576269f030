"""Turns the parameter components of MDX pages into Markdown tables.

`<ParamField>` and `<ResponseField>` describe a field by attributes; a field inside another is its child.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_FIELD = re.compile(
    r"<(/?)((?:[A-Z]\w*)?(?:Field|Param|Parameter|Prop|Property|Attribute)|Expandable|Properties)\b((?:[^<>\"'{}]|\"[^\"]*\"|'[^']*'|\{[^{}]*\})*?)(/?)>"
)
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{[\"'`]?([^{}\"'`]*)[\"'`]?\})")
_FLAG = re.compile(r"(?:^|\s)required(?!\s*=\s*\{?[\"']?false)")
_GROUP_TAGS = ("Expandable", "Properties")
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LOCATIONS = ("path", "query", "body", "header")


@dataclass
class _Field:
    kind: str
    name: str
    type: str
    required: bool
    location: str
    default: str
    depth: int
    text: list[str] = field(default_factory=list)


def tables_of_fields(text: str) -> str:
    """Return `text` with each run of parameter components as a table; other text is unchanged."""
    return _FieldReader(text).read() if _FIELD.search(text) else text


class _FieldReader:
    """Replaces the components in one page."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._run: list[_Field] = []
        """Components without other text between them."""
        self._open: list[_Field] = []

    def read(self) -> str:
        """Return the page."""
        done = 0
        for match in self._tags():
            self._add_text(self._text[done : match.start()])
            done = match.end()
            if match[2] not in _GROUP_TAGS:
                self._add_tag(match)
        return "".join([*self._parts, *_tables(self._run), self._text[done:]])

    def _tags(self) -> Iterator[re.Match[str]]:
        """Yield the tags of components outside code."""
        code = [match.span() for match in _CODE.finditer(self._text)]
        for match in _FIELD.finditer(self._text):
            if not any(start <= match.start() < end for start, end in code):
                yield match

    def _add_text(self, text: str) -> None:
        if self._open:
            self._open[-1].text.append(text)
        elif text.strip():
            self._parts += [*_tables(self._run), text]
            self._run = []

    def _add_tag(self, match: re.Match[str]) -> None:
        is_closing, is_empty = bool(match[1]), bool(match[4])
        if is_closing:
            del self._open[-1:]
            return
        found = _field(match[2], match[3], len(self._open))
        self._run.append(found)
        if not is_empty:
            self._open.append(found)


def _field(tag: str, attributes: str, depth: int) -> _Field:
    values = {m[1]: (m[2] or m[3] or m[4] or "").strip() for m in _ATTRIBUTE.finditer(attributes)}
    location = next((name for name in _LOCATIONS if name in values), values.get("in", ""))
    return _Field(
        kind="response" if tag.startswith("Response") else "request",
        name=values.get("name") or values.get(location, ""),
        type=values.get("type", ""),
        required=bool(
            _FLAG.search(_ATTRIBUTE.sub(lambda m: "" if m[1] != "required" else m[0], attributes))
        ),
        location=location,
        default=values.get("default", ""),
        depth=depth,
    )


def _tables(run: Sequence[_Field]) -> Iterator[str]:
    """Yield a table for the fields of each kind; headers and responses have tables of their own."""
    groups: dict[str, list[_Field]] = {}
    title = ""
    for found in run:
        title = _title(found) if found.depth == 0 else title
        groups.setdefault(title, []).append(found)
    for title, fields in groups.items():
        header = f"| {title} | Type | Required | Description | Default | In |"
        rows = (_row(found) for found in fields if found.name)
        yield "\n".join(["\n", header, "|" + " --- |" * 6, *rows, "\n"])


def _title(found: _Field) -> str:
    if found.location == "header":
        return "Header"
    return "Response field" if found.kind == "response" else "Request parameter"


def _row(found: _Field) -> str:
    indent = "&nbsp;" * 2 * found.depth + "└ " * bool(found.depth)
    about = " ".join("".join(found.text).replace("|", "\\|").split())
    required = "yes" if found.required else "no"
    cells = (indent + found.name, found.type, required, about, found.default, found.location)
    return f"| {' | '.join(cells)} |"
