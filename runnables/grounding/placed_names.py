"""Plain words that are names for where they stand: before `=`, in a first cell, as a key, beside 字段."""

import re
from collections.abc import Iterator

from runnables.grounding.mention import Mention, MentionKind
from runnables.grounding.standard_names import TYPES, is_example

_JSON_PAIR = re.compile(
    r"\"([A-Za-z_][\w.-]*)\"\s{0,4}:\s{0,4}(\"[^\"\n]*\"|-?\d[\d.]*)?", re.ASCII
)
_TELLING_VALUE = re.compile(r"\"(?:[A-Z][A-Z_]+|[a-z]+(?:[_.][a-z-]+)+)\"")
"""A value in JSON that is one of a list, such as a status or an event; any other is an example."""

_PAIR = re.compile(
    r"(?<![\w.=<>!?$-])([A-Za-z_][\w.-]*)(?:\[\])?=(?![=>~])[\"']?([a-z]{3,}(?![\w.-]))?", re.ASCII
)
"""A key and, where it is one word, its value; no comparison and no arrow."""

_FIRST_CELL = re.compile(r"^\s{0,3}\|[ `]{0,3}([A-Za-z_]\w*)[ `]{0,3}\|", re.ASCII | re.MULTILINE)
_NOUN = "字段|参数|请求头|响应头|属性"
_ENGLISH_NOUN = "fields?|param(?:eter)?s?|headers?|propert(?:y|ies)|attributes?"
_NAMED = re.compile(
    rf"(?<![\w.:-])([A-Za-z][\w-]+)[ `]{{0,2}}(?:{_NOUN})"
    rf"|(?:{_NOUN})[ `]{{0,2}}([A-Za-z][\w-]++)(?![.:]\w)"
    rf"|`([A-Za-z][\w-]+)` (?:{_ENGLISH_NOUN})\b|\b(?:{_ENGLISH_NOUN}) `([A-Za-z][\w-]+)`",
    re.ASCII,
)
"""In English a code span only, for there any word may stand before "field"."""


def take_json_keys(text: str) -> tuple[str, list[Mention]]:
    """`text` without the values in JSON that are examples, of the same length; and the keys."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        key, value = match[1], match[2] or ""
        if not is_example(key):
            found.append(Mention("word", key, match.start(1)))
        if not value or _TELLING_VALUE.fullmatch(value) or "code" in key.lower():
            return match[0]
        return match[0][: -len(value)] + " " * len(value)

    return _JSON_PAIR.sub(take, text), found


def placed_names(text: str) -> Iterator[Mention]:
    """The words that stand where only names stand; keys in JSON are `take_json_keys`'s."""
    for pattern in (_PAIR, _FIRST_CELL, _NAMED):
        for match in pattern.finditer(text):
            for group, word in enumerate(match.groups(), 1):
                if word and word not in TYPES and not is_example(word):
                    kind: MentionKind = "name" if "-" in word else "word"
                    yield Mention(kind, word, match.start(group))
