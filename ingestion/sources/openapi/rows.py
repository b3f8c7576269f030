"""Schemas as the rows of a parameter table."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from prompts.user_text import SectionLabels
from ingestion.sources.openapi.descriptions import allowed_values, describe_schema, type_name
from ingestion.sources.openapi.operations import MediaContent, OperationParameter, as_text, short_example
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.schema import Schema, SchemaReader
from schemas.api_document import Parameter

MAX_ROWS = 600
"""Rows of one table; the outer levels come first, and what is left out is said where it would be."""

MAX_DEPTH = 10
"""Levels of children; deeper ones are left out, and that is said."""

MAX_ROW_NAME_CHARS = 200

Direction = Literal["request", "response"]


@dataclass
class _Row:
    name: str
    schema: Schema
    is_required: bool = False
    location: str = ""
    said: OperationParameter | None = None
    """The parameter that says more than its schema."""
    above: frozenset[int] = frozenset()
    """The structure of the schemas that this one lies within."""
    depth: int = 0
    dimensions: int = 0
    inner: Schema = field(default_factory=Schema)
    """The schema without the lists around it."""
    mark: str = ""
    children: list["_Row"] = field(default_factory=list)
    variants: list["_Row"] = field(default_factory=list)

    @property
    def within(self) -> str:
        """What the names of its children begin with, when it has no row of its own."""
        return self.name + "[]" * self.dimensions


class RowBuilder:
    """Makes one table. Level by level, so that a large branch costs no other branch its rows."""

    def __init__(self, reader: SchemaReader, labels: SectionLabels, direction: Direction) -> None:
        self.reader = reader
        self.labels = labels
        self.hidden = "readOnly" if direction == "request" else "writeOnly"
        self.left = MAX_ROWS

    def fields(self, fields: Iterable[OperationParameter]) -> tuple[Parameter, ...]:
        """Parameters outside of the body's schema. Raises SourceError."""
        return self._table([self._field(each) for each in fields])

    def _field(self, each: OperationParameter) -> _Row:
        return _Row(
            each.name,
            self.reader.read(each.schema),
            each.location == "path" or each.node.flag("required"),
            each.location,
            each,
        )

    def body(self, media: MediaContent, name: str, location: str) -> tuple[Parameter, ...]:
        """A body: its properties, or where it has none a row `name` of its own. Raises SourceError."""
        root = _Row("", self.reader.read(media.schema), True, location)
        self._grow(root)
        if root.dimensions:
            root.name, root.dimensions = root.within, 0
            return self._table([root])
        if root.children or root.variants:
            return self._table(root.children + root.variants)
        if not root.schema.types and not root.schema.text("description"):
            return ()
        root.name = name
        return self._table([root])

    def _table(self, rows: list[_Row]) -> tuple[Parameter, ...]:
        queue = deque(rows)
        self.left -= len(rows)
        while queue:
            row = queue.popleft()
            if not row.children and not row.variants:
                self._grow(row)
            queue.extend(row.children + row.variants)
        return tuple(parameter for row in rows for parameter in self._finished(row))

    def _grow(self, row: _Row) -> None:
        """Finds out what `row` holds."""
        structure = self._unwrap(row)
        if row.mark:
            return
        children = list(self._children(row, structure))
        variants = list(self._variants(row, structure))
        allowed = max(0, self.left) if row.depth < MAX_DEPTH else 0
        if len(children) + len(variants) > allowed:
            row.mark = self.labels.fields_omitted
        row.children = children[:allowed]
        row.variants = variants[: allowed - len(row.children)]
        self.left -= len(row.children) + len(row.variants)

    def _unwrap(self, row: _Row) -> frozenset[int]:
        """Goes into lists down to what they hold; marks a schema that lies within itself."""
        row.inner, within = row.schema, row.above
        while True:
            structure = row.inner.structure
            if structure and structure <= within:
                row.mark = self.labels.see_above
                return within
            within |= structure
            items = row.inner.items
            if not items or row.dimensions >= MAX_DEPTH:
                return within
            row.inner = self.reader.read(*items)
            row.dimensions += 1

    def _children(self, row: _Row, above: frozenset[int]) -> Iterator[_Row]:
        required = row.inner.required
        named = [*row.inner.properties.items(), *((n, [s]) for n, s in row.inner.further)]
        for name, nodes in named[: max(self.left, 0) + 1]:
            schema = self.reader.read(*nodes)
            if name and not schema.flag(self.hidden):
                yield _Row(
                    name[:MAX_ROW_NAME_CHARS],
                    schema,
                    name in required,
                    row.location,
                    above=above,
                    depth=row.depth + 1,
                )

    def _variants(self, row: _Row, above: frozenset[int]) -> Iterator[_Row]:
        """Alternatives that have an inside; plain ones are part of the type."""
        choices = row.inner.variants[: max(self.left, 0) + 1]
        read = [(node, self.reader.read(node)) for node in choices]
        if not any(schema.structure for _, schema in read):
            return
        for number, (node, schema) in enumerate(read, 1):
            name = f"{row.within} ({_variant_label(node, schema, number)})".strip()
            yield _Row(name, schema, False, row.location, above=above, depth=row.depth + 1)

    def _finished(self, row: _Row) -> Iterator[Parameter]:
        yield self._parameter(row)
        for variant in row.variants:
            yield from self._finished(variant)

    def _parameter(self, row: _Row) -> Parameter:
        said = [row.said.node] if row.said else []
        parts = [*reversed(row.schema.parts), *reversed(row.inner.parts)]
        return Parameter(
            name=row.name[:MAX_ROW_NAME_CHARS],
            type=type_name(self.reader, row.schema),
            required=row.is_required,
            description=self._description(row),
            example=short_example(*said, *parts) if not row.children else "",
            values=allowed_values(self.reader, row.inner),
            children=tuple(p for child in row.children for p in self._finished(child)),
            dimensions=row.dimensions,
            location=row.location,
        )

    def _description(self, row: _Row) -> str:
        text = describe_schema(self.labels, row.schema, row.inner, row.said.node if row.said else None)
        self.reader.spend(len(text) // 100)
        return f"{text} {row.mark}".strip()


def _variant_label(node: Node, schema: Schema, number: int) -> str:
    """What a variant is called: by its title, its reference or its only value, else by its number."""
    reference = node.reference or ""
    name = node.text("title") or reference.rpartition("/")[2] or schema.text("title")
    constant = schema.say("const")
    if not name and constant is not None:
        name = as_text(constant.value)
    return (name or f"{' '.join(schema.types)} {number}".strip())[:100]
