"""Extraction of sentences, list items and table rows from a chunk's Markdown, for quotes in an answer."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingestion.text.markdown_blocks import parse_blocks, parse_list_items, parse_table, plain_text
from ingestion.text.words import index_words
from prompts.user_text import user_text
from schemas.document import Chunk

MAX_EXCERPT_CHARS = 240
"""Maximum length of an excerpt, in characters."""

_SENTENCE_END = re.compile(r"(?<=[。！？；])\s*|(?<=[.!?])\s+(?=[A-Z`\"'(])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_TAG = re.compile(r"</?[A-Za-z][^>`]*>|\{#[^}]*\}")


@dataclass(frozen=True)
class ParameterRow:
    """A row of the parameter table in a document rendered from an `api_docs` source."""

    name: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True)
class ErrorRow:
    """A row of the error table in a document rendered from an `api_docs` source."""

    code: str
    message: str
    cause: str
    remedy: str


def parameter_rows(chunk: Chunk) -> list[ParameterRow]:
    """Return the parameters in a chunk of one of the kinds with a parameter table."""
    yes = user_text(chunk.language).api_document.yes
    rows = (row for row in parse_table(chunk.body)[1:] if len(row) >= 4)
    return [ParameterRow(row[0], row[1], row[2] == yes, row[3]) for row in rows]


def error_rows(chunk: Chunk) -> list[ErrorRow]:
    """Return the errors of a chunk of kind `error_codes`."""
    return [ErrorRow(*row[:4]) for row in parse_table(chunk.body)[1:] if len(row) >= 4]


def permission_rows(chunk: Chunk) -> list[tuple[str, str]]:
    """Return the names and descriptions of the permissions in a chunk of kind `permission_package`."""
    return [(row[0], row[1]) for row in parse_table(chunk.body)[1:] if len(row) >= 2]


def required_rows(rows: list[ParameterRow]) -> list[ParameterRow]:
    """Return the required parameters; a nested one is included only if its parent is required too."""
    required = {row.name for row in rows if row.required}
    return [
        row
        for row in rows
        if row.required
        and ("." not in row.name or row.name.rpartition(".")[0].removesuffix("[]") in required)
    ]


def method_of(chunk: Chunk) -> str:
    """Return the HTTP method in a chunk of kind `request_url`, or an empty string if there is none."""
    prefix = f"{user_text(chunk.language).api_document.method}: "
    items = (plain_text(item) for item in parse_list_items(chunk.body))
    return next((item.removeprefix(prefix) for item in items if item.startswith(prefix)), "")


def table_rows(chunk: Chunk) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each row of the chunk's first table, together with the table's header."""
    header, *rows = parse_table(chunk.body) or [[]]
    for row in rows:
        yield header, [inline_text(cell) for cell in row]


def ordered_items(chunk: Chunk) -> list[str]:
    """Return the items of the chunk's first numbered list."""
    for block in parse_blocks(chunk.body):
        if block.kind == "list" and block.text.lstrip()[:1].isdigit():
            return [shorten(inline_text(item)) for item in parse_list_items(block.text)]
    return []


def sentences(chunk: Chunk) -> list[str]:
    """Return the sentences in the chunk's paragraphs, and the list items if the chunk is prose."""
    texts: list[str] = []
    for block in parse_blocks(chunk.body):
        if block.kind == "paragraph":
            texts.extend(_SENTENCE_END.split(inline_text(block.text.replace("\n", " "))))
        elif block.kind == "list" and chunk.kind == "prose":
            texts.extend(inline_text(item) for item in parse_list_items(block.text))
    return [shorten(sentence) for sentence in texts if _is_quotable(sentence)]


def _is_quotable(sentence: str) -> bool:
    """Return whether the sentence can stand alone, and does not introduce code or a table."""
    return len(sentence.strip()) > 1 and not sentence.rstrip().endswith((":", "："))


def inline_text(text: str) -> str:
    """Return `text` without link targets, tags and bold marks; code spans are kept."""
    text = _TAG.sub("", _LINK.sub(r"\1", text)).replace("**", "")
    return " ".join(text.replace("```", " ").split())


def shorten(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Truncate `text` to about `max_chars` characters, after a sentence or else after a word."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        if len(kept) + len(sentence) > max_chars:
            break
        kept += sentence if not kept or not kept[-1].isascii() else f" {sentence}"
    return kept or text[:max_chars].rsplit(" ", 1)[0].rstrip("，,、") + "…"


def relevance(text: str, weights: Mapping[str, float]) -> float:
    """Return the sum of the weights of the distinct stems in `text`."""
    return sum(weights.get(word, 0.0) for word in set(index_words(text)))
