"""Normalises the descriptions of HTTP operations in pages that Sphinx wrote.

The extension `sphinxcontrib-httpdomain` writes an operation as a definition list. The term is the
signature, such as `GET /users/(int:user_id)`. The definition contains a list of fields such as "Query
Parameters".
"""

import re

from bs4 import Tag

_SIGNATURE = re.compile(r"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)(/.*)")
"""A signature without spaces."""
_PARAMETER = re.compile(r"\((?:[^():/]{1,40}:)?([\w-]{1,80})\)")
"""A parameter of a signature, possibly with its type: `(int:user_id)`."""
_CLASSES = ["http", "get", "post", "put", "patch", "delete", "head", "options"]
_TITLES = {"Parameters": "Path Parameters", "Form Parameters": "Body Form Parameters"}
"""Maps the title of a field to a title that says where its parameters are sent."""


def mark_operations(content: Tag) -> None:
    """Turn the signatures of operations below `content` into code, and their fields into labels with lists.

    A parameter in a signature becomes a placeholder such as `{user_id}`.
    """
    for description in content.find_all("dl", class_=_CLASSES):
        terms = description.find_all("dt", recursive=False)
        signatures = [_SIGNATURE.fullmatch("".join(term.get_text().split())) for term in terms]
        if not all(signatures):
            continue
        for term, signature in zip(terms, filter(None, signatures), strict=True):
            path = _PARAMETER.sub(r"{\1}", signature[2])
            _replace(term, "p", "code", f"{signature[1]} {path}")
        for definition in description.find_all("dd", recursive=False):
            definition.name = "div"
        description.name = "div"
        for fields in description.find_all("dl", class_="field-list"):
            _rewrite_fields(fields.find_all(["dt", "dd"], recursive=False))
            fields.name = "div"
        for fields in description.find_all("table", class_="field-list"):  # of Sphinx before 2.0
            parts = fields.find_all(["th", "td"], class_=["field-name", "field-body"])
            _rewrite_fields(parts)
            fields.replace_with(*(part.extract() for part in parts))


def _replace(element: Tag, name: str, mark: str, text: str) -> None:
    """Rename `element`, and replace its content by an element `mark` that contains `text`."""
    element.clear()
    element.name = name
    inner = Tag(name=mark)
    inner.string = text
    element.append(inner)


def _rewrite_fields(parts: list[Tag]) -> None:
    """Turn the titles of fields into bold labels, and the names of headers into code."""
    title = ""
    for part in parts:
        if part.name in ("dt", "th"):
            title = " ".join(part.get_text().split()).rstrip(": ")
            _replace(part, "p", "strong", f"{_TITLES.get(title, title)}:")
            continue
        part.name = "div"
        for item in part.find_all("li") if title.endswith("Headers") else ():
            link = item.find("a")
            if link is not None and item.get_text().strip().startswith(link.get_text()):
                link.name = "code"
