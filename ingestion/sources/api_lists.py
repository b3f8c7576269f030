"""Reads the parameters in lists and sentences of API pages, with their nesting."""

import re
from collections.abc import Sequence

from ingestion.sources.api_columns import text_of
from ingestion.sources.api_parameters import (
    OBJECT,
    SCALAR,
    SIMPLE_TYPE,
    TYPE,
    is_simple_type,
    nest,
    required_mark,
    without_final_mark,
)
from schemas.api_document import AllowedValue, Parameter

_TYPE_NAME = (
    r"(?:string|str|integer|int(?:32|64)?|number|boolean|bool|object|long|float|double|decimal|enum|hash|map"
    r"|dict(?:ionary)?|list|file|date(?:-?time)?|timestamp|uuid|any|array)"
    r"(?:\s+of\s+\w+|\s?<[\w, ]{1,40}>|\s?\[\w*\]\w*)?"
)
"""A type, possibly with that of its elements: `array of strings`, `array<string>`, `array [string]`."""
LIST_ITEM = re.compile(
    r"^(?P<name>(?:\*\*)?`[^`]+`(?:\*\*)?|\*\*[\w.\[\]-]+\*\*|[A-Za-z_][\w.\[\]-]*(?=\s*[(（:：])"
    rf"|(?P<typed>[A-Za-z_][\w.\[\]-]*)(?=\s+(?:[·|–—-]\s+)?(?i:{_TYPE_NAME})"
    r"(?:[ \t]*(?:\n|$|[,，(（—–:·|-]|(?i:required|optional)|必填|可选))))"
    r"\s*(?P<rest>.*)$",
    re.DOTALL,
)
_DESCRIBED = re.compile(
    r"(?:\*\*)?`[A-Za-z_][\w.\[\]-]*`(?:\*\*)?\s*[:：–—-]|\*\*[A-Za-z_][\w.\[\]-]*\*\*\s*[–—-]"
    r"|\*\*[a-z_][\w.\[\]-]*\*\*\s*[:：]"
)
_ITEM_TYPE = re.compile(
    r"^[\s—–:：·|,，-]*[(（\[]\s*((?:\[[^\]]{0,200}\]|[^)）\]])*)[)）\]]"
    rf"|^[\s—–:：·|,，-]*[*_`]*\b({_TYPE_NAME}(?:\s+or\s+\w+)?)(?!\w)[*_`]*",
    re.IGNORECASE,
)
_ENUMERATED = re.compile(r"`[A-Za-z_][\w.\[\]-]*`(?:\s*[(（][^()（）]*[)）])?")
_ENUMERATION = re.compile(
    rf"(?:{_ENUMERATED.pattern}(?:\s*[,，、]\s*|\s+and\s+|\s*和\s*)){{1,40}}{_ENUMERATED.pattern}(?=\s*(?:[.。]|$))"
)
"""Names in code at the start of a paragraph, up to the end of the sentence."""
_ITEM_NAMES = re.compile(r"`\w+`(?:\s*[,，、/]\s*`\w+`)+(?=\s*[(（])")
_FORMAT = re.compile(
    r"\A\s*[(（](?!(?:required|optional)\b)([A-Za-z][\w-]{1,20})[)）]", re.IGNORECASE
)
"""The format after a type: "integer (int32)"."""
_FACT_SEPARATOR = re.compile(r"[,，;；]\s*(?![^\[<]*[\]>])")
"""A comma or semicolon outside brackets."""
_FLAG = re.compile(r"\A\s*(required|optional|必填|必选|可选|选填)\s+", re.IGNORECASE)
_STAR = re.compile(r"(?:\\\*|\*(?=[\s(（:：,，]|$))\s*")
"""The mark of a required parameter after its name."""
_STATED = re.compile(
    r"[,，;；]?\s*\b(?:required|optional)\b\s*|[,，;；]?\s*(?:必填|必选|可选|选填)\s*",
    re.IGNORECASE,
)
_CELL_ITEM = re.compile(r"(?:^|<br\s*/?>)(?=(?:&nbsp;|\s)*[-*•]\s)", re.IGNORECASE)
"""The start of an item of a list in a cell of a table, with the line break before it."""
_TYPE_WORD = re.compile(r"[A-Za-z]+")


def split_fields(cell: str, kind: str) -> tuple[str, tuple[Parameter, ...]]:
    """Return the description in a cell, and the fields that a list at its end describes.

    There are no fields if `kind`, the type of the described parameter, is a type without fields.
    """
    if "<br" not in cell or is_simple_type(kind):
        return cell, ()
    text, *items = _CELL_ITEM.split(cell)
    markdown = "\n".join(items).replace("&nbsp;", " ")
    found = listed_parameters(markdown, is_announced=OBJECT.search(kind) is not None)
    return (text if found else cell), found


def listed_parameters(
    markdown: str, location: str = "", *, is_announced: bool = False, is_required: bool = False
) -> tuple[Parameter, ...]:
    """Return the parameters of a list such as "- `name` (type, required): text".

    Indented items become children of the item above them. The result is empty if an item is not a
    parameter, or if no item has a type. If a text says that parameters follow (`is_announced`), names in
    code or bold with descriptions are enough. If a text says that they are required (`is_required`), items
    without a mark are required, including nested ones.
    """
    items = [item for nested in _nested_items(markdown) for item in _each_name(*nested)]
    matches = [(width, LIST_ITEM.match(text)) for width, text in items]
    rests = [match["rest"] for _, match in matches if match]
    is_typed = any(_ITEM_TYPE.match(rest) or _FLAG.match(rest) for rest in rests)
    if not is_typed and not (is_announced and items and all(_DESCRIBED.match(i) for _, i in items)):
        return ()
    if len(rests) < len(matches):
        return ()
    found = nest(
        [(w, _listed_parameter(match, location, is_required)) for w, match in matches if match]
    )
    return tuple(map(_with_values, found))


