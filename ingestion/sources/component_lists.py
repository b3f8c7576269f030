"""Turns lists of objects in the attributes of MDX components into tables.

`<Endpoint errors={[{ code: 'sold_out', text: 'Nothing left' }]} />` gets a table with the columns `code`
and `text` below it, labelled "errors".
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ingestion.sources.api_columns import columns_of
from ingestion.sources.api_roles import role_of_title
from ingestion.text.components import ATTRIBUTES, attributes_of
from ingestion.text.markdown_blocks import split_code
from ingestion.text.object_literals import objects_of, text_of_expression

MAX_DEPTH = 10
"""Maximum depth of nested lists of fields."""

_COMPONENT = re.compile(rf"^[ \t]*<([A-Z][\w.]*){ATTRIBUTES}\s*/?>", re.MULTILINE)
_LIST_ATTRIBUTE = re.compile(r"=\s*\{\s*\[\s*\{")
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BAR = re.compile(r"(?<!\\)\|")

_Row = Mapping[str, str]


def tables_of_lists(text: str) -> str:
    """Return `text` with a table below a component for each list of objects in its attributes.

    Lists that describe no fields, errors or permissions get no table.
    """
    if not _LIST_ATTRIBUTE.search(text):
        return text
    parts = (
        part if is_code else _COMPONENT.sub(_with_tables, part)
        for is_code, part in split_code(text)
    )
    return "".join(parts)


def _with_tables(component: re.Match[str]) -> str:
    if not _LIST_ATTRIBUTE.search(component[0]):
        return component[0]
    tag = component[0].strip().removeprefix(f"<{component[1]}").rstrip("/>")
    tables = (_table(component[1], *attribute) for attribute in attributes_of(tag).items())
    return "".join([component[0], *tables])


def _table(component: str, attribute: str, value: str) -> str:
    """Return a list of objects as a table; empty if it describes no fields, errors or permissions.

    The label of the table is the name of the attribute or, if `role_of_title` finds no role in it, of the
    component. If it finds none in either, there is no label.
    """
    rows = list(_rows(objects_of(value), 0))
    names = list(dict.fromkeys(name for row in rows for name in row))
    header = [_WORD_START.sub(" ", name) for name in names]
    columns = columns_of(header)
    if len(names) < 2 or not any(kind in columns for kind in ("name", "code", "scope")):
        return ""
    words = (_WORD_START.sub(" ", name) for name in (attribute, component))
    label = next(filter(role_of_title, words), "")
    lines = [[row.get(name, "") for name in names] for row in rows]
    table = "\n".join(
        f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(names), *lines]
    )
    return f"\n\n**{label}**\n\n{table}\n\n" if label else f"\n\n{table}\n\n"


def _rows(objects: Sequence[_Row], depth: int) -> Iterator[_Row]:
    """Yield a row for each object. Lists of objects in an object become rows that are indented below it."""
    for properties in objects if depth < MAX_DEPTH else ():
        nested = {name: found for name, value in properties.items() if (found := objects_of(value))}
        indent = "&nbsp;" * 2 * depth + "└ " * bool(depth)
        yield {
            name: indent * (index == 0) + _cell(value)
            for index, (name, value) in enumerate(properties.items())
            if name not in nested
        }
        for found in nested.values():
            yield from _rows(found, depth + 1)


def _cell(value: str) -> str:
    return _BAR.sub(r"\\|", " ".join(text_of_expression(value).split()))
