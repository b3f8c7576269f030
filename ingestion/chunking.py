"""Splits documents into chunks: one per section, or several if the section is long.

Sections and chunks are rendered as Markdown with the Jinja2 templates in `templates`.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ingestion.text.language import estimate_tokens
from ingestion.text.markdown_blocks import MarkdownBlock, code_fence, parse_blocks
from schemas.document import Chunk, Section, SourceDocument

CHUNKER_VERSION = 4
"""Version of the chunking. Increment it whenever the chunks change; collections must then be rebuilt."""

API_SECTION_FACTOR = 6
"""Factor by which `max_tokens` of `chunk_document` is multiplied for sections that describe an API."""

MAX_BLOCK_CHARS = 12_000
"""Length in characters above which a Markdown block, such as a paragraph, a list or a table, is split.

Milvus limits text to 65,535 bytes, and a character has at most 4 bytes. Most tables are split by their
number of tokens instead: see `_split_blocks`.
"""

MAX_CHUNK_WEIGHT = 8_000
"""Maximum weight of a chunk of several blocks, because Milvus limits text to 65,535 bytes.

The weight of a block is about its number of tokens (see `_weight`). It is at least a fifth of the block's
bytes, so the blocks of a chunk have at most 40,000 bytes. It is also at least 1, so a chunk has at most
8,000 blocks. The blank lines between the blocks, with 2 bytes each, have at most 16,000 bytes.
"""

MAX_INTRODUCTION_CHARS = 150
"""Maximum length of a paragraph that stays with the list, table or code below it, in characters."""

_OPENING_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_TABLE_OR_CODE = re.compile(r"\s*(?:[-*+]\s|\d{1,9}[.)]\s|\||`{3}|~{3})")
"""Matches the start of a list, a table or a code block."""

_MAY_BE_TABLE = re.compile(r"[^\n]*\n[ \t]*[|:-][ \t|:-]*(?:\n|\Z)")
"""Matches a text whose second line may be the delimiter row of a table, such as `| --- | --- |`."""


def chunk_document(document: SourceDocument, max_tokens: int) -> Iterator[Chunk]:
    """Yield the chunks of `document`. Their ids are stable across runs.

    `max_tokens` is a soft limit for chunks of prose. Chunks of API sections may be up to
    `API_SECTION_FACTOR` times as long.
    """
    position = 0
    occurrences: Counter[tuple[str, ...]] = Counter()
    for section in document.sections:
        key = (section.kind, *section.heading)
        occurrences[key] += 1
        for part, body in enumerate(_split_section(section, max_tokens)):
            identity = (document.source, document.id, *key, str(occurrences[key]), str(part))
            yield _build_chunk(document, section, body, position, _digest(*identity)[:32])
            position += 1


def _build_chunk(
    document: SourceDocument, section: Section, body: str, position: int, chunk_id: str
) -> Chunk:
    heading = " > ".join(section.heading)
    text = load_template("chunk").render(
        front_matter=_front_matter(document, section),
        title=document.title,
        section=heading,
        body=body,
    )
    fields = {
        "source": document.source,
        "document_id": document.id,
        "title": document.title,
        "section": heading,
        "kind": section.kind,
        "position": position,
        "language": document.language,
        "service_id": document.service_id,
        "api_id": document.api_id,
        "api_name": document.api_name,
        "api_url": document.api_url,
        "page_url": section.page_url or document.page_url,
        "metadata": document.metadata | section.metadata,
        "body": body,
        "text": text,
    }
    # The fingerprint of the document's file is not part of the hash. It changes whenever the file changes,
    # even if this chunk stays the same.
    content_hash = _digest(repr(sorted(fields.items())))
    return Chunk(id=chunk_id, content_hash=content_hash, fingerprint=document.fingerprint, **fields)


def _front_matter(document: SourceDocument, section: Section) -> str:
    keys = {
        "serviceId": document.service_id,
        "apiId": document.api_id,
        "apiName": document.api_name,
        "apiUrl": document.api_url,
        "pageUrl": section.page_url or document.page_url,
        **document.metadata,
        **section.metadata,
    }
    present = {key: value for key, value in keys.items() if value}
    return _dump_yaml(tuple(present.items()))


@lru_cache(maxsize=16)
def _dump_yaml(items: tuple[tuple[str, str], ...]) -> str:
    # Cached, because writing YAML is slow and most chunks of a document have the same front matter.
    if not items:
        return ""
    return yaml.safe_dump(dict(items), allow_unicode=True, sort_keys=False)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _split_section(section: Section, max_tokens: int) -> Iterator[str]:
    """Yield the section's body in parts, split between blocks if possible.

    A short paragraph stays with the list, table or code below it, which may be unclear without it.
    """
    factor = 1 if section.kind == "prose" else API_SECTION_FACTOR
    max_weight = min(max_tokens * factor, MAX_CHUNK_WEIGHT)
    if not section.body.strip():
        return
    if len(section.body) <= MAX_BLOCK_CHARS and _weight(section.body) <= max_weight:
        yield section.body
        return
    part: list[str] = []
    part_weight = 0
    for piece in _split_blocks(_blocks(section, max_weight), max_weight):
        weight = _weight(piece)
        if part and part_weight + weight > max_weight:
            fits = len(part) > 1 and _weight(part[-1]) + weight <= max_weight
            carried = [part.pop()] if fits and _introduces(part[-1], piece) else []
            yield "\n\n".join(part)
            part, part_weight = carried, sum(map(_weight, carried))
        part.append(piece)
        part_weight += weight
    if part:
        yield "\n\n".join(part)


def _introduces(block: str, following: str) -> bool:
    """Return whether `block` is a short paragraph above a list, a table or a code block."""
    is_paragraph = not _LIST_TABLE_OR_CODE.match(block)
    is_short = len(block) <= MAX_INTRODUCTION_CHARS
    return is_paragraph and is_short and bool(_LIST_TABLE_OR_CODE.match(following))


def _blocks(section: Section, max_weight: int) -> Iterator[MarkdownBlock]:
    """Yield the blocks of the section's body.

    The reader of the document may have stored the texts of the blocks in `section.blocks`. Then only texts
    that may have to be split are parsed. Otherwise, the whole body is parsed.
    """
    if not section.blocks:
        yield from parse_blocks(section.body)
    for text in section.blocks:
        is_large_table = _MAY_BE_TABLE.match(text) and _weight(text) > max_weight
        if len(text) > MAX_BLOCK_CHARS or is_large_table:
            yield from parse_blocks(text)
        else:
            yield MarkdownBlock("other", text)


def _split_blocks(blocks: Iterable[MarkdownBlock], max_weight: int) -> Iterator[str]:
    """Yield the texts of `blocks`. Large blocks are split:

    - A table whose `_weight` exceeds `max_weight` is split between rows. If it has very long rows, it is
      treated like a block that is not a table.
    - A block that is not a table is split between lines if it has more than `MAX_BLOCK_CHARS` characters.
    """
    for block in blocks:
        if block.kind == "table" and _weight(block.text) <= max_weight:
            yield block.text
        elif block.kind == "table" and _has_short_rows(block.text):
            yield from _split_table(block.text, max_weight)
        elif len(block.text) > MAX_BLOCK_CHARS:
            yield from _split_lines(block)
        else:
            yield block.text


def _has_short_rows(table: str) -> bool:
    """Return whether a table has rows and each line has at most `MAX_BLOCK_CHARS` / 2 characters."""
    lines = table.split("\n")
    return len(lines) > 2 and max(map(len, lines)) <= MAX_BLOCK_CHARS // 2


def _split_table(table: str, max_weight: int) -> Iterator[str]:
    """Yield the rows in groups. Each group is a table of its own, which begins with the header."""
    lines = table.split("\n")
    header, rows = lines[:2], lines[2:]
    yield from _group_lines(rows, max_weight - sum(map(_weight, header)), header, [])


def _split_lines(block: MarkdownBlock) -> Iterator[str]:
    """Yield a long block in groups of lines. A line of more than `MAX_BLOCK_CHARS` characters is cut up.

    Each group of a fenced code block begins with the block's opening fence and ends with a closing fence.
    """
    lines = [part for line in block.text.split("\n") for part in _cut_line(line)]
    opening = _OPENING_FENCE.match(lines[0])
    if block.kind == "fence" and opening:
        fence = opening[1]
        last_line = lines[-1].strip()
        is_closed = last_line.startswith(fence) and not last_line.strip(fence[0])
        inner = lines[1:-1] if is_closed else lines[1:]
        yield from _group_lines(inner, MAX_BLOCK_CHARS // 4, [lines[0]], [fence])
    else:
        yield from _group_lines(lines, MAX_BLOCK_CHARS // 4, [], [])


def _cut_line(line: str) -> list[str]:
    """Return the parts of a line, or the line itself if it has at most `MAX_BLOCK_CHARS` characters."""
    starts = range(0, max(len(line), 1), MAX_BLOCK_CHARS)  # an empty line is one part
    return [line[start : start + MAX_BLOCK_CHARS] for start in starts]


def _group_lines(
    lines: list[str], max_weight: int, head: list[str], tail: list[str]
) -> Iterator[str]:
    """Yield `lines` in groups, each with `head` before it and `tail` after it.

    `max_weight` limits the weight of a group without `head` and `tail`. A group of one line may exceed it.
    """
    group: list[str] = []
    group_weight = 0
    for line in lines:
        weight = _weight(line)
        if group and group_weight + weight > max_weight:
            yield "\n".join([*head, *group, *tail])
            group, group_weight = [], 0
        group.append(line)
        group_weight += weight
    if group:
        yield "\n".join([*head, *group, *tail])


def _weight(text: str) -> int:
    """Return the estimated number of tokens or a fifth of the bytes, whichever is larger; at least 1.

    A limit on the weight therefore limits the bytes as well.
    """
    return max(1, estimate_tokens(text), math.ceil(len(text.encode()) / 5))


@lru_cache
def load_template(name: str) -> Template:
    """Return the template `templates/<name>.md.j2`."""
    environment = Environment(
        loader=PackageLoader(__package__),
        undefined=StrictUndefined,
        autoescape=False,
    )
    environment.filters.update(cell=cell, pretty=pretty, fenced=fenced)
    return environment.get_template(f"{name}.md.j2")


def cell(value: object) -> str:
    """Return `value` as the text of a Markdown table cell."""
    return " ".join(str(value).split()).replace("|", "\\|")


def pretty(value: object) -> str:
    """Return `value` as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def fenced(value: object) -> str:
    """Return `value` as a fenced code block. A string is stripped; other values become JSON."""
    if not isinstance(value, str):
        return f"```json\n{pretty(value)}\n```"
    return code_fence(value.strip())
