"""What a schema says of a value, in the few words that fit a table's cell."""

from collections.abc import Iterator

from prompts.user_text import SectionLabels
from ingestion.sources.openapi.operations import as_text
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.schema import Schema, SchemaReader
from schemas.api_document import AllowedValue

MAX_ENUM_VALUES = 200
"""Values of an enumeration."""

MAX_DESCRIPTION_CHARS = 20_000
"""Characters of one description."""

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
    """`string (uuid)`, `array<object>`, `string | integer`. Raises SourceError."""
    if depth >= _MAX_TYPE_DEPTH:
        return "…"
    names = [_format_type(reader, schema, name, depth) for name in schema.types[:_MAX_TYPES]]
    if schema.variants and names in ([], ["object"]):
        variants = [reader.read(each) for each in schema.variants[:_MAX_TYPES]]
        names = [type_name(reader, each, depth + 1) for each in variants]
    if not names and schema.tuple_items:  # a list of types, as some converters write it
        several = [reader.read(each) for each in schema.tuple_items[:_MAX_TYPES]]
        names = [
            "null" if _is_null(each) else type_name(reader, each, depth + 1) for each in several
        ]
    return " | ".join(dict.fromkeys(names)) or _type_from_values(schema) or "any"


def _is_null(schema: Schema) -> bool:
    said = schema.say("type")
    return said is not None and said.value == "null"


def _format_type(reader: SchemaReader, schema: Schema, name: str, depth: int) -> str:
    if name == "array":
        if schema.items:
            return f"array<{type_name(reader, reader.read(*schema.items), depth + 1)}>"
        inner = [reader.read(each) for each in schema.tuple_items[:_MAX_TYPES]]
        names = dict.fromkeys(type_name(reader, each, depth + 1) for each in inner)
        return f"array<{' | '.join(names)}>" if names else "array"
    form = schema.text("format")[:40]
    if name == "file" or (name == "string" and form in _BINARY_FORMATS):
        return "file"
    if name == "string" and schema.text("contentMediaType"):
        return "file"
    return f"{name[:40]} ({form})" if form and form != name else name[:40]


def _type_from_values(schema: Schema) -> str:
    """The type of the only values there are."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    found = (names.get(type(value), "") for value in _enum_values(schema))
    return " | ".join(dict.fromkeys(filter(None, found)))


def _enum_values(schema: Schema) -> list[object]:
    constant, listed = schema.say("const"), schema.say("enum")
    if constant is not None:
        return [constant.value]
    return listed.value[:MAX_ENUM_VALUES] if listed and isinstance(listed.value, list) else []


def allowed_values(reader: SchemaReader, schema: Schema) -> tuple[AllowedValue, ...]:
    """The values of an enumeration, be it one of alternatives, with what they mean.

    Raises SourceError.
    """
    values = list(_values_with_meanings(schema))
    for each in schema.variants[:MAX_ENUM_VALUES]:
        variant = reader.read(each)
        if not variant.structure:
            meaning = variant.text("description") or variant.text("title")
            values += [(value, known or meaning) for value, known in _values_with_meanings(variant)]
    texts = [(as_text(value)[:_MAX_VALUE_CHARS], meaning) for value, meaning in values]
    return tuple(AllowedValue(value=v, meaning=m) for v, m in dict(texts).items())


def _values_with_meanings(schema: Schema) -> Iterator[tuple[object, str]]:
    values = [value for value in _enum_values(schema) if value is not None]
    said = next((found for key in _MEANING_KEYS if (found := schema.say(key)) is not None), None)
    for number, value in enumerate(values):
        yield value, _meaning(said, number, as_text(value))


def _meaning(said: Node | None, number: int, value: str) -> str:
    if said is None:
        return ""
    if isinstance(said.value, list):
        meaning = said.value[number] if number < len(said.value) else ""
        return meaning if isinstance(meaning, str) else ""
    return said.text(value)


def describe_schema(labels: SectionLabels, schema: Schema, inner: Schema, said: Node | None) -> str:
    """What `said` (else the schema, else what its lists hold) is for, and how it is bounded."""
    text = (said.text("description") if said else "") or schema.text("description")
    text = text or inner.text("description") or schema.text("title")
    deprecated = schema.flag("deprecated") or (said is not None and said.flag("deprecated"))
    words = [labels.deprecated_parameter] if deprecated else []
    bounds = list(_constraints(labels, schema, inner))
    if text:
        stop = labels.full_stop if bounds and text[-1] not in _SENTENCE_ENDS else ""
        words.append(text[:MAX_DESCRIPTION_CHARS] + stop)
    words += ["; ".join(bounds) + labels.full_stop] if bounds else []
    return " ".join(words)


def _constraints(labels: SectionLabels, schema: Schema, inner: Schema) -> Iterator[str]:
    default = schema.say("default")
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
    least, least_mark = _limit_with_sign(schema, low, ">", "≥")
    most, most_mark = _limit_with_sign(schema, high, "<", "≤")
    if least and most and (least_mark, most_mark) == ("≥", "≤"):
        yield f"{label}: {least}" + (f"–{most}" if most != least else "")
    elif least or most:
        both = (f"{least_mark} {least}" if least else "", f"{most_mark} {most}" if most else "")
        yield f"{label}: {', '.join(filter(None, both))}"


def _limit_with_sign(schema: Schema, key: str, open_mark: str, closed_mark: str) -> tuple[str, str]:
    """A bound and its sign: `exclusiveMinimum` is a flag in 3.0 and the bound itself in 3.1."""
    exclusive = f"exclusive{key[0].upper()}{key[1:]}"
    own = schema.text(exclusive)
    if own and own not in ("true", "false"):
        return own, open_mark
    return schema.text(key), open_mark if schema.flag(exclusive) else closed_mark
