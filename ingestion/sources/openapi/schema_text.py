"""Describes schemas as text for table cells: types, allowed values, descriptions and constraints."""

from collections.abc import Iterator

from ingestion.sources.openapi.operations import as_text
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.schema import Schema, SchemaReader
from prompts.user_text import SectionLabels
from schemas.api_document import AllowedValue

MAX_ENUM_VALUES = 200
"""Maximum number of values of one enumeration."""

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
_SENTENCE_ENDS = ".。!！?？;；:："
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
            "null" if _is_null(element) else type_name(reader, element, depth + 1)
            for element in elements
        ]
    return " | ".join(dict.fromkeys(names)) or _type_from_values(schema) or "any"


def _is_null(schema: Schema) -> bool:
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
        if not variant.structure:
            meaning = variant.text("description") or variant.text("title")
            values += [(value, own or meaning) for value, own in _values_with_meanings(variant)]
    texts = [(as_text(value)[:_MAX_VALUE_CHARS], meaning) for value, meaning in values]
    return tuple(AllowedValue(value=text, meaning=meaning) for text, meaning in dict(texts).items())


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
    """Return the text for a value: a note if it is deprecated, its description, and its constraints.

    `inner` is the schema of its elements if the value is an array, otherwise `schema`. The description
    is the first one of `parameter`, `schema` and `inner`, or else the title of `schema`.
    """
    text = (parameter.text("description") if parameter else "") or schema.text("description")
    text = text or inner.text("description") or schema.text("title")
    deprecated = schema.flag("deprecated") or (
        parameter is not None and parameter.flag("deprecated")
    )
    sentences = [labels.deprecated_parameter] if deprecated else []
    constraints = list(_constraints(labels, schema, inner))
    if text:
        stop = labels.full_stop if constraints and text[-1] not in _SENTENCE_ENDS else ""
        sentences.append(text[:MAX_DESCRIPTION_CHARS] + stop)
    sentences += ["; ".join(constraints) + labels.full_stop] if constraints else []
    return " ".join(sentences)


def _constraints(labels: SectionLabels, schema: Schema, inner: Schema) -> Iterator[str]:
    default = schema.get("default")
    if default is not None and len(as_text(default.value)) <= _MAX_VALUE_CHARS:
        yield f"{labels.default}: `{as_text(default.value)}`"
    for label, low, high in (
        (labels.range, "minimum", "maximum"),
        (labels.length, "minLength", "maxLength"),
    ):
        yield from _range_constraint(label, inner, low, high)
    yield from _range_constraint(labels.count, schema, "minItems", "maxItems")
    pattern = inner.text("pattern")
    if pattern and len(pattern) <= _MAX_VALUE_CHARS:
        yield f"{labels.pattern}: `{pattern}`"
    if schema.is_nullable:
        yield labels.nullable


def _range_constraint(label: str, schema: Schema, low: str, high: str) -> Iterator[str]:
    low_text, low_sign = _limit_with_sign(schema, low, ">", "≥")
    high_text, high_sign = _limit_with_sign(schema, high, "<", "≤")
    if low_text and high_text and (low_sign, high_sign) == ("≥", "≤"):
        yield f"{label}: {low_text}" + (f"–{high_text}" if high_text != low_text else "")
    elif low_text or high_text:
        both = (
            f"{low_sign} {low_text}" if low_text else "",
            f"{high_sign} {high_text}" if high_text else "",
        )
        yield f"{label}: {', '.join(filter(None, both))}"


def _limit_with_sign(
    schema: Schema, key: str, exclusive_sign: str, inclusive_sign: str
) -> tuple[str, str]:
    """Return the limit `key` and its sign. `exclusiveMinimum` is a flag in OpenAPI 3.0, a limit in 3.1."""
    exclusive = f"exclusive{key[0].upper()}{key[1:]}"
    limit = schema.text(exclusive)
    if limit and limit not in ("true", "false"):
        return limit, exclusive_sign
    return schema.text(key), exclusive_sign if schema.flag(exclusive) else inclusive_sign
