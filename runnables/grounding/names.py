"""Finds error codes, names of permissions, and words that are names by their context.

A word is a name by its context if it is a key in JSON, a key or a one-word value in a `key=value` pair, the
first cell of a table row, or next to a noun such as `field`. A permission has a name such as 标签打印权限包
or "Parcel Read Package".

The module also recognises names that are not specific to a platform: those from programming languages,
standards and examples.
"""

import builtins
import keyword
import mimetypes
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import Literal

from ingestion.text.words import dictionary_words, read_word_lists

MentionKind = Literal["target", "name", "word", "number", "permission"]
"""The kind of a `Mention`.

- `target`: a URL or path.
- `name`: a name with `.`, `:` or `-`.
- `word`: any other name, such as `order_id`. A key of a JSON object is always a `word`. A key of a
  `key=value` pair is a `word` unless it contains `-`.
- `number`: an error code.
- `permission`: the name of a permission.
"""

CONTEXT_CHARS = 20
"""Number of characters before a mention that `is_preceded_by` searches."""

ANY_METHOD = "|".join(HTTPMethod)
"""The HTTP methods as alternatives of a regular expression."""

_WORDS = read_word_lists(__file__, "names")

NON_FIELD_WORDS = _WORDS["non_fields"]
"""Data types, and other words that occur in the positions of field names but are not fields."""

LANGUAGE_WORDS = frozenset(keyword.kwlist).union(
    dir(builtins), sys.stdlib_module_names, NON_FIELD_WORDS, _WORDS["other_languages"]
)
"""Words of Python and of other languages that look like names of an API, and `NON_FIELD_WORDS`."""

_STATUS_WORDS = {word for status in HTTPStatus for word in status.name.split("_")}
CAPITALISED_PROSE = _STATUS_WORDS | _WORDS["emphasised"]
"""Words that prose writes in capitals, such as NOT FOUND and MUST.

They count as names only in quotes or after words that introduce a value.
"""

_EXTENSIONS = _WORDS["extensions"].union(
    extension[1:] for extension in (*mimetypes.types_map, *mimetypes.encodings_map)
)

_PLACEHOLDER = re.compile(r"^(?:your|my)[_.-]|^(?:YOUR|MY)_|xxx|XXX")
_RANDOM = re.compile(r"\d{5}|(?=[a-f]{0,7}\d)(?=\d{0,7}[a-f])[0-9a-f]{8}")
"""Five digits in a row, or eight hexadecimal characters that include digits and letters."""

_JSON_PAIR = re.compile(
    r"\"([A-Za-z_][\w.-]*)\"\s{0,4}:\s{0,4}(\"[^\"\n]*\"|-?\d[\d.]*)?", re.ASCII
)
_ENUM_VALUE = re.compile(r"\"(?:[A-Z][A-Z_]+|[a-z]+(?:[_.][a-z-]+)+)\"")
"""A value that is probably one of a fixed set, such as a status or an event, and not an example."""

_PAIR = re.compile(
    r"(?<![\w.=<>!?$-])([A-Za-z_][\w.-]*)(?:\[\])?=(?![=>~])[\"']?([a-z]{3,}(?![\w.-]))?", re.ASCII
)
"""A key before `=`, and its value if that is one word of three or more lower-case letters.

Comparisons and arrows do not match.
"""

_FIRST_CELL = re.compile(r"^\s{0,3}\|[ `]{0,3}([A-Za-z_]\w*)[ `]{0,3}\|", re.ASCII | re.MULTILINE)
_CHINESE_NOUN = "字段|参数|请求头|响应头|属性"
_ENGLISH_NOUN = "fields?|param(?:eter)?s?|headers?|propert(?:y|ies)|attributes?"
_NEXT_TO_NOUN = re.compile(
    rf"(?<![\w.:-])([A-Za-z][\w-]+)[ `]{{0,2}}(?:{_CHINESE_NOUN})"
    rf"|(?:{_CHINESE_NOUN})[ `]{{0,2}}([A-Za-z][\w-]++)(?![.:]\w)"
    rf"|`([A-Za-z][\w-]+)` (?:{_ENGLISH_NOUN})\b|\b(?:{_ENGLISH_NOUN}) `([A-Za-z][\w-]+)`",
    re.ASCII,
)
"""A word next to a noun such as `field`.

In English, only code spans match, because any word may precede "field".
"""

