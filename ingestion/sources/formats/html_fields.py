"""Finds the fields of an API that an HTML page describes in `<div>` elements, without tables or lists.

The head of such a field is an element with a name, a type and possibly "required", each in an element of
its own. It becomes a paragraph such as "`owner.name` string required" with the full name of the field.
"""

import re

from bs4 import Tag

_NAME = re.compile(r"[A-Za-z_$][\w.$\[\]-]*", re.ASCII)
_TYPE = re.compile(
    r"(?:(?:array|list)(?: of |<)?)?(?:strings?|integers?|int(?:32|64)?|numbers?|bool(?:ean)?s?"
    r"|objects?|array|enums?|floats?|doubles?|decimal|timestamp|date(?:-?time)?|uuid|file|map|any)(?:\[\]|>|\s*[(<|].*)?"
    r"(?:\s+(?:required|optional|conditional))?",
    re.IGNORECASE,
)
_FLAG = re.compile(r"required|optional|conditional|header|path|query|body", re.IGNORECASE)
_TEXT_BLOCKS = ["div", "p", "ul", "ol", "dl", "table", "section", "details", "pre"]
_HEADS = ["div", "p", "header", "h3", "h4", "h5", "h6", "section", "label"]
MAX_PARTS = 6
"""Maximum number of elements in the head of a field."""


def mark_fields(content: Tag) -> None:
    """Turn each head of a field below `content` into a paragraph with its full name."""
    names: dict[int, str] = {}
    for head in content.find_all(_HEADS):
        if head.find_parent(["table", "li", "dl", "pre"]):
            continue
        texts, rest = _head_and_rest(head)
        if not texts:
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
        head.insert_after(*rest)


def _head_and_rest(element: Tag) -> tuple[list[str], list[Tag]]:
    """Return the texts in the head of a field and the blocks after it; no texts if it is not a field.

    The rest begins with the first block after the type that is more than a flag such as "required".
    """
    tags = [part for part in element.children if isinstance(part, Tag)]
    pairs = [(tag, text) for tag in tags if (text := " ".join(tag.get_text(" ").split()))]
    parts, texts = [tag for tag, _ in pairs], [text for _, text in pairs]
    if len(texts) < 2 or not _NAME.fullmatch(texts[0]) or not _TYPE.fullmatch(texts[1]):
        return [], []
    if any(text.strip() for text in element.find_all(string=True, recursive=False)):
        return [], []
    is_rest = (
        part.name in _TEXT_BLOCKS and not _FLAG.fullmatch(text)
        for part, text in zip(parts[2:], texts[2:], strict=True)
    )
    end = next((i for i, found in enumerate(is_rest, 2) if found), len(parts))
    return (texts[:end], parts[end:]) if end <= MAX_PARTS else ([], [])


def _parent_name(head: Tag, names: dict[int, str]) -> str:
    """Return the full name of the field whose element contains `head`; empty if there is none."""
    element = head.parent
    while element is not None:
        for sibling in element.previous_siblings:
            if id(sibling) in names:
                return names[id(sibling)]
        element = element.parent
    return ""
