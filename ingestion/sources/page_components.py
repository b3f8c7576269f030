"""Replaces the block tags of GitBook, and adds tables for the lists of objects in MDX components.

GitBook describes an operation with the tags `swagger`, `swagger-parameter` and `swagger-response`. Until
2021, it used `api-method` and tags whose names begin with `api-method`. The tag of an operation becomes a
heading, followed by the method and URL. Block tags such as `{% hint %}` become MDX components. Tags that
only arrange their content are removed. A block tag of any name becomes a method and URL if its argument is
a method and its content is a URL.

A component `<Endpoint errors={[{ code: 'sold_out', text: 'Nothing left' }]} />` is followed by a table with
the label "errors" and the columns `code` and `text`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from ingestion.sources.api_pages.columns import columns_of
from ingestion.sources.api_pages.roles import role_of_title
from ingestion.text.components import (
    ATTRIBUTES,
    METHOD,
    attributes_of,
    objects_of,
    text_of_expression,
)
from ingestion.text.markdown_blocks import (
    escape_borders,
    markdown_table,
    nesting_indent,
    outside_code,
    replace_outside_code,
    split_code,
)

MIN_LEVEL = 2
"""Minimum level of the heading of an operation; the title of a page has level 1."""

_TAG = outside_code(
    r"(?m:^)(?P<heading>#{1,6})(?=[ \t])"
    r"|\{%[ \t]*+(?P<end>end)?(?P<tag>[a-z]++(?:-[a-z]++)*+)"
    r"(?P<attributes>(?:[^%{\n]|%(?!\})|\{(?!%))*+)%\}"
)
"""A block tag of GitBook in a page, or the `#` signs of a heading."""
_TAG_WITH_TEXT = re.compile(
    r"(?P<tag>\{%[ \t]*+api-method(?:-response-example)?[ \t][^%\n]*+)%\}\s*+"
    r"\{%[ \t]*+api-method-(?P<name>summary|response-example-description)[ \t]*+%\}"
    r"(?P<text>[^{]{0,300}+)\{%[ \t]*+endapi-method-(?P=name)[ \t]*+%\}"
)
"""A tag, and the tag after it that contains its summary or description."""
_TAG_AROUND_URL = re.compile(
    rf"\{{%[ \t]*+(?P<tag>[\w-]++)[ \t]++[\"']?(?P<method>{METHOD.pattern})[\"']?[ \t]*+%\}}"
    r"\s*+(?P<url>(?:https?://|/)[^\s%]*+)\s*+\{%[ \t]*+end(?P=tag)[ \t]*+%\}",
    re.IGNORECASE,
)
"""A URL in a block tag whose argument is a method: `{% call "put" %} /boats {% endcall %}`."""
_REMOVED_TAGS = re.compile(
    r"tabs|code|content-ref|file|stepper|step|columns?|updates?|(?:swagger|api-method|openapi)(?:-[a-z-]+)?"
)
"""Names of tags that are removed from a page. The content of their blocks stays."""
_PARAMETER_GROUP = re.compile(r"api-method-(path|query|body|form-data|headers)(?:-parameters)?")
_LOCATIONS = {"form-data": "body", "headers": "header"}


def replace_gitbook_tags(text: str) -> str:
    """Return a page with headings and components instead of the block tags of GitBook.

    Unknown tags, and tags in code, are unchanged.
    """
    if "{%" not in text:
        return text
    replacer = _TagReplacer()
    return "".join(
        part
        if is_code
        else replace_outside_code(_TAG, replacer.replace, _TAG_AROUND_URL.sub(_call, part))
        for is_code, part in split_code(_TAG_WITH_TEXT.sub(_with_text, text))
    )


def _call(match: re.Match[str]) -> str:
    return f"`{match['method'].upper()} {match['url']}`"


def _with_text(match: re.Match[str]) -> str:
    """Return a tag with its summary or description as an attribute."""
    name = match["name"].rpartition("-")[2]
    return f"{match['tag']} {_attribute(name, match['text'])} %}}"


class _TagReplacer:
    """Replaces the tags of a page in order."""

    def __init__(self) -> None:
        self._level = MIN_LEVEL
        """Level of the next operation's heading: the level of the last heading, but at least MIN_LEVEL."""
        self._location = ""
        """Where the parameters of the current block, such as `api-method-headers`, are sent."""

    def replace(self, match: re.Match[str]) -> str:
        """Return the text that replaces a tag or the start of a heading."""
        if match["heading"]:
            self._level = max(len(match["heading"]), MIN_LEVEL)
            return match[0]
        tag = match["tag"]
        if group := _PARAMETER_GROUP.fullmatch(tag):
            self._location = "" if match["end"] else _LOCATIONS.get(group[1], group[1])
        values = attributes_of(match["attributes"])
        if tag in ("swagger", "api-method", "openapi", "openapi-operation"):
            return "\n\n" if match["end"] else self._operation(values)
        component, values = self._component(tag, values)
        if component:
            attributes = " ".join(_attribute(name, value) for name, value in values.items())
            return f"\n</{component}>\n" if match["end"] else f"\n<{component} {attributes}>\n"
        return "" if _REMOVED_TAGS.fullmatch(tag) else match[0]

    def _operation(self, values: Mapping[str, str]) -> str:
        """Return an operation's summary as a heading, then its method and URL.

        The result is empty if `values` contain no valid method.
        """
        method = values.get("method", "")
        if not METHOD.fullmatch(method):
            return ""
        url = _url(values.get("baseUrl") or values.get("host", ""), values.get("path", ""))
        summary = values.get("summary", "").strip()
        heading = f"{'#' * self._level} {summary}" if summary else ""
        return f"\n\n{heading}\n\n`{method.upper()} {url}`\n\n"

    def _component(self, tag: str, values: dict[str, str]) -> tuple[str, dict[str, str]]:
        """Return the name and the attributes of the component that replaces a tag.

        Both are empty if no component replaces it.
        """
        if tag == "hint":
            return values.get("style", "info").capitalize(), {}
        if tag == "tab":
            return "Tab", {"title": values.get("title", "")}
        if tag in ("swagger-parameter", "api-method-parameter"):
            return "Parameter", {"in": self._location, **values}
        if tag in ("swagger-response", "api-method-response-example"):
            status = values.get("status") or values.get("httpCode", "")
            return "Response", {"status": status, "description": values.get("description", "")}
        return "", {}