_CODE_NUMBER = re.compile(
    r"(?<![\w.,/=$¥￥+-])(?<!\d:)\d{4,6}(?!\w|[.,:/-]\d|[*×]|\s?[%％])", re.ASCII
)
"""Four to six digits that are not part of an amount, a date, a time, a name or a calculation."""

_UNIT = re.compile(
    r"\s?(?:[个条次元分秒毫天年月日时字笔页份张件位人倍行端]|[A-Za-z]+s\b|CNY|USD|[KMG]B\b|fen\b)"
)
"""A unit, or the first character of 端口 ("port"). A number before it is usually not an error code."""

_CODE_BEFORE = re.compile(
    r"(?:codes?|errors?|错误码|返回码|状态码|报错|错误)[^0-9，。,.;；\n]{0,8}$", re.I
)
_CELL_BEFORE = re.compile(r"^\s{0,3}\|[ `*]{0,3}\Z", re.MULTILINE)
"""The start of a table row. A number there is a code, because rows of error tables begin with the code."""

_RETURN_BEFORE = re.compile(
    r"(?:返回|报|收到|得到|提示|碰到|遇到|出现|看到|以|\b(?:gets?|got|sees?|receives?d?|raises?|throws?|"
    r"answers?|returns?|gives?|with|as|in|by))"
    r"[\s`\"'“的是为了到]{0,4}$"
)
"""Words such as "returns", after which a number may be an error code or a count."""


@dataclass(frozen=True)
class Mention:
    """A name, URL, path or number in a text. It may be a fact about the platform that needs a source."""

    kind: MentionKind
    text: str
    """The mention as written, with the HTTP method of a target."""
    start: int
    target: str = ""
    """For kind `target`: the URL or path without the method."""
    method: str = ""
    """For kind `target`: the HTTP method; empty if the text states none."""
    may_be_external: bool = False
    """Whether it may belong to a file, a website, a library or the reader's code, not to the platform."""
    is_explicit: bool = True
    """For kind `number`: whether the text shows that it is an error code.

    Any other number counts as an error code only if the documents have codes with the same prefix.
    """
    words: tuple[str, ...] = ()
    """For kind `permission`: the words of its name, in lower case and in reverse order."""


