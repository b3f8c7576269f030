"""Fact check: looks up every name of an answer in the question and in the chunks that the answer cites.

Names are paths, fields, headers, values, error codes and permissions. Names that do not belong to the
platform, such as those of a library, need no source. `Mention.may_be_external` marks doubtful cases.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from runnables.grounding.addresses import AddressIndex, take_targets
from runnables.grounding.markdown_text import blank_program_code
from runnables.grounding.names import (
    CAPITALISED_PROSE,
    LANGUAGE_WORDS,
    Mention,
    PermissionIndex,
    extract_code_numbers,
    extract_names_in_context,
    extract_permissions,
    is_example,
    is_file_or_domain,
    is_method,
    is_preceded_by,
    is_standard,
    surrounding_chars,
    take_json_keys,
)

_MAX_NAME_PARTS = 10
"""Maximum number of parts of a dotted name that are indexed; fields are not nested deeper."""

_WORD = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_FIELD = re.compile(
    r"\"([A-Za-z_]\w*)\"\s*:|^[ \t]*\|[ `*]*([A-Za-z_]\w*)[ `*]*\||`([A-Za-z_]\w*)`",
    re.ASCII | re.MULTILINE,
)
"""A word used as a name: a JSON key, the first cell of a table row, or a code span."""

_CODE_CELL = re.compile(r"^[ \t]*\|[ `*]*(\d{4,6})[ `*]*\|", re.MULTILINE)
_LIST_BRACKETS = re.compile(r"\[(?:\d*|[a-z])\]")
"""Brackets that mark a field as a list or select one item: `[]`, `[0]`, `[i]`."""

_CONTAINERS = {
    "response", "resp", "res", "request", "req", "payload", "result", "json", "params", "body",
}  # fmt: skip
"""Usual names of variables that contain a request or a response."""

_RESPONSE_ATTRIBUTES = {
    "content_type", "contentType", "is_success", "responseText", "statusCode", "statusText",
    "status_code", "status_text",
}  # fmt: skip
"""Attributes of responses in HTTP libraries, which are not fields of the platform."""

COMPOUND_NAME = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\[[A-Za-z0-9_]*\])?[.:-][A-Za-z0-9_]+)*(?:\[\w*\])?", re.ASCII
)
"""A name, including separators between its parts."""

_PART = re.compile(r"[A-Za-z_]\w*(?:\[\w*\])?", re.ASCII)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+", re.ASCII)

_SNAKE_CASE = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+")
_CAMEL_CASE = re.compile(r"[a-z]{2,}[0-9]*[A-Z][A-Za-z0-9]*")
_SCOPE = re.compile(r"[a-z][a-z_]+(?::[a-z][a-z_]+)+")
"""The usual form of an OAuth scope: `parcel:write`."""
_HEADER = re.compile(r"(?:[A-Z][A-Za-z0-9]*-)+[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"[vV]\d+(?:[.-]\w+)*")

_QUOTES = frozenset("\"'“「`")
_VALUE_BEFORE = re.compile(
    r"(?:=|填|传|选|设为|设成|变为|变成|状态[为是]|值[为是]|取值|"
    r"\bset to|\bbecomes?|\bturns?|\breads?|\bstatus(?: is)?)"
    r"[\s\"'“「`]{0,3}$"
)
_VARIABLE = re.compile(r"环境变量|environment variable|env var|\benviron\b|\bgetenv\b", re.I)
_EXAMPLE_BEFORE = re.compile(
    r"(?:例如|比如|譬如|如|叫|such as|like|e\.g\.,?|called|named)[\s`\"'“]{0,3}$", re.I
)
_LIBRARY_AFTER = re.compile(r"\s?`?\s?(?:\blibrar|\bmodule|\bframework|库|模块|框架)")


class FactIndex:
    """Index of the names in cited chunks and in the question, built when a name is looked up."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Store `texts` for the first look-up: the question, or the Markdown of chunks.

        An HTTP method in one text does not apply to the paths in another.
        """
        self._names: set[str] = set()
        self._lower_names: set[str] = set()
        self._fields: set[str] = set()
        self._first_parts: set[str] = set()
        """The first part of each dotted name outside program code."""
        self._code_prefixes: set[tuple[int, str]] = set()
        """Length and first two digits of each number in the first cell of a row: usually an error code."""
        self._addresses = AddressIndex()
        self._permissions = PermissionIndex()
        self._pending = list(texts)

    def add(self, text: str) -> None:
        """Store one more text. It is indexed at the next look-up, because many statements have no name."""
        self._pending.append(text)

    def _index_pending(self) -> None:
        if self._pending:
            for text in self._pending:
                self._index(text)
            self._pending.clear()
            self._add_nested_fields()

    def _index(self, text: str) -> None:
        text = text.replace("\\_", "_")
        self._addresses.add(text)
        self._permissions.add(text)
        names = set(_WORD.findall(text))
        for name in set(COMPOUND_NAME.findall(text)):
            names.update(_sub_names(name))
        self._names |= names
        self._lower_names.update(map(str.lower, names))
        self._fields.update(name for groups in _FIELD.findall(text) for name in groups if name)
        prose_names = COMPOUND_NAME.findall(blank_program_code(text))
        self._first_parts.update(name.partition(".")[0] for name in prose_names if "." in name)
        self._code_prefixes.update(map(_code_prefix, _CODE_CELL.findall(text)))

    def _add_nested_fields(self) -> None:
        """If a dotted name begins with a field, index its parts as fields, in any order of the names.

        For example, `total` becomes a field if the texts contain the field `data` and `data.total`.
        """
        fields, names = self._fields, [name.split(".") for name in self._names if "." in name]
        while new := {part for first, *rest in names if first in fields for part in rest} - fields:
            fields |= new  # in place

    def contains(self, mention: Mention) -> bool:
        """Return whether the mentioned name is indexed, or needs no source.

        For example, a number that is probably not an error code needs no source.
        """
        self._index_pending()
        match mention.kind:
            case "target":
                return self._addresses.contains(mention)
            case "permission":
                return self._permissions.contains(mention)
            case "number":
                return mention.text in self._names or not self._is_error_code(mention)
            case "name":
                return self._contains_name(mention)
            case "word":
                word = mention.text
                is_known = word in self._names or _strip_brackets(word) in self._names
                return is_known or (mention.may_be_external and word.lower() in self._names)

    def _is_error_code(self, mention: Mention) -> bool:
        return mention.is_explicit or _code_prefix(mention.text) in self._code_prefixes

    def _contains_name(self, mention: Mention) -> bool:
        """Return whether a name with `.`, `:` or `-` is indexed, consists of fields, or is external.

        The variable before a field, such as `response` in `response.data.total`, is ignored.
        """
        name = _strip_brackets(mention.text)
        if name in self._names or ("." not in name and name.lower() in self._lower_names):
            return True
        parts = re.split(r"[.:]", name)
        if parts[0] in _CONTAINERS and parts[0] not in self._fields:
            del parts[0]
        if len(parts) > 1 and all(map(self._is_field, parts)):
            return True
        return mention.may_be_external and not self._belongs_to_platform(parts)

    def _belongs_to_platform(self, parts: list[str]) -> bool:
        """Return whether a dotted name begins like an indexed one, or contains an indexed name."""
        first = parts[0]
        return (
            first in self._fields
            or (first in self._first_parts and not is_standard(first))
            or any(is_snake_or_camel_case(part) and part in self._names for part in parts)
        )

    def _is_field(self, part: str) -> bool:
        return part in self._fields or (is_snake_or_camel_case(part) and part in self._names)


def find_unverified_facts(statement: str, index: FactIndex) -> list[str]:
    """Return the distinct names in `statement` that `index` does not contain, as written and in order."""
    mentions = extract_mentions(statement)
    return list(dict.fromkeys(each.text for each in mentions if not index.contains(each)))


def _code_prefix(code: str) -> tuple[int, str]:
    """Return the length and the first two digits, which similar codes of a platform share."""
    return len(code), code[:2]


def _strip_brackets(name: str) -> str:
    return _LIST_BRACKETS.sub("", name)


def _sub_names(name: str) -> Iterator[str]:
    """Yield the name, and each run of consecutive parts of it.

    For example, `a.b.c` gives `a`, `a.b`, `b`, `b.c` and so on. If the name contains colons, the parts that
    they separate are also yielded.
    """
    yield name
    name = _strip_brackets(name)
    yield from (name, name.rstrip("_"))
    parts = name.split(".")[:_MAX_NAME_PARTS]
    if len(parts) > 1:
        yield from (".".join(parts[i:j]) for i, j in combinations(range(len(parts) + 1), 2))
    if ":" in name:
        yield from name.split(":")


def extract_mentions(text: str) -> list[Mention]:
    """Return the names in `text`, in order."""
    text = _EMAIL.sub(lambda match: " " * len(match[0]), blank_program_code(text))
    text, json_keys = take_json_keys(text)
    text, targets = take_targets(text)
    mentions = [
        *json_keys,
        *targets,
        *extract_names_in_context(text),
        *_names_by_spelling(text),
        *extract_code_numbers(text),
        *extract_permissions(text),
    ]
    return sorted(mentions, key=lambda mention: mention.start)


def is_snake_or_camel_case(word: str) -> bool:
    """Return whether `word` is in snake_case or camelCase. Ordinary words never are."""
    word = word.partition("[")[0].strip("_")
    return bool(_SNAKE_CASE.fullmatch(word) or _CAMEL_CASE.fullmatch(word))


def _names_by_spelling(text: str) -> Iterator[Mention]:
    """Yield the names that are not spelled like ordinary words, or are marked as code."""
    for match in COMPOUND_NAME.finditer(text):
        start, end = match.span()
        before, after = surrounding_chars(text, start, end)
        if _is_fragment(before, after):
            continue
        name = match[0]
        if not name.endswith("]"):
            name = name.rstrip("_") or name
        first = name.partition(":")[0]  # `code` of `code:40014`
        if not (is_example(first) or _VERSION.fullmatch(name) or is_standard(name)):
            yield from _compound_mentions(text, name, start, before == after == "`")


def _is_fragment(before: str, after: str) -> bool:
    """Return whether a name is part of a longer word or of `@user`, `$variable`, `%d` or `prefix_*`."""
    is_joined = (before.isascii() and before.isalnum()) or before in set("@$%\\*~")
    return is_joined or after == "*"


def _compound_mentions(text: str, name: str, start: int, in_code: bool) -> Iterator[Mention]:
    """Yield the whole compound name as one mention, or its parts as several."""
    end = start + len(name)
    if "." in name:
        if in_code or not _is_sentence_break(name):
            is_external = _may_be_external(name, text[end : end + 1])
            yield Mention("name", name, start, may_be_external=is_external)
    elif (
        _SCOPE.fullmatch(name)
        or _is_header(text, name, start, in_code)
        or (in_code and "-" in name)
    ):
        yield Mention("name", name, start)
    elif not (in_code and _LIBRARY_AFTER.match(text, end)):
        yield from _part_mentions(text, name, start, in_code)


def _part_mentions(text: str, name: str, start: int, in_code: bool) -> Iterator[Mention]:
    """Yield the parts that are names.

    In a code span, these are all words except class names, examples and standard words (see `is_standard`).
    """
    for part in _PART.finditer(name):
        word, at = part[0], start + part.start()
        is_code_word = in_code and not is_standard(word) and not _is_class_name(word)
        if not is_example(word) and (is_code_word or _is_name(text, word, at)):
            yield Mention("word", word, at, may_be_external=_is_variable(text, word, at))


def _is_sentence_break(name: str) -> bool:
    """Return whether `name` is only initials such as `e.g`, or joins two sentences, as `end.Then` does."""
    parts = name.split(".")
    return all(len(part) == 1 for part in parts) or (len(parts) == 2 and parts[1].istitle())


def _may_be_external(name: str, after: str) -> bool:
    """Return whether a dotted name looks like a file, a website or a library's code."""
    first, *_, last = name.split(".")
    return (
        is_file_or_domain(name)
        or first in LANGUAGE_WORDS
        or first[:1].isupper()
        or is_method(last)
        or after == "("
        or last in _RESPONSE_ATTRIBUTES
        or ("[" not in name and first not in _CONTAINERS and is_snake_or_camel_case(last))
    )