def are_typed_fields(items: Sequence[str]) -> bool:
    """Return whether all items of a list are names with a type, such as "`code` (string): text"."""
    return bool(items) and all(map(_is_typed_field, items))


def _is_typed_field(item: str) -> bool:
    match = LIST_ITEM.match(item)
    kind = _ITEM_TYPE.match(match["rest"]) if match else None
    word = _TYPE_WORD.match(kind[1] or kind[2]) if kind else None
    return word is not None and bool(SIMPLE_TYPE.fullmatch(word[0]) or OBJECT.match(word[0]))


def enumerated_parameters(paragraph: str, location: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a paragraph such as "`name`, `limit` (integer), `cursor`."; may be empty."""
    match = _ENUMERATION.match(paragraph)
    items = _ENUMERATED.findall(match[0]) if match else []
    found = filter(None, map(LIST_ITEM.match, items))
    return nest([(0, _listed_parameter(item, location)) for item in found])


def _with_values(parameter: Parameter) -> Parameter:
    """Turn the items below a parameter into its allowed values if its type cannot have fields."""
    below = parameter.children
    is_simple = parameter.type and is_simple_type(parameter.type)
    if below and (is_simple or SCALAR.fullmatch(parameter.type)):
        values = tuple(AllowedValue(value=c.name, meaning=c.description) for c in below)
        return parameter.model_copy(update={"children": (), "values": values})
    return parameter.model_copy(update={"children": tuple(map(_with_values, below))})


_HEADED_ITEM = re.compile(r"#{1,6} +([\w.$@\\\[\]-]+)(?=\s|$)")
"""A heading that starts a list item, in Markdown made from HTML."""
_SIGNATURE = re.compile(r"`([A-Za-z_$][\w.\[\]-]*)(\??): +([^`]+)`")
"""A name and its type in one code span: "`name: string`", "`name?: string`"."""
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•]|\d+[.)])\s+(?P<text>.*)$")


def _nested_items(markdown: str) -> list[tuple[int, str]]:
    """Return the indentation and the text of each item of a list, on all levels."""
    items: list[tuple[int, str]] = []
    for line in markdown.split("\n"):
        if match := _BULLET.match(line.expandtabs(4)):
            text = _HEADED_ITEM.sub(lambda found: f"`{text_of(found[1])}`", match["text"], count=1)
            text = _SIGNATURE.sub(_separate_type, text, count=1) if text.startswith("`") else text
            items.append((len(match["indent"]), text.strip()))
        elif items and line.strip():
            items[-1] = (items[-1][0], f"{items[-1][1]}\n{line.strip()}")
    return items


def _separate_type(signature: re.Match[str]) -> str:
    kind = signature[3].translate({ord("("): "[", ord(")"): "]"})
    return f"`{signature[1]}` ({kind}{', optional' if signature[2] else ''})"


def _each_name(width: int, text: str) -> list[tuple[int, str]]:
    """Return an item for each name in an item such as "`x`, `y` (integer): text"."""
    several = _ITEM_NAMES.match(text)
    names = re.findall("`[^`]+`", several[0]) if several else []
    return [(width, name + text[several.end() :]) for name in names] if several else [(width, text)]


def _listed_parameter(match: re.Match[str], location: str, default: bool = False) -> Parameter:
    """Return the parameter of an item. `default` says whether it is required if the item does not say."""
    flag, star = _FLAG.match(match["rest"]), _STAR.match(match["rest"])
    marked = flag or star
    text = match["rest"][marked.end() :] if marked else match["rest"]
    kind = _ITEM_TYPE.match(text)
    stated = " ".join(filter(None, [flag and flag[1], kind and (kind[1] or kind[2])]))
    rest = text[kind.end() :] if kind else text
    if kind and kind[2] and (form := _FORMAT.match(rest)):
        stated, rest = f"{stated}, {form[1]}", rest[form.end() :]
    mark = True if star else _stated_mark(stated)
    if mark is None:
        mark = required_mark(text_of(rest))
    facts = _FACT_SEPARATOR.split(_STATED.sub("", text_of(stated)))
    limits = [fact.strip() for fact in facts if not TYPE.fullmatch(fact.strip())]
    about = without_final_mark(text_of(rest)).strip(" :：-–—*,，.")
    return Parameter(
        name=text_of(match["name"]),
        type=", ".join(fact.strip() for fact in facts if TYPE.fullmatch(fact.strip())),
        required=default if mark is None else mark,
        description="; ".join(filter(None, [*limits, about])),
        location=location,
    )


def _stated_mark(text: str) -> bool | None:
    """Return whether the facts next to a name say that it is required; None if they do not say."""
    if re.search(r"\bnot required\b|\boptional\b|非必填|可选|选填", text, re.IGNORECASE):
        return False
    is_required = re.search(r"\brequired\b|必填|必选", text, re.IGNORECASE)
    return True if is_required else None
