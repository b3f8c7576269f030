"""Extraction of the names that a text mentions: paths, fields, headers, values, error codes, permissions.

Nothing is looked up here. A name that only looks like one of a platform, such as a library's, is skipped
if the text alone shows it; if only the documents can tell, `Mention.maybe_external` is set.
"""

import re
from collections.abc import Iterator

from runnables.grounding.addresses import take_targets
from runnables.grounding.markdown_text import blank_program_code
from runnables.grounding.mention import Mention, is_preceded_by, surrounding_chars
from runnables.grounding.names import (
    CAPITALISED_PROSE,
    LANGUAGE_WORDS,
    extract_code_numbers,
    extract_names_in_context,
    is_example,
    is_file_or_domain,
    is_method,
    is_standard,
    take_json_keys,
)
from runnables.grounding.permissions import extract_permissions

COMPOUND_NAME = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\[[A-Za-z0-9_]*\])?[.:-][A-Za-z0-9_]+)*(?:\[\w*\])?", re.ASCII
)
"""A name with everything that may join its parts."""

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


def extract_mentions(text: str) -> list[Mention]:
    """Return the names that `text` mentions, in order."""
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


def has_name_spelling(word: str) -> bool:
    """Whether `word` is spelled as only names are: in snake_case or camelCase."""
    word = word.partition("[")[0].strip("_")
    return bool(_SNAKE_CASE.fullmatch(word) or _CAMEL_CASE.fullmatch(word))


def _names_by_spelling(text: str) -> Iterator[Mention]:
    """The names that are spelled unlike any word of a language, or marked as code."""
    for match in COMPOUND_NAME.finditer(text):
        start, end = match.span()
        before, after = surrounding_chars(text, start, end)
        if _is_fragment(before, after):
            continue
        name = match[0]
        if not name.endswith("]"):
            name = name.rstrip("_") or name
        first = name.partition(":")[0]  # a code may follow the colon
        if not (is_example(first) or _VERSION.fullmatch(name) or is_standard(name)):
            yield from _compound_mentions(text, name, start, before == after == "`")


def _is_fragment(before: str, after: str) -> bool:
    """Whether a name is part of something else: of a word, `@user`, `$variable`, `%d`, `*.json`."""
    is_joined = (before.isascii() and before.isalnum()) or before in set("@$%\\*~")
    return is_joined or after == "*"


def _compound_mentions(text: str, name: str, start: int, in_code: bool) -> Iterator[Mention]:
    """The mentions in a compound name: the whole, or its parts."""
    end = start + len(name)
    if "." in name:
        if in_code or not _is_sentence_break(name):
            is_external = _may_be_external(name, text[end : end + 1])
            yield Mention("name", name, start, maybe_external=is_external)
    elif (
        _SCOPE.fullmatch(name)
        or _is_header(text, name, start, in_code)
        or (in_code and "-" in name)
    ):
        yield Mention("name", name, start)
    elif not (in_code and _LIBRARY_AFTER.match(text, end)):
        yield from _part_mentions(text, name, start, in_code)


def _part_mentions(text: str, name: str, start: int, in_code: bool) -> Iterator[Mention]:
    """The parts that are names; in a code span any word except those of languages and class names."""
    for part in _PART.finditer(name):
        word, at = part[0], start + part.start()
        is_code_word = in_code and not is_standard(word) and not _is_class_name(word)
        if not is_example(word) and (is_code_word or _is_name(text, word, at)):
            yield Mention("word", word, at, maybe_external=_is_variable(text, word, at))


def _is_sentence_break(name: str) -> bool:
    """Whether the dot is a full stop: in initials, or before a sentence without a space."""
    parts = name.split(".")
    return all(len(part) == 1 for part in parts) or (len(parts) == 2 and parts[1].istitle())


def _may_be_external(name: str, after: str) -> bool:
    """Whether a dotted name looks like a file, a website or a library's code."""
    first, *_, last = name.split(".")
    return (
        is_file_or_domain(name)
        or first in LANGUAGE_WORDS
        or first[:1].isupper()
        or is_method(last)
        or after == "("
        or ("[" not in name and has_name_spelling(last))
    )


def _is_class_name(name: str) -> bool:
    return name[:1].isupper() and not name.isupper() and "_" not in name and "-" not in name


def _is_header(text: str, name: str, start: int, in_code: bool) -> bool:
    context = text[max(0, start - 20) : start + len(name) + 20].lower()
    is_marked = in_code or name.startswith("X-") or "header" in context or "头" in context
    return is_marked and _HEADER.fullmatch(name) is not None


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether `word` is spelled unlike any word of a language."""
    if is_standard(word) or word.startswith("__"):
        return False
    if word.isupper() and word.isalpha():
        is_quoted = text[max(0, start - 1) : start] in _QUOTES
        if is_quoted or is_preceded_by(_VALUE_BEFORE, text, start):
            return len(word) > 2
        return len(word) > 4 and word not in CAPITALISED_PROSE
    if is_preceded_by(_EXAMPLE_BEFORE, text, start) and _is_variable(text, word, start):
        return False  # an example name for an environment variable of the reader
    return has_name_spelling(word)


def _is_variable(text: str, word: str, start: int) -> bool:
    """Whether the text calls it an environment variable, whose name is usually the reader's own."""
    context = text[max(0, start - 40) : start + len(word) + 20]
    return word.isupper() and "_" in word and _VARIABLE.search(context) is not None
