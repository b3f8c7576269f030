"""Finds the operations in the `paths` of a description."""

from collections.abc import Iterator

from ingestion.sources.openapi.document import METHODS
from ingestion.sources.openapi.operations import PathOperation
from ingestion.sources.openapi.references import Node, quote_text
from schemas.errors import SourceError


def path_error(subject: str, reason: str) -> SourceError:
    """Return the error for `subject`, a path or an operation, which is shortened in the message."""
    return SourceError(f"{quote_text(subject)[1:-1]}: {reason}")


def path_operations(root: Node) -> Iterator[PathOperation | SourceError]:
    """Yield every operation, and a SourceError in place of each path that cannot be read."""
    for path, item in root["paths"].items():
        if path.startswith("x-") or item.value is None:
            continue
        if not item.is_object:
            yield path_error(path, "contains no operations")
            continue
        try:
            target = item.resolve()
        except SourceError as error:
            yield path_error(path, str(error))
            continue
        yield from _operations_of_path(path, item, target)


def _operations_of_path(path: str, item: Node, target: Node) -> Iterator[PathOperation]:
    """Yield the operations of a path item and of the target of its `$ref`.

    If both have an operation with the same method, only the path item's own operation is yielded.
    """
    methods: set[str] = set()
    for holder in (item, target):
        for key, node in holder.items():
            method = key.upper()
            if method in METHODS and method not in methods:
                methods.add(method)
                yield PathOperation(method, path, holder, node)


def parameter_ids(operation: Node) -> Iterator[int]:
    """Yield the Python object ids of the parameters that `operation` declares or refers to."""
    for parameter in operation["parameters"].elements():
        try:
            yield id(parameter.resolve().value)
        except SourceError:
            continue  # reported when the operation is read
