"""Joins texts with the punctuation of their language: Chinese punctuation has no space next to it."""

import re
from collections.abc import Iterable

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_FULL_WIDTH_ENDS = ("。", "；", "！", "？", "：", "，", "、", "…")
_ENDS = (".", ";", "!", "?", ":")


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
        joined = f"{joined}{_between(previous, separator)}{text}" if joined else text
        previous = text
    return joined


def _between(before: str, separator: str) -> str:
    if before.endswith(_FULL_WIDTH_ENDS):
        return ""
    if before.endswith(_ENDS):
        return " "
    return "。" if has_chinese(before) else separator


def label_with(label: str, text: str) -> str:
    """Return `text` after a label and a colon. If the label ends with a colon, no second one is added."""
    if label.endswith(("：", ":")):
        return f"{label}{text}" if label.endswith("：") else f"{label} {text}"
    return f"{label}：{text}" if has_chinese(label) else f"{label}: {text}"


def with_note(text: str, note: str) -> str:
    """Return `text` followed by a note in parentheses."""
    return (f"{text}（{note}）" if has_chinese(note) else f"{text} ({note})").strip()