def surrounding_chars(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the character before `start` and the one at `end`; empty where `text` has none."""
    return text[max(0, start - 1) : start], text[end : end + 1]


def is_code_span(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` is the whole content of a code span."""
    return surrounding_chars(text, start, end) == ("`", "`")


def is_preceded_by(pattern: re.Pattern[str], text: str, start: int) -> bool:
    """Return whether `pattern`, which must end with an anchor, matches right before `start`."""
    return pattern.search(text[max(0, start - CONTEXT_CHARS) : start]) is not None


def is_standard(word: str) -> bool:
    """Return whether `word` is a placeholder, or belongs to a technology such as Python, SQL or HTTP."""
    return (
        word in LANGUAGE_WORDS
        or word.upper() in _WORDS["technologies"]
        or is_method(word)
        or word in _WORDS["sql"]
        or word.lower() in _WORDS["headers"]
        or _PLACEHOLDER.search(word) is not None
    )


def is_method(word: str) -> bool:
    """Return whether `word` is an HTTP method, in upper or lower case."""
    return word.upper() in HTTPMethod.__members__


def is_example(word: str) -> bool:
    """Return whether `word` is a placeholder or contains random characters, as in an example id."""
    return _PLACEHOLDER.search(word) is not None or _RANDOM.search(word) is not None


def is_file_or_domain(name: str) -> bool:
    """Return whether a dotted name ends with a file extension or a top-level domain."""
    last = name.rpartition(".")[2]
    return last in _EXTENSIONS or last in _WORDS["top_domains"]


def take_json_keys(text: str) -> tuple[str, list[Mention]]:
    """Return `text` with the example values in its JSON blanked out, and the JSON keys as mentions."""
    mentions: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        key, value = match[1], match[2] or ""
        if not is_example(key):
            mentions.append(Mention("word", key, match.start(1)))
        if not value or _ENUM_VALUE.fullmatch(value) or "code" in key.lower():
            return match[0]
        return match[0][: -len(value)] + " " * len(value)

    return _JSON_PAIR.sub(take, text), mentions


def extract_names_in_context(text: str) -> Iterator[Mention]:
    """Yield the words that are names by their context, except JSON keys (see `take_json_keys`)."""
    for pattern in (_PAIR, _FIRST_CELL, _NEXT_TO_NOUN):
        for match in pattern.finditer(text):
            for group, word in enumerate(match.groups(), 1):
                if word and word not in NON_FIELD_WORDS and not is_example(word):
                    kind: MentionKind = "name" if "-" in word else "word"
                    yield Mention(kind, word, match.start(group))


def extract_code_numbers(text: str) -> Iterator[Mention]:
    """Yield the numbers in `text` that are or may be error codes (see `Mention.is_explicit`)."""
    for match in _CODE_NUMBER.finditer(text):
        start, end = match.span()
        is_marked_as_code = is_code_span(text, start, end) or any(
            is_preceded_by(pattern, text, start) for pattern in (_CODE_BEFORE, _CELL_BEFORE)
        )
        if is_marked_as_code or not _UNIT.match(text, end):
            is_explicit = is_marked_as_code or (
                _is_unlikely_amount(match[0]) and is_preceded_by(_RETURN_BEFORE, text, start)
            )
            yield Mention("number", match[0], start, is_explicit=is_explicit)


def _is_unlikely_amount(number: str) -> bool:
    return len(number) > 4 and int(number) % 1000 != 0


# --- permissions ----------------------------------------------------------------------------------

_PERMISSION_NOUN = re.compile(
    r"权限[包组]|(?<=[A-Za-z0-9] )(?:[Pp]ermission )?Package\b|(?<=[A-Za-z0-9] )permission package\b"
)
"""The noun at the end of a permission's name."""

_TITLE_WORDS = re.compile(r"(?:\b[A-Z][A-Za-z0-9-]*\s)+$")
_HAN_WORDS = re.compile(r"[\u4e00-\u9fff]+$")
_MAX_TITLE_CHARS, _MAX_HAN_CHARS = 60, 14
"""Maximum number of characters before the noun that are searched, so that the cost stays linear."""

_NOT_IN_PERMISSIONS = _WORDS["not_in_permissions"]


def extract_permissions(text: str) -> Iterator[Mention]:
    """Yield the permissions that `text` names. An expression such as "this package" is not a name."""
    for match in _PERMISSION_NOUN.finditer(text):
        words = list(_permission_words(text, match.start()))
        if words:
            has_space = text[match.start() - 1] == " "
            start = match.start() - sum(len(word) + has_space for word in words)
            lowered = (match[0].lower(), *(word.lower() for word in words))
            yield Mention("permission", text[start : match.end()], start, words=lowered)


def _permission_words(text: str, end: int) -> Iterator[str]:
    """Yield the words of the name that ends at `end`, last one first."""
    for word in reversed(_words_before(text, end)):
        if word in _NOT_IN_PERMISSIONS:
            return
        yield word


def _words_before(text: str, end: int) -> tuple[str, ...]:
    """Return the capitalised or Chinese words directly before `end`, in order."""
    if text[end - 1 : end] == " ":
        title = _TITLE_WORDS.search(text[max(0, end - _MAX_TITLE_CHARS) : end])
        return tuple(title[0].split()) if title else ()
    han = _HAN_WORDS.search(text[max(0, end - _MAX_HAN_CHARS) : end])
    return dictionary_words(han[0]) if han else ()


class PermissionIndex:
    """Index of the permissions that documents name."""

    def __init__(self) -> None:
        self._names: set[tuple[str, ...]] = set()
        self._endings: set[tuple[str, ...]] = set()

    def add(self, text: str) -> None:
        """Index the permissions in `text`."""
        for mention in extract_permissions(text):
            name = _permission_name(mention)
            self._names.add(name)
            self._endings.update(_endings(name))

    def contains(self, mention: Mention) -> bool:
        """Return whether the name in `mention` and an indexed name are equal, or one ends with the other.

        If all indexed permissions are in another language, the result is true, because the name may be a
        translation. If no permission is indexed, the result is false.
        """
        name = _permission_name(mention)
        if name[:1] not in self._endings:
            return bool(self._names)
        return name in self._endings or any(ending in self._names for ending in _endings(name))


def _permission_name(mention: Mention) -> tuple[str, ...]:
    """Return the language of the name, and its words without the noun, last one first.

    Without the noun, two names that differ only in 权限包 and 权限组 are equal.
    """
    noun, *words = mention.words
    return ("en" if noun.isascii() else "zh", *words)


def _endings(name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return (language,), (language, last word), (language, last word, last but one), and so on."""
    return (name[:end] for end in range(1, len(name) + 1))
