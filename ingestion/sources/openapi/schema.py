"""Merges the schemas that `$ref` and `allOf` combine, and describes them as text for table cells.

All functions accept the keywords of Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.sources.api_docs import mark_deprecated
from ingestion.sources.openapi.operations import as_text
from ingestion.sources.openapi.references import Node
from ingestion.text.typography import has_chinese, join_texts, label_with
from prompts.user_text import SectionLabels
from schemas.document import AllowedValue
from schemas.errors import SourceError

MAX_SCHEMA_PARTS = 150
"""Maximum number of schemas that are merged into one."""

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
        """Return the node of `key` in the last part that has it; None if no part has it."""
        nodes = (part[key] for part in reversed(self.parts))
        return next((node for node in nodes if node.value is not None), None)

    def text(self, key: str) -> str:
        """Return the text of `key` in the last part that has it; empty if no part has it."""
        return next(filter(None, (part.text(key) for part in reversed(self.parts))), "")

    def is_true(self, key: str) -> bool:
        """Return whether `key` is true in any part."""
        return any(part.is_true(key) for part in self.parts)

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
            self.is_true("nullable")
            or self.is_true("x-nullable")
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
        """Maps the name of each property to its schemas: one from each part that declares the property."""
        properties: dict[str, list[Node]] = {}
        for part in self.parts:
            for name, node in part["properties"].items():
                properties.setdefault(name, []).append(node)
        return properties

    @property
    def additional_properties(self) -> list[tuple[str, Node]]:
        """Properties without a fixed name, as pairs of a name and a schema.

        The name is `*` if it is arbitrary, and `/pattern/` if it must match a pattern.
        """
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
        """The alternatives in `oneOf` and `anyOf`, without uninformative ones such as null.

        If only one alternative remains, it always applies. It is then one of the `parts`, not a variant.
        """
        alternatives = [list(_informative_alternatives(part)) for part in self.parts]
        return [node for several in alternatives if len(several) > 1 for node in several]

    @property
    def tuple_items(self) -> list[Node]:
        """Schemas of the elements of a tuple, one per element."""
        keys = ("prefixItems", "items")
        return [node for part in self.parts for key in keys for node in part[key].elements()]

    @property
    def structure_ids(self) -> frozenset[int]:
        """Python object ids of the parts that contain other schemas; empty for a scalar.

        A schema whose ids are all among those of its ancestors is recursive.
        """
        return frozenset(id(part.value) for part in self.parts if _contains_schemas(part))


class SchemaReader:
    """Reads the schemas of one OpenAPI description, up to a total cost of `max_values`.

    Reading a schema costs 1, plus 1 for every eight of its keywords. A schema is read again, and costs
    again, for each `$ref` that leads to it.
    """

    def __init__(self, max_values: int) -> None:
        self.max_values = max_values
        self.values_left = max_values

    def read(self, *nodes: Node) -> Schema:
        """Merge `nodes`, which apply together, into one schema.

        Raises SourceError if a limit is exceeded or a `$ref` cannot be resolved.
        """
        seen: set[int] = set()
        return Schema(tuple(part for node in nodes for part in self._parts(node, seen)))

    def spend(self, amount: int) -> None:
        """Add `amount` to the total cost. Raises SourceError if the limit is exceeded."""
        self.values_left -= amount
        if self.values_left < 0:
            raise SourceError(
                f"with its $refs expanded, the description exceeds the limit of {self.max_values} values"
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
        if len(alternatives) == 1:  # a single alternative always applies
            yield from self._parts(alternatives[0], seen)
        yield node


def _contains_schemas(part: Node) -> bool:
    return any(isinstance(part[keyword].value, dict | list) for keyword in _STRUCTURE_KEYWORDS)


def _alternatives(part: Node) -> Iterator[Node]:
    yield from part["oneOf"].elements()
    yield from part["anyOf"].elements()


def _informative_alternatives(part: Node) -> Iterator[Node]:
    """Yield the alternatives except null, empty schemas, and schemas that only list required properties."""
    for node in _alternatives(part):
        keys = set(node.value) if isinstance(node.value, dict) else set()
        if keys - {"required"} and not _is_null(node):
            yield node


def _is_null(node: Node) -> bool:
    return node["type"].value == "null" or node["enum"].value == [None]


# --- text -----------------------------------------------------------------------------------------

MAX_ENUM_VALUES = 200
"""Maximum number of values that are listed for one enumeration."""

MAX_DESCRIPTION_CHARS = 20_000
"""Maximum length of a description, in characters."""

_MAX_VALUE_CHARS = 200
_MAX_TYPES = 6
_MAX_TYPE_DEPTH = 3
_MEANING_KEYS = (
    "x-enum-descriptions",
    "x-enumDescriptions",
    "x-enumNames",
    "x-enum-varnames",
)
_BINARY_FORMATS = ("binary", "file")


def type_name(reader: SchemaReader, schema: Schema, depth: int = 0) -> str:
    """Return the type of `schema`, such as `string (uuid)`, `array<object>` or `string | integer`.

    Raises SourceError.
    """
    if depth >= _MAX_TYPE_DEPTH:
        return "…"
    names = [_format_type(reader, schema, name, depth) for name in schema.types[:_MAX_TYPES]]
    if schema.variants and names in ([], ["object"]):
        variants = [reader.read(node) for node in schema.variants[:_MAX_TYPES]]
        names = [type_name(reader, variant, depth + 1) for variant in variants]
    if not names and schema.tuple_items:  # some converters write alternative types as a tuple
        elements = [reader.read(node) for node in schema.tuple_items[:_MAX_TYPES]]
        names = [
            "null" if _is_null_type(element) else type_name(reader, element, depth + 1)
            for element in elements
        ]
    return " | ".join(dict.fromkeys(names)) or _type_from_values(schema) or "any"


def _is_null_type(schema: Schema) -> bool:
    declared = schema.get("type")
    return declared is not None and declared.value == "null"


def _format_type(reader: SchemaReader, schema: Schema, name: str, depth: int) -> str:
    if name == "array":
        if schema.items:
            return f"array<{type_name(reader, reader.read(*schema.items), depth + 1)}>"
        elements = [reader.read(node) for node in schema.tuple_items[:_MAX_TYPES]]
        names = dict.fromkeys(type_name(reader, element, depth + 1) for element in elements)
        return f"array<{' | '.join(names)}>" if names else "array"
    format_name = schema.text("format")[:40]
    if name == "file" or (name == "string" and format_name in _BINARY_FORMATS):
        return "file"
    if name == "string" and schema.text("contentMediaType"):
        return "file"
    return f"{name[:40]} ({format_name})" if format_name and format_name != name else name[:40]


def _type_from_values(schema: Schema) -> str:
    """Return the types of the enumerated values, such as `string | integer`."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    types = (names.get(type(value), "") for value in _enum_values(schema))
    return " | ".join(dict.fromkeys(filter(None, types)))


