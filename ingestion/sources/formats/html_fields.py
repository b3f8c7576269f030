"""Finds the fields of an API that an HTML page describes in `<div>` elements, without tables or lists.

The head of such a field is an element with a name, a type and possibly "required", each in an element of
its own. It becomes a paragraph such as "`owner.name` string required" with the full name of the field.
"""

import re

from bs4 import Tag

_NAME = re.compile(r"[A-Za-z_$][\w.$\[\]-]*", re.ASCII)
_TYPE = re.compile(
    r"(?:(?:array|list)(?: of |<)?)?(?:strings?|integers?|int(?:32|64)?|numbers?|bool(?:ean)?s?"
    r"|objects?|array|enums?|floats?|doubles?|decimal|timestamp|date(?:-?time)?|uuid|file|map|any)(?:\[\]|>|\s*[(<|].*)?",
    re.IGNORECASE,
)
_HEADS = ["div", "p", "header", "h3", "h4", "h5", "h6", "section", "label"]
MAX_PARTS = 6
"""Maximum number of elements in the head of a field."""


def mark_fields(content: Tag) -> None:
    """Turn each head of a field below `content` into a paragraph with its full name."""
    names: dict[int, str] = {}
    for head in content.find_all(_HEADS):
        if head.find_parent(["table", "li", "dl", "pre"]) or not (texts := _parts(head)):
            continue
        parent = _parent_name(head, names)
        plain = re.sub(r"\[\w*\]", "", texts[0])
        is_full = not parent or plain.startswith(f"{parent}.")
        names[id(head)] = plain if is_full else f"{parent}.{plain}"
        head.clear()
        head.name = "p"
        code = Tag(name="code")
        code.string = names[id(head)]
        head.extend([code, " ".join(["", *texts[1:]])])


def _parts(head: Tag) -> list[str]:
    """Return the texts of the elements in the head of a field; empty if it is none."""
    parts = [part for part in head.children if isinstance(part, Tag)]
    texts = [" ".join(part.get_text(" ").split()) for part in parts]
    texts = [text for text in texts if text]
    own = "".join(text for text in head.find_all(string=True, recursive=False)).strip()
    if own or not 2 <= len(texts) <= MAX_PARTS or not _NAME.fullmatch(texts[0]):
        return []
    return texts if _TYPE.fullmatch(texts[1]) else []


def _parent_name(head: Tag, names: dict[int, str]) -> str:
    """Return the full name of the field in whose element a head is; empty if it is in none."""
    element = head.parent
    while element is not None:
        for sibling in element.previous_siblings:
            if id(sibling) in names:
                return names[id(sibling)]
        element = element.parent
    return ""
