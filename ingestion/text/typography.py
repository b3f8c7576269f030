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
    """Join the distinct texts that are not empty.

    A Chinese text that ends without a punctuation mark gets a full stop. After other texts is a space, if
    they end with a punctuation mark, or else `separator`.
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
    """Return `text` after a label and a colon. A label that already ends with a colon gets no other one."""
    if label.endswith(("：", ":")):
        return f"{label}{text}" if label.endswith("：") else f"{label} {text}"
    return f"{label}：{text}" if has_chinese(label) else f"{label}: {text}"


def with_note(text: str, note: str) -> str:
    """Return `text` followed by a note in brackets."""
    return (f"{text}（{note}）" if has_chinese(note) else f"{text} ({note})").strip()