def _enum_values(schema: Schema) -> list[object]:
    constant, listed = schema.get("const"), schema.get("enum")
    if constant is not None:
        return [constant.value]
    return listed.value[:MAX_ENUM_VALUES] if listed and isinstance(listed.value, list) else []


def allowed_values(reader: SchemaReader, schema: Schema) -> tuple[AllowedValue, ...]:
    """Return the enumerated values of `schema` and of its scalar alternatives, with their meanings.

    Raises SourceError.
    """
    values = list(_values_with_meanings(schema))
    for node in schema.variants[:MAX_ENUM_VALUES]:
        variant = reader.read(node)
        if not variant.structure_ids:
            meaning = variant.text("description") or variant.text("title")
            values += [(value, own or meaning) for value, own in _values_with_meanings(variant)]
    meanings: dict[str, str] = {}
    for value, meaning in values:
        text = as_text(value)[:_MAX_VALUE_CHARS]
        meanings[text] = meaning or meanings.get(text, "")
    return tuple(AllowedValue(value=text, meaning=meaning) for text, meaning in meanings.items())


def _values_with_meanings(schema: Schema) -> Iterator[tuple[object, str]]:
    values = [value for value in _enum_values(schema) if value is not None]
    meanings = next((node for key in _MEANING_KEYS if (node := schema.get(key)) is not None), None)
    for number, value in enumerate(values):
        yield value, _meaning(meanings, number, as_text(value))


