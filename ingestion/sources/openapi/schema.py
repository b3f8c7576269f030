"""Merges the schemas that `$ref` and `allOf` combine, independently of the OpenAPI version."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.sources.openapi.references import Node
from schemas.errors import SourceError

MAX_SCHEMA_PARTS = 150
"""Maximum number of schemas that one schema combines by `$ref` and `allOf`."""

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
    """Schemas that apply together, the most general first. Later ones override earlier ones."""

    parts: tuple[Node, ...] = ()

    def get(self, key: str) -> Node | None:
        """Return the value of `key`; None if no part has it."""
        nodes = (part[key] for part in reversed(self.parts))
        return next((node for node in nodes if node.value is not None), None)

    def text(self, key: str) -> str:
        """Return the text of `key`; empty if no part has it."""
        return next(filter(None, (part.text(key) for part in reversed(self.parts))), "")

    def flag(self, key: str) -> bool:
        """Return whether `key` is true in any part."""
        return any(part.flag(key) for part in self.parts)

    @property
    def types(self) -> list[str]:
        """The declared types except `null`, or the type that the keywords imply if none is declared."""
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
            or any(_is_null(node) for part in self.parts for node in _alternatives(part))
        )

    @property
    def required(self) -> set[str]:
        """Names of the required properties."""
        named = (name.value for part in self.parts for name in part["required"].elements())
        return {name for name in named if isinstance(name, str)}

    @property
    def properties(self) -> dict[str, list[Node]]:
        """Properties by name, each with its schemas."""
        properties: dict[str, list[Node]] = {}
        for part in self.parts:
            for name, node in part["properties"].items():
                properties.setdefault(name, []).append(node)
        return properties

    @property
    def additional_properties(self) -> list[tuple[str, Node]]:
        """Schemas of properties without a fixed name: any name is `*`, and a pattern is `/pattern/`."""
        properties: list[tuple[str, Node]] = []
        for part in self.parts:
            additional = part["additionalProperties"]
            if additional.is_object and additional.value:
                properties.append(("*", additional))
            patterns = part["patternProperties"].items()
            properties += [(f"/{pattern}/", node) for pattern, node in patterns]
        return properties

    @property
    def items(self) -> list[Node]:
        """Schemas that apply to every element of an array. See `tuple_items` for tuples."""
        return [part["items"] for part in self.parts if part["items"].is_object]

    @property
    def variants(self) -> list[Node]:
        """Alternative schemas, except null and schemas that only list required properties.

        Empty if only one alternative is left, because it always applies and is merged into the schema.
        """
        variants = [node for part in self.parts for node in _informative_alternatives(part)]
        return variants if len(variants) > 1 else []

    @property
    def tuple_items(self) -> list[Node]:
        """Schemas of the elements of a tuple, one per element."""
        keys = ("prefixItems", "items")
        return [node for part in self.parts for key in keys for node in part[key].elements()]

    @property
    def structure(self) -> frozenset[int]:
        """Python ids of the parts that contain other schemas, to detect recursion; empty for a scalar."""
        return frozenset(id(part.value) for part in self.parts if _contains_schemas(part))


class SchemaReader:
    """Reads the schemas of one description, with at most `max_values` values after `$ref` is expanded."""

    def __init__(self, max_values: int) -> None:
        self.max_values = max_values
        self.values_left = max_values

    def read(self, *nodes: Node) -> Schema:
        """Merge `nodes`, which apply together, into one schema. Raises SourceError if it is too large."""
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
        for base in node["allOf"].elements():
            yield from self._parts(base, seen)
        alternatives = list(_informative_alternatives(node))
        if len(alternatives) == 1:  # it always applies
            yield from self._parts(alternatives[0], seen)
        yield node


def _contains_schemas(part: Node) -> bool:
    return any(isinstance(part[keyword].value, dict | list) for keyword in _STRUCTURE_KEYWORDS)


def _alternatives(part: Node) -> Iterator[Node]:
    yield from part["oneOf"].elements()
    yield from part["anyOf"].elements()


def _informative_alternatives(part: Node) -> Iterator[Node]:
    """Yield the alternatives except null and schemas that only list required properties."""
    for node in _alternatives(part):
        keys = set(node.value) if isinstance(node.value, dict) else set()
        if keys - {"required"} and not _is_null(node):
            yield node


def _is_null(node: Node) -> bool:
    return node["type"].value == "null" or node["enum"].value == [None]
