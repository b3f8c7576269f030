"""Reads plain text files: detects the encoding, and splits the text into header and sections."""

import codecs
import re
from collections.abc import Iterator
from itertools import starmap

from ingestion.sources.pages import PageContent, PagePart
from schemas.errors import SourceError
from schemas.platform import FilesSourceConfig

MAX_HEADER_CHARS = 10_000
"""Number of characters at the beginning of a file that are searched for a header."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CANDIDATE_ENCODINGS = ("big5", "shift_jis", "euc_jp", "cp1252", "cp1251", "koi8_r", "iso8859_2")
_SAMPLE_BYTES = 64_000
"""Number of bytes, or of decoded characters, that are examined to detect the encoding."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def read_txt(data: bytes, source: FilesSourceConfig) -> PageContent:
    """Return the values in the header, and the rest of the text in parts.

    The header is the first match of `source.header`, and its named groups are the values. The first part is
    the text before the first match of `source.section`. Each match begins another part. Blank matches are
    ignored.

    Raises SourceError if `data` is not text.
    """
    text = decode_text(data)
    values: dict[str, object] = {}
    header = source.header and source.header.search(text, 0, MAX_HEADER_CHARS)
    if header:
        values = _groups(header)
        text = text[: header.start()] + text[header.end() :]
    return PageContent(values, list(_parts(text, source.section)))


def _parts(text: str, section: re.Pattern[str] | None) -> Iterator[PagePart]:
    matches = section.finditer(text) if section else ()
    starts = [match for match in matches if match[0].strip()]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    yield PagePart(escape_markdown(text[: starts[0].start()] if starts else text))
    for match, end in zip(starts, ends, strict=False):
        values = _groups(match)
        heading = str(values.pop("heading", match[0]))
        yield PagePart(
            escape_markdown(text[match.end() : end]), (" ".join(heading.split()),), values
        )


def _groups(match: re.Match[str]) -> dict[str, object]:
    return {name: value.strip() for name, value in match.groupdict().items() if value is not None}


def decode_text(data: bytes, declared: str | None = None) -> str:
    """Return `data` as text with `\\n` line ends.

    The encoding is that of the byte order mark. Without a mark, `declared`, UTF-8 and GB18030 are tried in
    this order. If none fits, the encoding is guessed. Raises SourceError if `data` is not text or its
    encoding is unknown.
    """
    candidates = _candidate_encodings(data, declared)
    text = next(filter(None, starmap(_try_decode, candidates)), "")
    if data.strip() and not text.strip("\ufeff"):
        text = _decode_by_guess(data)
    if _CONTROL.search(text):
        raise SourceError("not text")
    return re.sub(r"\r\n?", "\n", text)


def _candidate_encodings(data: bytes, declared: str | None) -> Iterator[tuple[bytes, str]]:
    """Yield pairs: `data` without its byte order mark, and an encoding to try."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            yield data[len(bom) :], encoding
            return
    if declared:
        yield data, declared
    yield data, "utf-8"
    yield data, "gb18030"


def _try_decode(data: bytes, encoding: str) -> str:
    """Return the decoded text, or an empty string if `data` is not valid in `encoding`.

    The result is also empty if `encoding` is GB18030 and the text is not Chinese.
    """
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError):  # LookupError: Python has no such codec
        return ""
    return "" if encoding == "gb18030" and not _is_chinese(text) else text


def _is_chinese(text: str) -> bool:
    """Return whether text that was decoded as GB18030 is Chinese.

    Almost any bytes are valid GB18030, but only Chinese text decodes to common Chinese characters.
    """
    non_ascii = "".join(char for char in text[:_SAMPLE_BYTES] if not char.isascii())
    common_chars = len(non_ascii.encode("gb2312", "ignore")) // 2  # each has two bytes
    return common_chars >= 0.9 * len(non_ascii)


def _decode_by_guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    if b"\0" in data:
        raise SourceError("not text")
    best = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(_CANDIDATE_ENCODINGS)).best()
    if best is None:
        raise SourceError("text in an unknown encoding")
    return data.decode(best.encoding, "replace")


def escape_markdown(text: str) -> str:
    """Escape the lines of plain text that Markdown would take for a heading or an unclosed code fence.

    Lists, tables, indented code and closed fences keep their meaning in Markdown.
    """
    lines = text.split("\n")
    closing = _last_closing(lines)
    fence = ""
    for i, line in enumerate(lines):
        match = _FENCE.match(line)
        if fence:
            fence = "" if match and line.strip() == fence else fence
        elif match:
            fence = match[1] if closing.get(match[1], -1) > i else ""
            lines[i] = line if fence else "\\" + line.lstrip()
        elif _HEADING.match(line):
            lines[i] = "\\" + line.lstrip()
        elif _RULE.match(line) and i and lines[i - 1].strip():
            lines[i] = "\n" + line  # without a blank line, the text above would be a heading
    return "\n".join(lines).strip("\n")


def _last_closing(lines: list[str]) -> dict[str, int]:
    """Return each fence that stands alone on a line, with the index of the last such line."""
    matches = ((_FENCE.match(line), i) for i, line in enumerate(lines))
    return {match[1]: i for match, i in matches if match and match[1] == lines[i].strip()}