def _is_class_name(name: str) -> bool:
    return name[:1].isupper() and not name.isupper() and "_" not in name and "-" not in name


def _is_header(text: str, name: str, start: int, in_code: bool) -> bool:
    context = text[max(0, start - 20) : start + len(name) + 20].lower()
    is_marked = in_code or name.startswith("X-") or "header" in context or "头" in context
    return is_marked and _HEADER.fullmatch(name) is not None


def _is_name(text: str, word: str, start: int) -> bool:
    """Return whether `word` is a name: snake_case, camelCase or a word of five or more letters in capitals.

    Words of three or four letters in capitals, and longer ones in `CAPITALISED_PROSE`, are names only if
    they are quoted, or follow words such as "set to".
    """
    if is_standard(word) or word.startswith("__"):
        return False
    if word.isupper() and word.isalpha():
        is_quoted = text[max(0, start - 1) : start] in _QUOTES
        if is_quoted or is_preceded_by(_VALUE_BEFORE, text, start):
            return len(word) > 2
        return len(word) > 4 and word not in CAPITALISED_PROSE
    if is_preceded_by(_EXAMPLE_BEFORE, text, start) and _is_variable(text, word, start):
        return False  # an example of a name for the reader's own environment variable
    return is_snake_or_camel_case(word)


def _is_variable(text: str, word: str, start: int) -> bool:
    """Return whether `text` calls `word` an environment variable, whose name the reader usually chooses."""
    context = text[max(0, start - 40) : start + len(word) + 20]
    return word.isupper() and "_" in word and _VARIABLE.search(context) is not None
