"""Removal of program code, or of sentences that contain given facts, from Markdown."""

import re
from collections.abc import Iterator, Sequence

from runnables.grounding.addresses import PATH, URL
from runnables.grounding.citations import strip_citations
from runnables.grounding.names import METHODS

_CODE_FENCE = re.compile(r"\s{0,3}(?:```+|~~~+)\s*(\w*)")
_DATA_LANGUAGES = {
    "", "json", "json5", "jsonc", "http", "text", "txt", "yaml", "yml", "xml", "md", "markdown",
}  # fmt: skip
"""Languages of code fences that contain data or text instead of a program."""

_API_TOKEN = re.compile(rf"\"[^\"\n]*\"|'[^'\n]*'|\b(?:{METHODS})\b|{URL}|{PATH}", re.ASCII)
"""A string, an HTTP method or an address, which are the parts of a program that concern the API."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INDIVISIBLE = re.compile(r"\s*(?:[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})")
"""Start of a list item, a table row or a fence."""

_NO_SENTENCE_END = re.compile(
    rf"`[^`\n]+`|{URL}(?<=[A-Za-z0-9/_=&-])"
    r"|\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Fig|Dr|Mr|Ms|Mrs|[A-Z])\.(?=\s)"
)
"""Code spans, URLs and abbreviations, whose dots do not end a sentence; a dot after a URL does."""

_MARKS = r"(?:\s{0,3}\[\d{1,3}\])*"
_SENTENCE_END = re.compile(
    rf"(?:[。！？；…]+[\"'”’」』）)]*{_MARKS}|(?<![.!?])[.!?]++[\"'”’)]*{_MARKS}(?=\s|$))\s*|\n\s*\n"
)
"""The end of a sentence, including closing quotes, brackets, citation marks and whitespace after it."""


def blank_program_code(text: str) -> str:
    """Return `text` with fenced program code blanked out, except strings, HTTP methods and addresses.

    Variable names in program code are not claims about the platform.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    language: str | None = None
    for line in text.split("\n"):
        fence = _CODE_FENCE.match(line)
        if fence:
            language = fence[1].lower() if language is None else None
        is_kept = not fence and (language is None or language in _DATA_LANGUAGES)
        lines.append(line if is_kept else _blank_line(line))
    return "\n".join(lines)


def _blank_line(line: str) -> str:
    blanked = [" "] * len(line)
    for match in _API_TOKEN.finditer(line):
        blanked[match.start() : match.end()] = match[0]
    return "".join(blanked)


def remove_sentences_with(statement: str, facts: Sequence[str]) -> str:
    """Return `statement` without the sentences that contain one of `facts`.

    A code fence, a list item and a table row count as one sentence each. Citation marks belong to the
    sentence before them. The result is empty if no word is left.
    """
    patterns = [
        re.compile(rf"(?<![A-Za-z0-9_]){re.escape(fact)}(?![A-Za-z0-9_])") for fact in facts if fact
    ]
    kept = [
        sentence
        for sentence in _sentences(statement)
        if not any(pattern.search(sentence) for pattern in patterns)
    ]
    text = "".join(kept).strip()
    return text if re.search(r"\w", strip_citations(text)) else ""


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of `text`, each with the separators after it; joined, they equal `text`."""
    prose: list[str] = []
    for block in _blocks(text):
        if _INDIVISIBLE.match(block):
            yield from _split_prose("".join(prose))
            prose = []
            yield block
        else:
            prose.append(block)
    yield from _split_prose("".join(prose))


def _blocks(text: str) -> Iterator[str]:
    """Yield each code fence as a whole and each other line, including line ends."""
    fence = ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        marker = _FENCE.match(line)
        lines.append(line)
        if not fence and marker:
            fence = marker[1]
        elif fence and marker and marker[1].startswith(fence) and not line.strip(" `~\r\n"):
            fence = ""
        if not fence:
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines)


def _split_prose(prose: str) -> Iterator[str]:
    masked = _NO_SENTENCE_END.sub(lambda match: "x" * len(match[0]), prose)
    start = 0
    for end in _SENTENCE_END.finditer(masked):
        yield prose[start : end.end()]
        start = end.end()
    if start < len(prose):
        yield prose[start:]
