"""Finds the operations below `paths` of a description."""

from collections.abc import Iterator

from ingestion.sources.openapi.document import METHODS
from ingestion.sources.openapi.operations import PathOperation
from ingestion.sources.openapi.references import Node, quote_text
from schemas.errors import SourceError


def refusal(subject: str, reason: str) -> SourceError:
    """Return the error for a refused path or operation; `subject` is shortened for the message."""
    return SourceError(f"{quote_text(subject)[1:-1]}: {reason}")


def path_operations(root: Node) -> Iterator[PathOperation | SourceError]:
    """Yield every operation, and a SourceError for each path that cannot be read."""
    for path, item in root["paths"].items():
        if path.startswith("x-") or item.value is None:
            continue
        if not item.is_object:
            yield refusal(path, "contains no operations")
            continue
        try:
            target = item.resolve()
        except SourceError as error:
            yield refusal(path, str(error))
            continue
        yield from _operations_of_path(path, item, target)


def _operations_of_path(path: str, item: Node, target: Node) -> Iterator[PathOperation]:
    """Yield the operations of a path item; those next to its `$ref` override the target's."""
    seen: set[str] = set()
    for holder in (item, target):
        for key, node in holder.items():
            method = key.upper()
            if method in METHODS and method not in seen:
                seen.add(method)
                yield PathOperation(method, path, holder, node)


def parameter_ids(operation: Node) -> Iterator[int]:
    """Yield the object ids of the parameters that `operation` declares or refers to."""
    for each in operation["parameters"].elements():
        try:
            yield id(each.resolve().value)
        except SourceError:
            continue  # reported when the operation is read
