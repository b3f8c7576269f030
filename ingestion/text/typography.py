"""Joins texts with the punctuation of their language: Chinese punctuation has no space next to it."""

import re
from collections.abc import Iterable

from ingestion.text.markdown_blocks import outside_code, replace_outside_code

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_FULL_WIDTH_ENDS = ("。", "；", "！", "？", "：", "，", "、", "…")
_ENDS = (".", ";", "!", "?", ":")
_LINE_BREAKS = outside_code(r"(?<!\s)\s*(?:<br\s*/?>(?:\s|&nbsp;)*)+")
_BULLET = r"[-*+•·]\s+(?=\S)"
_ITEM_BREAKS = outside_code(rf"(?<!\s)\s*(?:<br\s*/?>(?:\s|&nbsp;)*)++(?P<bullet>{_BULLET})?")
_FIRST_BULLET = re.compile(rf"\A(\s*){_BULLET}")
_ITEM = re.compile(
    rf"(?:\A\s*|<br\s*/?>(?:\s|&nbsp;)*){_BULLET}((?:(?!<br\b).)+)", re.IGNORECASE | re.DOTALL
)
_PUNCTUATION = re.compile(r"[，,、；;。：:]|\.(?=\s|\Z)")
_SEPARATED_LINE = re.compile(r"[-*+•·]\s|\**[(（]")
"""The start of a line that needs no separator before it: an item of a list, or text in parentheses."""

_WRAPPED_PHRASE = re.compile(
    r"\s*[\u4e00-\u9fff、]{8,}\s*<br\s*/?>\s*[\u4e00-\u9fff、]+\s*", re.IGNORECASE
)
"""A cell with one line break in Chinese text without punctuation other than `、`.

The break may be in the middle of a phrase. The first line is longer than a value usually is.
"""


def has_chinese(text: str) -> bool:
    """Return whether `text` contains a Chinese character."""
    return _CHINESE.search(text) is not None


def join_texts(texts: Iterable[str], separator: str = "; ") -> str:
    """Join the distinct texts that are not empty. Texts that differ only in backticks count as one.

    The end of a text decides what joins it to the next one: nothing after a full-width punctuation mark, a
    space after an ASCII mark. Without a mark, `。` follows a Chinese text, and `separator` any other text.
    """
    joined, distinct = "", dict[str, str]()
    for text in filter(None, texts):
        distinct.setdefault(text.replace("`", ""), text)
    previous = ""
    for text in distinct.values():
        joined = f"{joined}{_separator_after(previous, separator)}{text}" if joined else text
        previous = text
    return joined


def _separator_after(text: str, default: str) -> str:
    if text.endswith(_FULL_WIDTH_ENDS):
        return ""
    if text.endswith(_ENDS):
        return " "
    return "。" if has_chinese(text) else default


def label_with(label: str, text: str) -> str:
    """Return `text` after a label and a colon. If the label ends with a colon, no second one is added."""
    if label.endswith(("：", ":")):
        return f"{label}{text}" if label.endswith("：") else f"{label} {text}"
    return f"{label}：{text}" if has_chinese(label) else f"{label}: {text}"


def with_note(text: str, note: str) -> str:
    """Return `text` followed by a note in parentheses."""
    return (f"{text}（{note}）" if has_chinese(note) else f"{text} ({note})").strip()


def insert_name(template: str, name: str) -> str:
    """Return `template` with `name` instead of `{name}`, which must occur in it once.

    If an ASCII character of the name is next to a Chinese character of the template, a space is added
    between them.
    """
    before, _, after = template.partition("{name}")
    start = " " if has_chinese(before[-1:]) and name[:1].isascii() else ""
    end = " " if has_chinese(after[:1]) and name[-1:].isascii() else ""
    return f"{before}{start}{name}{end}{after}"


def join_lines(cell: str) -> str:
    """Return the Markdown of a table cell with each `<br>` replaced by a semicolon.

    No semicolon is added after punctuation, or before a list item or text in parentheses. A space replaces
    a break that may be in the middle of a phrase. A list whose items contain no punctuation becomes an
    enumeration: "one of:<br>- cat<br>- dog" becomes "one of: cat, dog".
    """
    if _WRAPPED_PHRASE.fullmatch(cell):
        return _LINE_BREAKS.sub(" ", cell)
    cell = _enumerate_items(cell)
    separator = "；" if has_chinese(cell) else "; "

    def separate(line_breaks: re.Match[str]) -> str:
        before, after = cell[: line_breaks.start()], cell[line_breaks.end() :]
        end = before.rstrip("*_")
        if end.endswith(_FULL_WIDTH_ENDS) and after:
            return ""
        is_separated = end.endswith((*_ENDS, ",")) or _SEPARATED_LINE.match(after)
        return separator if end.strip() and after.strip() and not is_separated else " "

    return replace_outside_code(_LINE_BREAKS, separate, cell)


def _enumerate_items(cell: str) -> str:
    """Return a cell with commas between the items of a list, if no item contains punctuation."""
    items = _ITEM.findall(cell)
    if len(items) < 2 or any(map(_PUNCTUATION.search, map(str.strip, items))):
        return cell
    comma, colon = ("、", "：") if has_chinese(cell) else (", ", ": ")
    is_after_item = _FIRST_BULLET.match(cell) is not None
    cell = _FIRST_BULLET.sub(r"\1", cell)

    def separate(line_breaks: re.Match[str]) -> str:
        nonlocal is_after_item
        was_after_item, is_after_item = is_after_item, line_breaks["bullet"] is not None
        end = cell[: line_breaks.start()].rstrip("*_")
        if not is_after_item:  # the end of the list
            return line_breaks[0]
        if end.endswith(_FULL_WIDTH_ENDS):
            return ""
        is_separated = end.endswith((*_ENDS, ","))
        return " " if is_separated else (comma if was_after_item else colon)

    return replace_outside_code(_ITEM_BREAKS, separate, cell)
