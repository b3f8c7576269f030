"""Schemas with `$ref` and `allOf` merged, independent of the OpenAPI version."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.sources.openapi.references import Node
from schemas.errors import SourceError

MAX_SCHEMA_PARTS = 150
"""Schemas that one schema may combine by `$ref` and `allOf`."""

_STRUCTURE_KEYWORDS = (
    "properties",
    "items",
    "prefixItems",
    "anyOf",
    "oneOf",
    "additionalProperties",
    "patternProperties",
)


@dataclass(frozen=True)
class Schema:
    """Schemas that apply together, the most general first; a later one overrides an earlier one."""

    parts: tuple[Node, ...] = ()

    def get(self, key: str) -> Node | None:
        """Return the value of `key`; None if no part has it."""
        return next((p[key] for p in reversed(self.parts) if p[key].value is not None), None)

    def text(self, key: str) -> str:
        """Return the text of `key`; empty if no part has it."""
        return next(filter(None, (part.text(key) for part in reversed(self.parts))), "")

    def flag(self, key: str) -> bool:
        """Whether `key` is true in any part."""
        return any(part.flag(key) for part in self.parts)

    @property
    def types(self) -> list[str]:
        """Types without `null`; if none is declared, the type implied by the keywords."""
        declared = self.get("type")
        if declared is not None:
            named = declared.value if isinstance(declared.value, list) else [declared.value]
            return [name for name in named if isinstance(name, str) and name != "null"]
        if any(part["properties"].is_object for part in self.parts):
            return ["object"]
        return ["array"] if self.items else []

    @property
    def is_nullable(self) -> bool:
        """Whether null is allowed."""
        declared = self.get("type")
        return (
            self.flag("nullable")
            or self.flag("x-nullable")
            or (
                declared is not None
                and isinstance(declared.value, list)
                and "null" in declared.value
            )
            or any(_is_null(each) for part in self.parts for each in _alternatives(part))
        )

    @property
    def required(self) -> set[str]:
        """Names of required properties."""
        named = (each.value for part in self.parts for each in part["required"].elements())
        return {name for name in named if isinstance(name, str)}

    @property
    def properties(self) -> dict[str, list[Node]]:
        """Schemas of each property."""
        properties: dict[str, list[Node]] = {}
        for part in self.parts:
            for name, node in part["properties"].items():
                properties.setdefault(name, []).append(node)
        return properties

    @property
    def additional_properties(self) -> list[tuple[str, Node]]:
        """Schemas of properties with any name (`*`) or with a name that matches a pattern (`/…/`)."""
        properties: list[tuple[str, Node]] = []
        for part in self.parts:
            if part["additionalProperties"].value:
                properties += [("*", n) for n in [part["additionalProperties"]] if n.is_object]
            properties += [(f"/{name}/", n) for name, n in part["patternProperties"].items()]
        return properties

    @property
    def items(self) -> list[Node]:
        """Schemas of each element of an array; those of a tuple are `tuple_items`."""
        return [part["items"] for part in self.parts if part["items"].is_object]

    @property
    def variants(self) -> list[Node]:
        """Alternative schemas, without null and without those that only list required properties."""
        variants = [each for part in self.parts for each in _choices(part)]
        return variants if len(variants) > 1 else []

    @property
    def tuple_items(self) -> list[Node]:
        """Schemas of the elements of a tuple."""
        keys = ("prefixItems", "items")
        return [each for part in self.parts for key in keys for each in part[key].elements()]

    @property
    def structure(self) -> frozenset[int]:
        """Identifies a schema with inner schemas, to detect recursion; empty for a scalar."""
        holds = (
            p
            for p in self.parts
            if any(isinstance(p[k].value, dict | list) for k in _STRUCTURE_KEYWORDS)
        )
        return frozenset(id(part.value) for part in holds)


class SchemaReader:
    """Reads the schemas of one description, up to a limit on their expanded size."""

    def __init__(self, max_values: int) -> None:
        self.max_values = max_values
        self.values_left = max_values

    def read(self, *nodes: Node) -> Schema:
        """Merge `nodes`, which apply together, into one schema. Raises SourceError."""
        seen: set[int] = set()
        return Schema(tuple(part for node in nodes for part in self._parts(node, seen)))

    def spend(self, amount: int) -> None:
        """Count `amount` values. Raises SourceError above the limit."""
        self.values_left -= amount
        if self.values_left < 0:
            raise SourceError(
                f"with its $refs expanded, the description has more than {self.max_values} values"
                " (APIDESK_MAX_VALUES)"
            )

    def _parts(self, node: Node, seen: set[int]) -> Iterator[Node]:
        if not isinstance(node.value, dict) or id(node.value) in seen:
            return
        if len(seen) >= MAX_SCHEMA_PARTS:
            raise SourceError(f"a schema combines more than {MAX_SCHEMA_PARTS} schemas")
        seen.add(id(node.value))
        self.spend(1 + len(node.value) // 8)
        if node.reference is not None:
            yield from self._parts(node.documents.lookup(node.base, node.reference), seen)
        for each in node["allOf"].elements():
            yield from self._parts(each, seen)
        only = list(_choices(node))
        if len(only) == 1:
            yield from self._parts(only[0], seen)
        yield node


def _alternatives(part: Node) -> Iterator[Node]:
    yield from part["oneOf"].elements()
    yield from part["anyOf"].elements()


def _choices(part: Node) -> Iterator[Node]:
    """Yield the alternatives that describe a value: not null, and more than `required`."""
    for each in _alternatives(part):
        if isinstance(each.value, dict) and not _is_null(each) and set(each.value) - {"required"}:
            yield each


def _is_null(node: Node) -> bool:
    return node["type"].value == "null" or node["enum"].value == [None]
