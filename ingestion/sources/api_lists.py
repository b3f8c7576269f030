"""Reads the parameters in lists and sentences of API pages, with their nesting."""

import re

from ingestion.sources.api_columns import text_of
from ingestion.sources.api_tables import nest, says_required, without_final_mark
from schemas.api_document import AllowedValue, Parameter

LIST_ITEM = re.compile(
    r"^(?P<name>(?:\*\*)?`[^`]+`(?:\*\*)?|\*\*[\w.\[\]-]+\*\*|[A-Za-z_][\w.\[\]-]*(?=\s*[(（:：])"
    r"|[A-Za-z_][\w.\[\]-]*(?=\s+(?:string|integer|int|number|boolean|bool|object|array|enum|float|double|long"
    r"|timestamp)(?:\[\])?(?:[ \t]*(?:\n|$|[,(（—–:-]|(?:required|optional|Required|Optional|必填|可选)))))"
    r"\s*(?P<rest>.*)$",
    re.DOTALL,
)
_DESCRIBED = re.compile(
    r"(?:\*\*)?`[A-Za-z_][\w.\[\]-]*`(?:\*\*)?\s*[:：–—-]|\*\*[A-Za-z_][\w.\[\]-]*\*\*\s*[–—-]"
)
_ITEM_TYPE = re.compile(
    r"^[\s—–:-]*[(（\[]\s*((?:\[[^\]]*\]|[^)）\]])*)[)）\]]"
    r"|^[\s—–:-]*[*_`]*\b((?:string|integer|int(?:32|64)?|number|boolean|bool|object|long|float|double"
    r"|decimal|enum|hash|map|dict(?:ionary)?|list|file|date(?:time)?|timestamp|uuid|any"
    r"|array(?:\s+of\s+\w+|<\w+>)?)(?:\[\])?(?:\s+or\s+\w+)?)(?!\w)[*_`]*",
    re.IGNORECASE,
)
_ENUMERATED = re.compile(r"`[A-Za-z_][\w.\[\]-]*`(?:\s*[(（][^()（）]*[)）])?")
_ENUMERATION = re.compile(
    rf"(?:{_ENUMERATED.pattern}(?:\s*[,，、]\s*|\s+and\s+|\s*和\s*)){{1,40}}{_ENUMERATED.pattern}(?=\s*(?:[.。]|$))"
)
"""Names in code at the start of a paragraph, up to the end of the sentence."""
_ITEM_NAMES = re.compile(r"`\w+`(?:\s*[,，、/]\s*`\w+`)+(?=\s*[(（])")
_FACT_SEPARATOR = re.compile(r"[,，;；]\s*(?![^\[<]*[\]>])")
"""A comma or semicolon outside brackets."""
_TYPE = re.compile(
    r"(?!(?:default|max|min|up to|at most)\b)[A-Za-z_$][\w .<>\[\],|/?:$&-]*"
    r"|(?:字符|整|数|布尔|对象|列表|枚举|长整|浮点|时间|日期|文件)[\u4e00-\u9fff]*",
    re.IGNORECASE,
)
"""A type in parentheses. The facts next to it are limits and defaults."""
_SCALAR = re.compile(
    r"(?:string|integer|int(?:32|64)?|long|number|float|double|decimal|bool(?:ean)?|enum)\b[^\[\]<>]*",
    re.IGNORECASE,
)
"""A type without fields."""
_FLAG = re.compile(r"\s*(required|optional|必填|必选|可选|选填)\s+", re.IGNORECASE)
_STATED = re.compile(
    r"[,，;；]?\s*\b(?:required|optional)\b\s*|[,，;；]?\s*(?:必填|必选|可选|选填)\s*",
    re.IGNORECASE,
)


