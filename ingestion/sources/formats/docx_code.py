"""Recognises examples in XML or JSON, and code, among the paragraphs of a Word document."""

import re
from collections.abc import Sequence

MAX_EXAMPLE_LINES = 300
"""Maximum number of paragraphs in which the end of an example is found by counting brackets or tags."""

_XML_START = re.compile(r"\s*<(?:\?xml\b|!--|[A-Za-z_][\w:.-]{0,80}(?:[\s/>]|$))")
_JSON_START = re.compile(
    r"\s*(?:[{\[]\s*(?:[\"“'{\[}\]]|//)|[{\[][ \t]*$|\{\s*[A-Za-z_]\w{0,80}\s*[:：])", re.MULTILINE
)
_CODE_LINE = re.compile(r"\s*(?:[<{}\[\]\"“]|//|--|\.\.\.|…|\d|$)|.*[>,{}\[\]]\s*$", re.DOTALL)
"""A paragraph that may be part of an example. Examples may contain blank lines and comments."""
_STATEMENT = re.compile(
    r"\s*(?:[<{}\[\]\"]|//|curl\s|(?:GET|POST|PUT|DELETE|HTTP)[ /]|import\s|def\s|return\b)"
    r"|\s*[A-Za-z_][A-Za-z0-9_.]* ?= ?\S"
    r"|[^\u3000-\uffef]*[;{}>\\]\s*$"
)
"""A line of code, such as a command, an assignment or a line without Chinese that ends with `;`."""


class Examples:
    """Finds the examples in `texts`, the texts of consecutive paragraphs."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._brackets = [_open_brackets(text) for text in texts]
        self._tags = [_open_tags(text) for text in texts]

    def end(self, start: int) -> int:
        """Return the index after the example that begins at `start`; `start` if none begins there.

        An example ends where its brackets or tags are closed. If they are never closed, the example ends
        before the first paragraph that looks like neither XML nor JSON.
        """
        text = self._texts[start]
        if _XML_START.match(text):
            end = self._closed(start, self._tags, (">",))
        elif _JSON_START.match(text):
            end = self._closed(start, self._brackets, ("}", "]", ";"))
        else:
            return start
        if end > start:
            return end
        end = start
        while end < len(self._texts) and _CODE_LINE.match(self._texts[end]):
            end += 1
        while end > start and not self._texts[end - 1].strip():
            end -= 1
        return end if end > start + 1 else start

    def _closed(self, start: int, opened: list[int], ends: tuple[str, ...]) -> int:
        """Return the index after the paragraph in which everything opened since `start` is closed.

        `opened` has, for each paragraph, the number of opening brackets or tags minus that of closing ones.
        The closing paragraph ends in one of `ends`. The result is `start` if there is no such paragraph, or
        if the paragraphs up to it look like prose.
        """
        depth = 0
        for index in range(start, min(len(self._texts), start + MAX_EXAMPLE_LINES)):
            text = self._texts[index].rstrip()
            depth += opened[index]
            if depth <= 0 and text.endswith(ends) and not text.endswith("?>"):
                return start if _is_prose(self._texts[start : index + 1]) else index + 1
        return start


def _is_prose(lines: Sequence[str]) -> bool:
    """Return whether the lines are not code.

    Prose contains no mark such as `</` or `{`, or most of its lines do not look like XML or JSON.
    """
    text = "\n".join(lines)
    has_markup = any(mark in text for mark in (":", "：", "</", "/>", "{"))
    return not has_markup or sum(1 for line in lines if _CODE_LINE.match(line)) * 2 < len(lines)


def is_code(lines: Sequence[str]) -> bool:
    """Return whether the lines of a table with one cell are XML, JSON or code."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return False
    if Examples(["\n".join(filled)]).end(0) or Examples(filled).end(0) * 2 >= len(filled):
        return True
    return len(filled) > 1 and sum(1 for line in filled if _STATEMENT.match(line)) * 3 >= 2 * len(
        filled
    )


def _open_brackets(text: str) -> int:
    """Return the number of opening brackets minus that of closing brackets, outside of strings."""
    outside = re.sub(r"\"[^\"\n]*\"", "", text.replace('\\"', ""))
    return sum(map(outside.count, "{[")) - sum(map(outside.count, "}]"))


def _open_tags(text: str) -> int:
    """Return the number of opening tags minus that of closing tags."""
    opened = len(re.findall(r"<[A-Za-z_]", text))
    return opened - text.count("</") - text.count("/>")
