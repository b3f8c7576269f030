"""What a text names of a platform, by shape: paths, fields, headers, values, error codes, permissions.

Nothing is looked up here. A name that only looks like one, such as a library's, is left out where the
text alone tells; where it takes the documents to tell, `Mention.foreign` says so.
"""

import re
from collections.abc import Iterator

from runnables.grounding.addresses import take_targets
from runnables.grounding.markdown_text import without_programs
from runnables.grounding.mention import Mention, beside, error_codes, follows
from runnables.grounding.names import (
    CAPITALS_OF_PROSE,
    LANGUAGE_WORDS,
    is_example,
    is_file_or_site,
    is_method,
    is_standard,
    placed_names,
    take_json_keys,
)
from runnables.grounding.permissions import permissions

RUN = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\[[A-Za-z0-9_]*\])?[.:-][A-Za-z0-9_]+)*(?:\[\w*\])?", re.ASCII
)
"""A name with everything that may join its parts."""

_PART = re.compile(r"[A-Za-z_]\w*(?:\[\w*\])?", re.ASCII)
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+", re.ASCII)

_SNAKE = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[a-z]{2,}[0-9]*[A-Z][A-Za-z0-9]*")
_SCOPE = re.compile(r"[a-z][a-z_]+(?::[a-z][a-z_]+)+")
"""As OAuth's are mostly written: `parcel:write`."""
_HEADER = re.compile(r"(?:[A-Z][A-Za-z0-9]*-)+[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"[vV]\d+(?:[.-]\w+)*")

_QUOTES = frozenset("\"'“「`")
_VALUE_BEFORE = re.compile(
    r"(?:=|填|传|选|设为|设成|变为|变成|状态[为是]|值[为是]|取值|"
    r"\bset to|\bbecomes?|\bturns?|\breads?|\bstatus(?: is)?)"
    r"[\s\"'“「`]{0,3}$"
)
_VARIABLE = re.compile(r"环境变量|environment variable|env var|\benviron\b|\bgetenv\b", re.I)
_FOR_EXAMPLE = re.compile(
    r"(?:例如|比如|譬如|如|叫|such as|like|e\.g\.,?|called|named)[\s`\"'“]{0,3}$", re.I
)
_LIBRARY = re.compile(r"\s?`?\s?(?:\blibrar|\bmodule|\bframework|库|模块|框架)")


def mentions(text: str) -> list[Mention]:
    """What `text` names, in order; nothing in it is looked up."""
    text = _MAIL.sub(lambda match: " " * len(match[0]), without_programs(text))
    text, of_json = take_json_keys(text)
    text, targets = take_targets(text)
    found = [
        *of_json,
        *targets,
        *placed_names(text),
        *_spelled_names(text),
        *error_codes(text),
        *permissions(text),
    ]
    return sorted(found, key=lambda mention: mention.start)


def is_spelled(word: str) -> bool:
    """Whether it is spelled as only names are: snake_case or camelCase."""
    word = word.partition("[")[0].strip("_")
    return bool(_SNAKE.fullmatch(word) or _CAMEL.fullmatch(word))


def _spelled_names(text: str) -> Iterator[Mention]:
    """The names that are written as no word of a language is, or as code."""
    for match in RUN.finditer(text):
        start, end = match.span()
        before, after = beside(text, start, end)
        if _is_cut_off(before, after):
            continue
        run = match[0]
        if not run.endswith("]"):
            run = run.rstrip("_") or run
        shown = run.partition(":")[0]  # behind it may be a code
        if not (is_example(shown) or _VERSION.fullmatch(run) or is_standard(run)):
            yield from _of_run(text, run, start, before == after == "`")


def _is_cut_off(before: str, after: str) -> bool:
    """Whether a run is a part of something else: of a word, `@user`, `$variable`, `%d`, `*.json`."""
    joined = (before.isascii() and before.isalnum()) or before in set("@$%\\*~")
    return joined or after == "*"


def _of_run(text: str, run: str, start: int, in_code: bool) -> Iterator[Mention]:
    """What `run` names, whole or by its parts."""
    end = start + len(run)
    if "." in run:
        if in_code or not _is_loose(run):
            yield Mention("name", run, start, foreign=_is_foreign(run, text[end : end + 1]))
    elif _SCOPE.fullmatch(run) or _is_header(text, run, start, in_code) or (in_code and "-" in run):
        yield Mention("name", run, start)
    elif not (in_code and _LIBRARY.match(text, end)):
        yield from _of_parts(text, run, start, in_code)


def _of_parts(text: str, run: str, start: int, in_code: bool) -> Iterator[Mention]:
    """The parts of `run` that are names; in a code span, words but those of languages and classes."""
    for part in _PART.finditer(run):
        word, at = part[0], start + part.start()
        plain = in_code and not is_standard(word) and not _is_class(word)
        if not is_example(word) and (plain or _is_name(text, word, at)):
            yield Mention("word", word, at, foreign=_is_variable(text, word, at))


def _is_loose(run: str) -> bool:
    """Whether its dot is a full stop: initials, or a sentence that begins without a blank."""
    parts = run.split(".")
    return all(len(part) == 1 for part in parts) or (len(parts) == 2 and parts[1].istitle())


def _is_foreign(run: str, after: str) -> bool:
    """Whether it looks like a file, a site, or a library's code."""
    first, *_, last = run.split(".")
    return (
        is_file_or_site(run)
        or first in LANGUAGE_WORDS
        or first[:1].isupper()
        or is_method(last)
        or after == "("
        or ("[" not in run and is_spelled(last))
    )


def _is_class(run: str) -> bool:
    return run[:1].isupper() and not run.isupper() and "_" not in run and "-" not in run


def _is_header(text: str, run: str, start: int, in_code: bool) -> bool:
    around = text[max(0, start - 20) : start + len(run) + 20].lower()
    said = in_code or run.startswith("X-") or "header" in around or "头" in around
    return said and _HEADER.fullmatch(run) is not None


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether `word` is written as no word of a language is."""
    if is_standard(word) or word.startswith("__"):
        return False
    if word.isupper() and word.isalpha():
        is_value = text[max(0, start - 1) : start] in _QUOTES or follows(_VALUE_BEFORE, text, start)
        return len(word) > 2 if is_value else len(word) > 4 and word not in CAPITALS_OF_PROSE
    if follows(_FOR_EXAMPLE, text, start) and _is_variable(text, word, start):
        return False  # an example of what the reader may call an environment variable
    return is_spelled(word)


def _is_variable(text: str, word: str, start: int) -> bool:
    """Whether it is called an environment variable, whose name is mostly the reader's own."""
    near = text[max(0, start - 40) : start + len(word) + 20]
    return word.isupper() and "_" in word and _VARIABLE.search(near) is not None
