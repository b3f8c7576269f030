"""Sentences, items and rows out of a chunk's Markdown, short enough to stand in an answer."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingestion.text.markdown_blocks import parse_blocks, parse_list_items, parse_table, plain_text
from ingestion.text.words import index_words
from prompts.user_text import user_text
from schemas.document import Chunk

MAX_EXCERPT_CHARS = 240
"""Characters of an excerpt; a longer one is cut after a sentence, or at a word."""

_SENTENCE_END = re.compile(r"(?<=[。！？；])\s*|(?<=[.!?])\s+(?=[A-Z`\"'(])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_TAG = re.compile(r"</?[A-Za-z][^>`]*>|\{#[^}]*\}")


@dataclass(frozen=True)
class ParameterRow:
    """A row of a parameter table that `api_docs` rendered."""

    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True)
class ErrorRow:
    """A row of an error table that `api_docs` rendered."""

    code: str
    message: str
    cause: str
    remedy: str


def parameter_rows(chunk: Chunk) -> list[ParameterRow]:
    """The parameters of a chunk that holds a parameter table."""
    yes = user_text(chunk.language).api_document.yes
    rows = (row for row in parse_table(chunk.body)[1:] if len(row) >= 4)
    return [ParameterRow(row[0], row[1], row[2] == yes, row[3]) for row in rows]


def error_rows(chunk: Chunk) -> list[ErrorRow]:
    """The errors of a chunk of kind `error_codes`."""
    return [ErrorRow(*row[:4]) for row in parse_table(chunk.body)[1:] if len(row) >= 4]


def permission_rows(chunk: Chunk) -> list[tuple[str, str]]:
    """Name and description of each permission package of a chunk of kind `permission_package`."""
    return [(row[0], row[1]) for row in parse_table(chunk.body)[1:] if len(row) >= 2]


def required_rows(rows: list[ParameterRow]) -> list[ParameterRow]:
    """The parameters that a call cannot do without: required, and so is what they lie in."""
    required = {row.name for row in rows if row.required}
    return [
        row
        for row in rows
        if row.required
        and ("." not in row.name or row.name.rpartition(".")[0].removesuffix("[]") in required)
    ]


def method_of(chunk: Chunk) -> str:
    """The HTTP method that a chunk of kind `request_url` states; empty when it states none."""
    prefix = f"{user_text(chunk.language).api_document.method}: "
    items = (plain_text(item) for item in parse_list_items(chunk.body))
    return next((item.removeprefix(prefix) for item in items if item.startswith(prefix)), "")


def table_rows(chunk: Chunk) -> Iterator[tuple[list[str], list[str]]]:
    """Each row of the chunk's first table, with the table's header."""
    header, *rows = parse_table(chunk.body) or [[]]
    for row in rows:
        yield header, [inline_text(cell) for cell in row]


def ordered_items(chunk: Chunk) -> list[str]:
    """The items of the chunk's first numbered list."""
    for block in parse_blocks(chunk.body):
        if block.kind == "list" and block.text.lstrip()[:1].isdigit():
            return [shorten(inline_text(item)) for item in parse_list_items(block.text)]
    return []


def sentences(chunk: Chunk) -> list[str]:
    """The sentences of the chunk's paragraphs and list items, in order; no code and no tables."""
    found: list[str] = []
    for block in parse_blocks(chunk.body):
        if block.kind == "paragraph":
            found.extend(_SENTENCE_END.split(inline_text(block.text.replace("\n", " "))))
        elif block.kind == "list" and chunk.kind == "prose":
            found.extend(inline_text(item) for item in parse_list_items(block.text))
    return [shorten(sentence) for sentence in found if _is_quotable(sentence)]


def _is_quotable(sentence: str) -> bool:
    """Whether it is more than an introduction to code or a table that is not quoted."""
    return len(sentence.strip()) > 1 and not sentence.rstrip().endswith((":", "："))


def inline_text(text: str) -> str:
    """Inline Markdown for an answer: code spans stay, links become their text, emphasis goes."""
    text = _TAG.sub("", _LINK.sub(r"\1", text)).replace("**", "")
    return " ".join(text.replace("```", " ").split())


def shorten(text: str, longest: int = MAX_EXCERPT_CHARS) -> str:
    """`text` of at most `longest` characters, cut after a sentence where there is one to cut after."""
    text = text.strip()
    if len(text) <= longest:
        return text
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        if len(kept) + len(sentence) > longest:
            break
        kept += sentence if not kept or not kept[-1].isascii() else f" {sentence}"
    return kept or text[:longest].rsplit(" ", 1)[0].rstrip("，,、") + "…"


def relevance(text: str, weights: Mapping[str, float]) -> float:
    """How much of what a question's words weigh occurs in `text`; `weights` is by stem."""
    return sum(weights.get(word, 0.0) for word in set(index_words(text)))
