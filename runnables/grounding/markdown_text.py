"""Fenced code in Markdown: of a program only what it says to a platform is left.
A statement cut into sentences, for those to go that state what is not so.
"""

import re
from collections.abc import Iterator, Sequence

from runnables.grounding.addresses import PATH, URL
from runnables.grounding.citations import without_marks
from runnables.grounding.names import METHODS

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


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_WHOLE = re.compile(r"\s*(?:[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})")
"""How a list item, a row and a fence begin."""

_UNCUT = re.compile(
    rf"`[^`\n]+`|{URL}(?<=[A-Za-z0-9/_=&-])"
    r"|\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Fig|Dr|Mr|Ms|Mrs|[A-Z])\.(?=\s)"
)
"""Where a full stop ends no sentence: in code spans, urls and abbreviations. One behind a url does."""

_MARKS = r"(?:\s{0,3}\[\d{1,3}\])*"
_SENTENCE_END = re.compile(
    rf"(?:[。！？；…]+[\"'”’」』）)]*{_MARKS}|(?<![.!?])[.!?]++[\"'”’)]*{_MARKS}(?=\s|$))\s*|\n\s*\n"
)
"""With the quotes and brackets that it closes, its citation marks and the blanks behind."""


def remove_sentences_with(statement: str, facts: Sequence[str]) -> str:
    """`statement` without the sentences that state one of `facts`; empty when nothing is left.

    A Markdown fence, a list item and a row of a table are one sentence each; citation marks stay
    or go with the sentence they follow.
    """
    wanted = [
        re.compile(rf"(?<![A-Za-z0-9_]){re.escape(fact)}(?![A-Za-z0-9_])") for fact in facts if fact
    ]
    kept = [s for s in _sentences(statement) if not any(w.search(s) for w in wanted)]
    text = "".join(kept).strip()
    return text if re.search(r"\w", without_marks(text)) else ""


def _sentences(text: str) -> Iterator[str]:
    """The sentences of `text` with what stands between them: joined, they are `text` again."""
    prose: list[str] = []
    for block in _blocks(text):
        if _WHOLE.match(block):
            yield from _cut("".join(prose))
            prose = []
            yield block
        else:
            prose.append(block)
    yield from _cut("".join(prose))


def _blocks(text: str) -> Iterator[str]:
    """Each line, and each fence as one, with their ends."""
    fence = ""
    held: list[str] = []
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        held.append(line)
        if not fence and mark:
            fence = mark[1]
        elif fence and mark and mark[1].startswith(fence) and not line.strip(" `~\r\n"):
            fence = ""
        if not fence:
            yield "".join(held)
            held = []
    if held:
        yield "".join(held)


def _cut(prose: str) -> Iterator[str]:
    """The sentences of what is no list, table or fence."""
    shown = _UNCUT.sub(lambda match: "x" * len(match[0]), prose)
    start = 0
    for end in _SENTENCE_END.finditer(shown):
        yield prose[start : end.end()]
        start = end.end()
    if start < len(prose):
        yield prose[start:]
