"""Fenced code in Markdown: of a program only what it says to a platform is left."""

import re

from runnables.grounding.standard_names import METHODS
from runnables.grounding.targets import PATH, URL

_CODE_FENCE = re.compile(r"\s{0,3}(?:```+|~~~+)\s*(\w*)")
_DATA = {
    "", "json", "json5", "jsonc", "http", "text", "txt", "yaml", "yml", "xml", "md", "markdown",
}  # fmt: skip
"""What fences are called that hold no program."""

_TOLD = re.compile(rf"\"[^\"\n]*\"|'[^'\n]*'|\b(?:{METHODS})\b|{URL}|{PATH}", re.ASCII)
"""Strings, methods and addresses."""


def without_programs(text: str) -> str:
    """`text`, of whose fenced program code only strings, methods and addresses are left, in their places.

    What a program calls its own variables is no fact.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    language: str | None = None
    for line in text.split("\n"):
        fence = _CODE_FENCE.match(line)
        if fence:
            language = fence[1].lower() if language is None else None
        keeps = language is None or language in _DATA
        lines.append(line if keeps and not fence else _told(line))
    return "\n".join(lines)


def _told(line: str) -> str:
    kept = [" "] * len(line)
    for match in _TOLD.finditer(line):
        kept[match.start() : match.end()] = match[0]
    return "".join(kept)