def _url(base: str, path: str) -> str:
    """Return the URL of an operation. A base that is not a URL, path or placeholder is ignored."""
    base, path = base.replace("\\", "").rstrip("/"), path.replace("\\", "").lstrip("/")
    is_base = base.startswith(("http://", "https://", "/", "{"))
    return f"{base}/{path}".rstrip("/") if is_base else f"/{path}"


def _attribute(name: str, value: str) -> str:
    text = " ".join(value.split()).replace('"', "'")
    return f'{name}="{text}"'


# --- lists of objects -----------------------------------------------------------------------------

MAX_DEPTH = 10
"""Maximum depth of nested lists of fields."""

_COMPONENT = re.compile(rf"^[ \t]*<([A-Z][\w.]*){ATTRIBUTES}\s*/?>", re.MULTILINE)
_LIST_ATTRIBUTE = re.compile(r"=\s*\{\s*\[\s*\{")
"""The start of a list of objects that is the value of an attribute: `={[{`."""
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")

_Row = Mapping[str, str]
"""The cells of a table row by column name, or the properties of the object from which a row is made."""


def convert_lists_to_tables(text: str) -> str:
    """Return `text` with tables below the components whose attributes contain lists of objects.

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
    """Return the list of objects in `value` as a table; empty if it lists no fields, errors or permissions.

    The label above the table is the name of the attribute or, if this name does not say what the table
    contains (see `role_of_title`), the name of the component. If neither name says it, the table has no
    label.
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
    table = markdown_table([header, *lines])
    return f"\n\n**{label}**\n\n{table}\n\n" if label else f"\n\n{table}\n\n"


def _rows(objects: Sequence[_Row], depth: int) -> Iterator[_Row]:
    """Yield a row for each object. A list of objects inside an object becomes indented rows below it."""
    for properties in objects if depth < MAX_DEPTH else ():
        nested = {name: found for name, value in properties.items() if (found := objects_of(value))}
        indent = nesting_indent(depth)
        scalars = [(name, value) for name, value in properties.items() if name not in nested]
        yield {
            name: (indent if index == 0 else "") + _cell(value)
            for index, (name, value) in enumerate(scalars)
        }
        for found in nested.values():
            yield from _rows(found, depth + 1)


def _cell(value: str) -> str:
    return escape_borders(" ".join(text_of_expression(value).split()))
