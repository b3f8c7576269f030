"""Finds the code in Markdown, so that text around it can be changed and code is not."""

import re
from collections.abc import Callable, Iterator

_FENCE_LINE = re.compile(r"^[ \t>]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_CODE_SPAN = (
    r"(?P<code>(?P<ticks>`++)"
    r"(?:(?:[^`\n]++|\n(?![ \t]*\n)|(?!(?P=ticks)(?!`))`++)*+(?P=ticks))?)"
)
"""A code span, which ends before a blank line, or backticks that open none."""


def split_code(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the text in parts: whether a part is a fenced block, and the part. Nothing is left out."""
    done, fence = 0, ""
    for match in _FENCE_LINE.finditer(text):
        if not fence:
            yield False, text[done : match.start()]
            done, fence = match.start(), match[1]
        elif match[1].startswith(fence) and not match[2].strip(f"{fence[0]} \t>"):
            yield True, text[done : match.end()]
            done, fence = match.end(), ""
    yield bool(fence), text[done:]


def outside_code(pattern: str) -> re.Pattern[str]:
    """Return a pattern of code spans and, elsewhere, of `pattern`, which has named groups at most.

    Whichever starts first counts, as in Markdown: a tag may contain backticks.
    """
    return re.compile(f"{_CODE_SPAN}|{pattern}", re.DOTALL | re.IGNORECASE)


def replace_outside_code(
    pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str
) -> str:
    """Replace the matches of a pattern from `outside_code` in `text`; code spans stay."""
    return pattern.sub(lambda match: match[0] if match["code"] else replace(match), text)


_SPAN = re.compile(_CODE_SPAN)


def change_outside_code(change: Callable[[str], str], text: str) -> str:
    """Apply `change` to each part of `text` between code spans."""
    if "`" not in text:
        return change(text)
    parts: list[str] = []
    done = 0
    for match in _SPAN.finditer(text):
        parts += [change(text[done : match.start()]), match[0]]
        done = match.end()
    return "".join([*parts, change(text[done:])])
