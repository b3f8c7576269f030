"""Converts schemas to the rows of a parameter table."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from ingestion.sources.openapi.operations import (
    MediaContent,
    OperationParameter,
    as_text,
    short_example,
)
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.schema import (
    Schema,
    SchemaReader,
    allowed_values,
    describe_schema,
    type_name,
)
from ingestion.text.typography import join_texts
from prompts.user_text import SectionLabels
from schemas.document import Parameter

MAX_ROWS = 600
"""Maximum number of rows in all tables of a request, and in all tables of its responses.

Beyond this limit, nested fields and the fields of later bodies are omitted. Parameters and headers always
have a row.
"""

MAX_DEPTH = 10
"""Maximum number of levels of children, and of nested arrays. A note marks where levels are omitted."""

MAX_ROW_NAME_CHARS = 200
"""Maximum length of a parameter's name, in characters."""

Direction = Literal["request", "response"]


@dataclass
class _Row:
    """A row that is being built.

    Its children are the rows of its fields. Its variants are the rows of the alternative schemas in `oneOf`
    and `anyOf`.
    """

    name: str
    schema: Schema
    is_required: bool | None = None
    """None if it is unknown or does not apply."""
    location: str = ""
    declaration: Node | None = None
    """The declaration of the parameter; None if the row describes a body, property or variant."""
    ancestors: frozenset[int] = frozenset()
    """Ids of all schemas that contain `schema`; see `Schema.structure_ids`."""
    depth: int = 0
    dimensions: int = 0
    """Number of nested arrays around the elements: 2 for `array<array<string>>`."""
    inner: Schema = field(default_factory=Schema)
    """The schema of the innermost elements, if `schema` is an array; otherwise `schema` itself."""
    is_alternative: bool = False
    """Whether the row is one of several alternative schemas."""
    mark: str = ""
    """A note if children or variants are omitted; otherwise empty.

    They are omitted if a limit is exceeded, or if an ancestor shows the same schema.
    """
    children: list["_Row"] = field(default_factory=list)
    variants: list["_Row"] = field(default_factory=list)

    @property
    def name_with_brackets(self) -> str:
        """The name followed by `[]` for each array."""
        return self.name + "[]" * self.dimensions


