"""SourceDocument -> Chunks: one a section, long prose split between blocks."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator

import yaml

from ingestion.sources.templates import load_template
from ingestion.text.language import estimate_tokens
from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks
from schemas.document import Chunk, Section, SourceDocument

CHUNKER_VERSION = 2
"""Raise it when the same document would give other chunks: collections made before are refused."""

API_SECTION_FACTOR = 6
"""A section of an API document is one chunk up to this many times the cap of prose."""

HARD_LIMIT = 12_000
"""Characters after which even a code fence is split; a Milvus text field holds 65,535 bytes."""

MAX_WEIGHT = 8_000
"""No chunk of several blocks is heavier, whatever the cap: at most 56,000 bytes, with line ends."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def chunk_document(document: SourceDocument, max_tokens: int) -> Iterator[Chunk]:
    """The chunks of `document`, with stable ids; `max_tokens` is the soft cap of a prose chunk."""
    position = 0
    seen: Counter[tuple[str, ...]] = Counter()
    for section in document.sections:
        key = (section.kind, *section.heading)
        seen[key] += 1
        for part, body in enumerate(_split(section, max_tokens)):
            identity = (document.source, document.id, *key, str(seen[key]), str(part))
            yield _chunk(document, section, body, position, _digest(*identity)[:32])
            position += 1


def _chunk(
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
    return yaml.safe_dump(present, allow_unicode=True, sort_keys=False) if present else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _split(section: Section, max_tokens: int) -> Iterator[str]:
    """The section's body in parts of about `max_tokens`, cut between blocks only."""
    factor = 1 if section.kind == "prose" else API_SECTION_FACTOR
    cap = min(max_tokens * factor, MAX_WEIGHT)
    if not section.body.strip():
        return
    if len(section.body) <= HARD_LIMIT and _weight(section.body) <= cap:
        yield section.body
        return
    part: list[str] = []
    size = 0
    for piece in _pieces(parse_blocks(section.body), cap):
        weight = _weight(piece)
        if part and size + weight > cap:
            yield "\n\n".join(part)
            part, size = [], 0
        part.append(piece)
        size += weight
    if part:
        yield "\n\n".join(part)


def _pieces(blocks: list[MarkdownBlock], cap: int) -> Iterator[str]:
    """Blocks, the oversize ones of a kind that can be cut already cut."""
    for block in blocks:
        if block.kind == "table" and _weight(block.text) <= cap:
            yield block.text
        elif block.kind == "table" and max(map(len, block.text.split("\n"))) <= HARD_LIMIT // 2:
            yield from _split_table(block.text, cap)
        elif len(block.text) > HARD_LIMIT:
            yield from _split_lines(block)
        else:
            yield block.text


def _split_table(table: str, cap: int) -> Iterator[str]:
    """Runs of rows, each under the table's header."""
    lines = table.split("\n")
    header, rows = lines[:2], lines[2:]
    yield from _pack(rows, cap - sum(map(_weight, header)), header, [])


def _split_lines(block: MarkdownBlock) -> Iterator[str]:
    """Runs of lines; a fence is opened and closed again around each."""
    lines = [line[i : i + HARD_LIMIT] for line in block.text.split("\n")
             for i in range(0, max(len(line), 1), HARD_LIMIT)]  # fmt: skip
    fence = _FENCE.match(lines[0])
    if block.kind == "fence" and fence:
        last = lines[-1].strip()
        closed = last.startswith(fence[1]) and not last.strip(fence[1][0])
        inner = lines[1:-1] if closed else lines[1:]
        yield from _pack(inner, HARD_LIMIT // 4, [lines[0]], [fence[1]])
    else:
        yield from _pack(lines, HARD_LIMIT // 4, [], [])


def _pack(lines: list[str], cap: int, head: list[str], tail: list[str]) -> Iterator[str]:
    """Runs of `lines` of at most `cap` in weight (one line at least), between `head` and `tail`."""
    run: list[str] = []
    size = 0
    for line in lines:
        weight = _weight(line)
        if run and size + weight > cap:
            yield "\n".join([*head, *run, *tail])
            run, size = [], 0
        run.append(line)
        size += weight
    if run:
        yield "\n".join([*head, *run, *tail])


def _weight(text: str) -> int:
    """The tokens of `text`, but at least 1, and at least 1 for 5 bytes: a cap in tokens bounds bytes."""
    return max(1, estimate_tokens(text), math.ceil(len(text.encode()) / 5))
