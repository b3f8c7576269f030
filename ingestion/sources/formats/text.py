"""Plain text: its encoding, what of it is a header, where its sections begin."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from ingestion.sources.folder import PathValues
from ingestion.sources.markdown import PagePart
from schemas.errors import SourceError
from schemas.source import FilesSourceConfig

LONGEST_HEADER = 10_000
"""Characters in which a header is looked for."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_GUESSED = ("big5", "shift_jis", "euc_jp", "cp1252", "cp1251", "koi8_r", "iso8859_2")
_SAMPLE = 64_000
"""Bytes that an encoding is guessed from."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class TextFile(NamedTuple):
    """What a file says of itself, and its parts."""

    values: PathValues
    parts: list[PagePart]


def read_txt(data: bytes, source: FilesSourceConfig) -> TextFile:
    """The values of `source.header`, and a part for each match of `source.section`.

    Raises SourceError for what is no text.
    """
    text = decode(data)
    values: dict[str, object] = {}
    header = source.header and source.header.search(text, 0, LONGEST_HEADER)
    if header:
        values = _groups(header)
        text = text[: header.start()] + text[header.end() :]
    return TextFile(values, list(_parts(text, source.section)))


def _parts(text: str, section: re.Pattern[str] | None) -> Iterator[PagePart]:
    begins = [m for m in section.finditer(text) if m[0].strip()] if section else []
    ends = [*(match.start() for match in begins[1:]), len(text)]
    yield PagePart(as_markdown(text[: begins[0].start()] if begins else text))
    for match, end in zip(begins, ends, strict=False):
        values = _groups(match)
        heading = str(values.pop("heading", match[0]))
        yield PagePart(as_markdown(text[match.end() : end]), (" ".join(heading.split()),), values)


def _groups(match: re.Match[str]) -> dict[str, object]:
    return {name: value.strip() for name, value in match.groupdict().items() if value is not None}


def decode(data: bytes, declared: str | None = None) -> str:
    """`data` as text with plain line ends: by its BOM, as `declared`, as UTF-8, or as it looks.

    Raises SourceError for what is no text.
    """
    text = next(filter(None, (_decoded(*way) for way in _ways(data, declared))), "")
    if data.strip() and not text.strip("\ufeff"):
        text = _guessed(data)
    if _CONTROL.search(text):
        raise SourceError("is not text")
    return re.sub(r"\r\n?", "\n", text)


def _ways(data: bytes, declared: str | None) -> Iterator[tuple[bytes, str]]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            yield data[len(bom) :], encoding
            return
    if declared:
        yield data, declared
    yield data, "utf-8"
    yield data, "gb18030"


def _decoded(data: bytes, encoding: str) -> str:
    """Empty where `data` is not in `encoding`."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return ""
    return "" if encoding == "gb18030" and not _is_chinese(text) else text


def _is_chinese(text: str) -> bool:
    """Whether text decoded as GB18030 is likely to be meant: nearly any bytes can be read so, but
    only Chinese gives the characters of everyday Chinese."""
    foreign = "".join(c for c in text[:_SAMPLE] if ord(c) > 127)
    return len(foreign.encode("gb2312", "ignore")) >= 2 * 0.9 * len(foreign)


def _guessed(data: bytes) -> str:
    from charset_normalizer import from_bytes

    if b"\0" in data:
        raise SourceError("is not text")
    best = from_bytes(data[:_SAMPLE], cp_isolation=list(_GUESSED)).best()
    if best is None:
        raise SourceError("is not text in a known encoding")
    return data.decode(best.encoding, "replace")


def as_markdown(text: str) -> str:
    """Plain text so that Markdown reads it as it stands: no headings, no fence left open.

    Lists, tables, indented and fenced code are meant as they look.
    """
    lines = text.split("\n")
    closing = _last_closing(lines)
    fence = ""
    for i, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and _closes(line, fence) else fence
        elif mark:
            fence = mark[1] if closing.get(mark[1], -1) > i else ""
            lines[i] = line if fence else "\\" + line.lstrip()
        elif _HEADING.match(line):
            lines[i] = "\\" + line.lstrip()
        elif _RULE.match(line) and i and lines[i - 1].strip():
            lines[i] = "\n" + line  # under a paragraph it would make that a heading
    return "\n".join(lines).strip("\n")


def _last_closing(lines: list[str]) -> dict[str, int]:
    """Where each kind of fence is closed for the last time."""
    stripped = ((line.strip(), i) for i, line in enumerate(lines))
    return {line: i for line, i in stripped if _FENCE.fullmatch(line)}


def _closes(line: str, fence: str) -> bool:
    return line.strip() == fence