def _meaning(meanings: Node | None, number: int, value: str) -> str:
    if meanings is None:
        return ""
    if isinstance(meanings.value, list):
        meaning = meanings.value[number] if number < len(meanings.value) else ""
        return meaning if isinstance(meaning, str) else ""
    return meanings.text(value)


def describe_schema(
    labels: SectionLabels, schema: Schema, inner: Schema, parameter: Node | None
) -> str:
    """Return the description and the constraints of a value, marked if the value is deprecated.

    `inner` is the schema of the elements of an array; for other values, it is `schema` itself. The
    description is that of `parameter`, `schema` or `inner`, or else the title of `schema`.
    """
    text = (parameter.text("description") if parameter else "") or schema.text("description")
    text = text or inner.text("description") or schema.text("title")
    deprecated = schema.is_true("deprecated") or (
        parameter is not None and parameter.is_true("deprecated")
    )
    constraints = ("；" if has_chinese(labels.default) else "; ").join(
        _constraints(labels, schema, inner)
    )
    sentence = constraints + labels.full_stop if constraints else ""
    about = join_texts([text[:MAX_DESCRIPTION_CHARS], sentence], ". ")
    return mark_deprecated(about, labels) if deprecated else about.strip()


def _constraints(labels: SectionLabels, schema: Schema, inner: Schema) -> Iterator[str]:
    default = schema.get("default")
    if default is not None and len(as_text(default.value)) <= _MAX_VALUE_CHARS:
        yield label_with(labels.default, f"`{as_text(default.value)}`")
    yield from _range_constraint(labels.range, inner, "minimum", "maximum")
    yield from _range_constraint(labels.length, inner, "minLength", "maxLength")
    yield from _range_constraint(labels.count, schema, "minItems", "maxItems")
    pattern = inner.text("pattern")
    if pattern and len(pattern) <= _MAX_VALUE_CHARS:
        yield label_with(labels.pattern, f"`{pattern}`")
    if schema.is_nullable:
        yield labels.nullable


def _range_constraint(label: str, schema: Schema, low: str, high: str) -> Iterator[str]:
    low_text, low_sign = _limit_with_sign(schema, low, ">", "≥")
    high_text, high_sign = _limit_with_sign(schema, high, "<", "≤")
    if low_text and high_text and (low_sign, high_sign) == ("≥", "≤"):
        yield label_with(label, low_text + (f"–{high_text}" if high_text != low_text else ""))
    elif low_text or high_text:
        both = (
            f"{low_sign} {low_text}" if low_text else "",
            f"{high_sign} {high_text}" if high_text else "",
        )
        yield label_with(label, ", ".join(filter(None, both)))


def _limit_with_sign(
    schema: Schema, key: str, exclusive_sign: str, inclusive_sign: str
) -> tuple[str, str]:
    """Return the limit `key` and its sign, such as `5` and `≥`.

    `exclusiveMinimum` and `exclusiveMaximum` are flags up to OpenAPI 3.0, and limits from OpenAPI 3.1 on.
    """
    exclusive = f"exclusive{key[0].upper()}{key[1:]}"
    limit = schema.text(exclusive)
    if limit and limit not in ("true", "false"):
        return limit, exclusive_sign
    return schema.text(key), exclusive_sign if schema.is_true(exclusive) else inclusive_sign