class RowBuilder:
    """Builds the tables of a request or response.

    A table is built level by level, so that a large branch does not use up the rows of other branches.
    """

    def __init__(self, reader: SchemaReader, labels: SectionLabels, direction: Direction) -> None:
        self.reader = reader
        self.labels = labels
        self.is_request = direction == "request"
        self.hiding_keyword = "readOnly" if self.is_request else "writeOnly"
        self.rows_left = MAX_ROWS

    def parameter_rows(self, parameters: Iterable[OperationParameter]) -> tuple[Parameter, ...]:
        """Return a row with its children for each parameter or header. Raises SourceError."""
        rows = [self._parameter_row(parameter) for parameter in parameters]
        self.rows_left -= len(rows)
        return self._table(rows)

    def _parameter_row(self, parameter: OperationParameter) -> _Row:
        is_required = parameter.location == "path" or parameter.node.is_true("required")
        is_stated = self.is_request or parameter.node["required"].value is not None
        return _Row(
            parameter.name,
            self.reader.read(parameter.schema),
            is_required if is_stated else None,
            parameter.location,
            parameter.node,
        )

    def body_rows(self, media: MediaContent, name: str, location: str) -> tuple[Parameter, ...]:
        """Return the rows of a body. Raises SourceError.

        An array has one row with the name `[]`, and its elements are described below this row. A body that
        is not an array has a row for each property and variant. If there are no properties and variants,
        the body has one row with the name `name`, or no row if it has neither a type nor a description.
        """
        is_required = media.is_required if self.is_request else None
        root = _Row("", self.reader.read(media.schema), is_required, location)
        self._expand(root)
        if root.dimensions:
            root.name, root.dimensions = root.name_with_brackets, 0
            return self._table([root])
        if root.children or root.variants:
            return self._table(root.children + root.variants)
        if not root.schema.types and not root.schema.text("description"):
            return ()
        root.name = name
        return self._table([root])

    def _table(self, rows: list[_Row]) -> tuple[Parameter, ...]:
        queue = deque(rows)
        while queue:
            row = queue.popleft()
            if not row.children and not row.variants:
                self._expand(row)
            queue.extend(row.children + row.variants)
        return tuple(parameter for row in rows for parameter in self._finish(row))

    def _expand(self, row: _Row) -> None:
        """Add the children and variants of `row`."""
        ancestors = self._unwrap(row)
        if row.mark:
            return
        allowed = max(0, self.rows_left) if row.depth < MAX_DEPTH else 0
        # One row more than allowed is read, to find out whether rows must be omitted.
        children = list(islice(self._children(row, ancestors), allowed + 1))
        variants = list(islice(self._variants(row, ancestors), allowed + 1))
        if len(children) + len(variants) > allowed:
            row.mark = self.labels.fields_omitted
        row.children = children[:allowed]
        row.variants = variants[: allowed - len(row.children)]
        self.rows_left -= len(row.children) + len(row.variants)

    def _unwrap(self, row: _Row) -> frozenset[int]:
        """Set `row.inner` and `row.dimensions`, and return the ancestors of the row's children.

        Sets `row.mark` if the children and variants must be omitted.
        """
        row.inner, ancestors = row.schema, row.ancestors
        while True:
            structure_ids = row.inner.structure_ids
            if structure_ids and structure_ids <= ancestors:
                row.mark = self.labels.see_above
                return ancestors
            ancestors |= structure_ids
            items = row.inner.items
            if not items:
                return ancestors
            if row.dimensions >= MAX_DEPTH:
                row.mark = self.labels.fields_omitted
                return ancestors
            row.inner = self.reader.read(*items)
            row.dimensions += 1

    def _children(self, row: _Row, ancestors: frozenset[int]) -> Iterator[_Row]:
        required = row.inner.required
        # If the schema lists no required fields, all fields of a request are optional, but it is unknown
        # which fields a response always contains.
        is_stated = self.is_request or bool(required)
        named = [
            *row.inner.properties.items(),
            *((name, [node]) for name, node in row.inner.additional_properties),
        ]
        for name, nodes in named:
            schema = self.reader.read(*nodes)
            if name and not schema.is_true(self.hiding_keyword):
                yield _Row(
                    name[:MAX_ROW_NAME_CHARS],
                    schema,
                    name in required if is_stated else None,
                    row.location,
                    ancestors=ancestors,
                    depth=row.depth + 1,
                )

    def _variants(self, row: _Row, ancestors: frozenset[int]) -> Iterator[_Row]:
        """Yield a row per alternative schema.

        Yields nothing if all alternatives are scalar, because the type of `row` lists them.
        """
        choices = row.inner.variants
        if not any(self.reader.read(node).structure_ids for node in choices):
            return
        for number, node in enumerate(choices, 1):
            schema = self.reader.read(node)
            name = f"{row.name_with_brackets} ({_variant_label(node, schema, number)})".strip()
            yield _Row(
                name,
                schema,
                location=row.location,
                ancestors=ancestors,
                depth=row.depth + 1,
                is_alternative=True,
            )

    def _finish(self, row: _Row) -> Iterator[Parameter]:
        yield self._parameter(row)
        for variant in row.variants:
            yield from self._finish(variant)

    def _parameter(self, row: _Row) -> Parameter:
        declared = [row.declaration] if row.declaration else []
        parts = [*reversed(row.schema.parts), *reversed(row.inner.parts)]
        return Parameter(
            name=row.name[:MAX_ROW_NAME_CHARS],
            type=type_name(self.reader, row.schema),
            required=row.is_required,
            description=self._description(row),
            example=short_example(*declared, *parts) if not row.children else "",
            values=allowed_values(self.reader, row.inner),
            children=tuple(inner for child in row.children for inner in self._finish(child)),
            dimensions=row.dimensions,
            location=row.location,
        )

    def _description(self, row: _Row) -> str:
        text = describe_schema(self.labels, row.schema, row.inner, row.declaration)
        self.reader.spend(len(text) // 100)  # long texts count towards APIDESK_MAX_VALUES
        alternative = self.labels.alternative if row.is_alternative else ""
        return join_texts((alternative, text, row.mark), " ")


def _variant_label(node: Node, schema: Schema, number: int) -> str:
    """Return a name for a variant: its title, reference or constant value, or else its type and number."""
    reference = node.reference or ""
    name = node.text("title") or reference.rpartition("/")[2] or schema.text("title")
    constant = schema.get("const")
    if not name and constant is not None:
        name = as_text(constant.value)
    return (name or f"{' '.join(schema.types)} {number}".strip())[:100]
