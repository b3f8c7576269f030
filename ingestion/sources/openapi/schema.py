"""Schemas with `$ref` and `allOf` merged, whichever version of OpenAPI wrote them."""

from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.sources.openapi.references import Node
from schemas.errors import SourceError

MOST_PARTS = 150
"""Schemas that one schema may be made of, by `$ref` and `allOf`."""

_STRUCTURE = (
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
    """Schemas that all hold at once, the general ones first; what a later one says counts."""

    parts: tuple[Node, ...] = ()

    def say(self, key: str) -> Node | None:
        """What is said under `key`."""
        return next((p[key] for p in reversed(self.parts) if p[key].value is not None), None)

    def text(self, key: str) -> str:
        """The text that is said under `key`."""
        return next(filter(None, (part.text(key) for part in reversed(self.parts))), "")

    def flag(self, key: str) -> bool:
        """Whether any part says `true` under `key`."""
        return any(part.flag(key) for part in self.parts)

    @property
    def types(self) -> list[str]:
        """Its types without `null`; where none is said, what its keywords tell."""
        said = self.say("type")
        if said is not None:
            named = said.value if isinstance(said.value, list) else [said.value]
            return [name for name in named if isinstance(name, str) and name != "null"]
        if any(part["properties"].is_table for part in self.parts):
            return ["object"]
        return ["array"] if self.items else []

    @property
    def is_nullable(self) -> bool:
        """Whether null will do."""
        said = self.say("type")
        return (
            self.flag("nullable")
            or self.flag("x-nullable")
            or (said is not None and isinstance(said.value, list) and "null" in said.value)
            or any(_is_null(each) for part in self.parts for each in _alternatives(part))
        )

    @property
    def required(self) -> set[str]:
        """Names of properties that have to be there."""
        named = (each.value for part in self.parts for each in part["required"].elements())
        return {name for name in named if isinstance(name, str)}

    @property
    def properties(self) -> dict[str, list[Node]]:
        """What is said of each property."""
        found: dict[str, list[Node]] = {}
        for part in self.parts:
            for name, node in part["properties"].fields():
                found.setdefault(name, []).append(node)
        return found

    @property
    def further(self) -> list[tuple[str, Node]]:
        """Properties of any name, and of names of a pattern."""
        found: list[tuple[str, Node]] = []
        for part in self.parts:
            if part["additionalProperties"].value:
                found += [("*", n) for n in [part["additionalProperties"]] if n.is_table]
            found += [(f"/{name}/", n) for name, n in part["patternProperties"].fields()]
        return found

    @property
    def items(self) -> list[Node]:
        """What is said of each element; a tuple's elements are `variants` of it."""
        return [part["items"] for part in self.parts if part["items"].is_table]

    @property
    def variants(self) -> list[Node]:
        """Schemas of which one holds; without null, and without those that only require."""
        found = [each for part in self.parts for each in _choices(part)]
        return found if len(found) > 1 else []

    @property
    def tuple_items(self) -> list[Node]:
        """The elements of a list that has its own schema for each."""
        keys = ("prefixItems", "items")
        return [each for part in self.parts for key in keys for each in part[key].elements()]

    @property
    def structure(self) -> frozenset[int]:
        """What tells it from other schemas with an inside; nothing for a plain value."""
        holds = (
            p for p in self.parts if any(isinstance(p[k].value, dict | list) for k in _STRUCTURE)
        )
        return frozenset(id(part.value) for part in holds)


class SchemaReader:
    """Reads the schemas of one description, until they mean more than they may."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.left = most

    def read(self, *nodes: Node) -> Schema:
        """`nodes`, which all hold at once, as one schema. Raises SourceError."""
        seen: set[int] = set()
        return Schema(tuple(part for node in nodes for part in self._parts(node, seen)))

    def spend(self, amount: int) -> None:
        """Counts what a description has been made to mean. Raises SourceError."""
        self.left -= amount
        if self.left < 0:
            raise SourceError(
                f"with its $refs the description means more than {self.most} values"
                " (APIDESK_MAX_VALUES)"
            )

    def _parts(self, node: Node, seen: set[int]) -> Iterator[Node]:
        if not isinstance(node.value, dict) or id(node.value) in seen:
            return
        if len(seen) >= MOST_PARTS:
            raise SourceError(f"a schema is made of more than {MOST_PARTS} others")
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
    """The alternatives that say what a value is, rather than what must be there or be null."""
    for each in _alternatives(part):
        if isinstance(each.value, dict) and not _is_null(each) and set(each.value) - {"required"}:
            yield each


def _is_null(node: Node) -> bool:
    return node["type"].value == "null" or node["enum"].value == [None]
