"""Filter expressions of Milvus that select chunks."""

import json
import re
from collections.abc import Iterable, Sequence

from schemas.choices import Language
from schemas.question import Filters

ChunkPosition = tuple[str, str, int]
"""Source, document id and position of a chunk."""

_JSON_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")


def literal(value: object) -> str:
    """Return `value` as a literal: JSON without the escapes that Milvus does not support."""
    return _JSON_ESCAPE.sub(_supported_escape, json.dumps(value, ensure_ascii=False))


def _supported_escape(escape: re.Match[str]) -> str:
    is_supported = escape[1] in ('"', "\\", "n", "r", "t")
    return escape[0] if is_supported else str(json.loads(f'"{escape[0]}"'))


def with_ids(ids: Sequence[str]) -> str:
    """Select the chunks with these ids."""
    return f"id in {literal(list(ids))}"


def of_documents(documents: Iterable[tuple[str, str]]) -> str:
    """Select the chunks of these documents (source, id); empty for no documents."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)})"
        for source, document in documents
    )


def at_positions(positions: Iterable[ChunkPosition]) -> str:
    """Select the chunks at these positions; empty for no positions."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)} "
        f"and position == {position})"
        for source, document, position in positions
    )


def of_apis(urls: Sequence[str], names: Sequence[str]) -> str:
    """Select the chunks of the APIs with one of these urls or names."""
    return f"api_url in {literal(list(urls))} or api_name in {literal(list(names))}"


def in_language(language: Language) -> str:
    """Select the chunks of documents in `language`."""
    return f"language == {literal(language)}"


def matching(filters: Filters) -> str:
    """Select the chunks that match `filters`; empty for all chunks."""
    fields = [("service_id", filters.service), ("source", filters.source)]
    metadata = [(f"metadata[{literal(name)}]", value) for name, value in filters.metadata.items()]
    conditions = [(name, value) for name, value in [*fields, *metadata] if value is not None]
    return " and ".join(f"{name} == {literal(value)}" for name, value in conditions)