def listed_parameters(
    markdown: str, location: str = "", *, is_announced: bool = False
) -> tuple[Parameter, ...]:
    """Return the parameters of a list such as "- `name` (type, required): text".

    Indented items become children of the item above them. The result is empty if an item is not a
    parameter, or if no item has a type. If a text says that parameters follow (`is_announced`), names in
    code with descriptions are enough.
    """
    items = [item for nested in _nested_items(markdown) for item in _each_name(*nested)]
    matches = [(width, LIST_ITEM.match(text)) for width, text in items]
    is_typed = any(match and _ITEM_TYPE.match(match["rest"]) for _, match in matches)
    if not is_typed and not (is_announced and items and all(_DESCRIBED.match(i) for _, i in items)):
        return ()
    if not all(match for _, match in matches):
        return ()
    found = nest([(w, _listed_parameter(match, location)) for w, match in matches if match])
    return tuple(map(_with_values, found))


def enumerated_parameters(paragraph: str, location: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a paragraph such as "`name`, `limit` (integer), `cursor`."; may be empty."""
    match = _ENUMERATION.match(paragraph)
    items = _ENUMERATED.findall(match[0]) if match else []
    found = filter(None, map(LIST_ITEM.match, items))
    return nest([(0, _listed_parameter(item, location)) for item in found])


def _with_values(parameter: Parameter) -> Parameter:
    """Turn the items below a parameter into its allowed values if its type cannot have fields."""
    below = parameter.children
    if below and _SCALAR.fullmatch(parameter.type):
        values = tuple(AllowedValue(value=c.name, meaning=c.description) for c in below)
        return parameter.model_copy(update={"children": (), "values": values})
    return parameter.model_copy(update={"children": tuple(map(_with_values, below))})


_HEADED_ITEM = re.compile(r"#{1,6} +([\w.$@\\\[\]-]+)(?=\s|$)")
"""The heading with which a list item begins in HTML lists of fields."""
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•]|\d+[.)])\s+(?P<text>.*)$")


def _nested_items(markdown: str) -> list[tuple[int, str]]:
    """Return the indentation and the text of each item of a list, on all levels."""
    items: list[tuple[int, str]] = []
    for line in markdown.split("\n"):
        if match := _BULLET.match(line.expandtabs(4)):
            text = _HEADED_ITEM.sub(lambda found: f"`{text_of(found[1])}`", match["text"], count=1)
            items.append((len(match["indent"]), text.strip()))
        elif items and line.strip():
            items[-1] = (items[-1][0], f"{items[-1][1]}\n{line.strip()}")
    return items


def _each_name(width: int, text: str) -> list[tuple[int, str]]:
    """Return an item for each name in an item such as "`x`, `y` (integer): text"."""
    several = _ITEM_NAMES.match(text)
    names = re.findall("`[^`]+`", several[0]) if several else []
    return [(width, name + text[several.end() :]) for name in names] if several else [(width, text)]


def _listed_parameter(match: re.Match[str], location: str) -> Parameter:
    flag = _FLAG.match(match["rest"])
    text = match["rest"][flag.end() :] if flag else match["rest"]
    kind = _ITEM_TYPE.match(text)
    stated = " ".join(filter(None, [flag and flag[1], kind and (kind[1] or kind[2])]))
    rest = text[kind.end() :] if kind else text
    is_required = re.search(r"\brequired\b|必填|必选", stated, re.IGNORECASE)
    is_optional = re.search(r"\bnot required\b|\boptional\b|非必填", stated, re.IGNORECASE)
    required = bool(is_required and not is_optional) or says_required(text_of(rest))
    facts = _FACT_SEPARATOR.split(_STATED.sub("", text_of(stated)))
    limits = [fact.strip() for fact in facts if not _TYPE.fullmatch(fact.strip())]
    about = without_final_mark(text_of(rest)).strip(" :：-–—*,，.")
    return Parameter(
        name=text_of(match["name"]),
        type=", ".join(fact.strip() for fact in facts if _TYPE.fullmatch(fact.strip())),
        required=required,
        description="; ".join(filter(None, [*limits, about])),
        location=location,
    )
