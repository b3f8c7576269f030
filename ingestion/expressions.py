"""Which chunks are meant, in Milvus's filter language."""

from collections.abc import Iterable, Sequence

from ingestion.milvus import literal
from schemas.language import Language
from schemas.question import Filters

ChunkPlace = tuple[str, str, int]
"""Where a chunk stands: source and id of its document, and its position there."""


def with_ids(ids: Sequence[str]) -> str:
    """The chunks with these ids."""
    return f"id in {literal(list(ids))}"


def of_documents(documents: Iterable[tuple[str, str]]) -> str:
    """Those of the documents (source, id); empty for none."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)})"
        for source, document in documents
    )


def at_places(places: Iterable[ChunkPlace]) -> str:
    """Those at these places; empty for none."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)} "
        f"and position == {position})"
        for source, document, position in places
    )


def of_apis(urls: Sequence[str], names: Sequence[str]) -> str:
    """Those of the APIs with one of these urls or names."""
    return f"api_url in {literal(list(urls))} or api_name in {literal(list(names))}"


def in_language(language: Language) -> str:
    """Those of documents in this language."""
    return f"language == {literal(language)}"


def passing(filters: Filters) -> str:
    """Those that `filters` let through; empty for all."""
    wanted = [("service_id", filters.service), ("source", filters.source)]
    metadata = [(f"metadata[{literal(name)}]", value) for name, value in filters.metadata.items()]
    said = [(name, value) for name, value in [*wanted, *metadata] if value is not None]
    return " and ".join(f"{name} == {literal(value)}" for name, value in said)
