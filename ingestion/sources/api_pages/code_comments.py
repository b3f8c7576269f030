"""Reads the parameters that comments in a JSON example describe: `"amount": 20, // required, in cents`."""

import re
from collections.abc import Iterable, Iterator

from ingestion.sources.api_pages.parameters import listed_parameters
from ingestion.sources.api_pages.required import required_mark
from schemas.document import Parameter

MIN_COMMENTS = 2
"""Minimum number of fields with a comment; a single comment may describe the whole example."""

MIN_SHARE = 0.5
"""Minimum share of the fields that have a comment."""

_FIELD = re.compile(
    r"(?P<indent>[ \t]*)(?P<quote>[\"']?)(?P<name>[A-Za-z_$][\w.$-]*)(?P=quote)[ \t]*:[ \t]*"
    r"(?:(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^']*'|\[[^\[\]]*\]|\{[^{}]*\}"
    r"|[^\"'/#\s]+(?: [^\"'/#\s]+)*)[ \t]*(?:,[ \t]*)?)?"
    r"(?:(?://+|(?<=\s)#)[ \t]*(?P<line>\S.*)|/\*+(?P<block>[^*]*)\*+/[ \t]*)?"
)
_BRACKETED = re.compile(r"[(（]([^()（）]*)[)）]\s*(.*)", re.DOTALL)
"""A comment that begins with a text in brackets: "(number: id of the boat) required", "(optional) size"."""
_VALUE_TYPES = (
    ("string", re.compile(r"[\"']")),
    ("object", re.compile(r"\{")),
    ("array", re.compile(r"\[")),
    ("boolean", re.compile(r"(?:true|false)\b")),
    ("number", re.compile(r"-?\d")),
)


def commented_parameters(code: str, location: str = "") -> tuple[Parameter, ...]:
    """Return the fields in a code block as parameters; empty if too few of them have a comment.

    `code` is JSON, or code in another language with lines such as `name: value`. Other lines are ignored.
    The comment of a field becomes the description of the parameter, and the type of its value becomes the
    type. All parameters get the location `location`.
    """
    fields = list(filter(None, map(_FIELD.fullmatch, code.splitlines())))
    comments = [field for field in fields if _comment(field)]
    if len(comments) < MIN_COMMENTS or len(comments) < MIN_SHARE * len(fields):
        return ()
    found = listed_parameters("\n".join(map(_item, fields)), location, is_announced=True)
    return tuple(_distinct(found))


def _comment(field: re.Match[str]) -> str:
    return (field["line"] or field["block"] or "").strip()


def _item(field: re.Match[str]) -> str:
    """Return a field as the item of a list of parameters."""
    kind = next((name for name, start in _VALUE_TYPES if start.match(field["value"] or "")), "")
    comment = _comment(field)
    if bracketed := _BRACKETED.fullmatch(comment):
        inner, outer = bracketed.groups()
        # In "(optional) size", the brackets are kept: "size (optional)" still shows that this is a mark.
        has_mark_outside = not outer or required_mark(outer) is not None
        comment = f"{outer} {inner}".strip() if has_mark_outside else f"{outer} ({inner})"
    about = f" ({kind}): {comment}" if kind else f": {comment}"
    return f"{field['indent'].expandtabs(4)}- `{field['name']}`{about}"


def _distinct(parameters: Iterable[Parameter]) -> Iterator[Parameter]:
    """Yield the first parameter of each name, because each object in a list repeats the same fields."""
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name not in seen:
            seen.add(parameter.name)
            children = tuple(_distinct(parameter.children))
            yield parameter.model_copy(update={"children": children})
