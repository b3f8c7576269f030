"""Reads the parameters in lists and sentences of API pages: their types, marks and nesting.

A mark says whether a parameter is required. Nesting follows the indentation of parameters and their dotted
names.
"""

import re
from collections.abc import Sequence

from ingestion.sources.api_pages.calls import ANY_METHOD
from ingestion.sources.api_pages.columns import text_of
from ingestion.sources.api_pages.required import (
    by_contrast,
    fill_required,
    required_mark,
    without_final_mark,
)
from schemas.document import AllowedValue, Parameter

_TYPE_NAME = (
    r"(?:string|str|integer|int(?:32|64)?|number|boolean|bool|object|long|float|double|decimal|enum|hash|map"
    r"|dict(?:ionary)?|list|file|date(?:-?time)?|timestamp|uuid|any|array)"
    r"(?:\s+of\s+\w+|\s?<[\w, ]{1,40}>|\s?\[\w*\]\w*)?"
)
"""A type, possibly with the type of its elements: `array of strings`, `array<string>`, `array [string]`."""
LIST_ITEM = re.compile(
    r"^(?P<name>(?:\*\*)?`[^`]+`(?:\*\*)?|\*\*[\w.\[\]-]+\*\*(?!\s*\n\s*\[[^\]\n]*\]\()|[A-Za-z_][\w.\[\]-]*(?=\s*[(（:：])"
    rf"|(?P<typed>[A-Za-z_][\w.\[\]-]*)(?=\s+(?:[·|–—-]\s+)?(?i:{_TYPE_NAME})"
    r"(?:[ \t]*(?:\n|$|[,，(（—–:·|-]|(?i:required|optional)|必填|可选))))"
    r"\s*(?P<rest>.*)$",
    re.DOTALL,
)
"""An item that begins with a name. The name is in code or bold, or is followed by a bracket, colon or type.

The group `typed` matches only a name that is followed by a type. Bold text above a line that begins with a
link is the label of the link, not a name.
"""
_DESCRIBED = re.compile(
    r"(?:\*\*)?`[A-Za-z_][\w.\[\]-]*`(?:\*\*)?(?:\s*[:：–—-]|[ \t]*\n)|\*\*[A-Za-z_][\w.\[\]-]*\*\*\s*[–—-]"
    r"|\*\*[a-z_][\w.\[\]-]*\*\*\s*[:：]"
)
"""The start of an item with a name in code or bold, and a description: "`name`: text"."""
_ITEM_TYPE = re.compile(
    r"^[\s—–:：·|,，-]*[(（\[]\s*((?:\[[^\]]{0,200}\]|[^)）\]])*)[)）\]]"
    rf"|^[\s—–:：·|,，-]*[*_`]*\b({_TYPE_NAME}(?:\s+or\s+\w+)?)(?!\w)[*_`]*",
    re.IGNORECASE,
)
"""What follows a name: the text in brackets (group 1), or a type without brackets (group 2)."""
_PLAIN_NAME = re.compile(
    r"(?!(?:note|see|warning|example|default|tip|remark|hint|todo)\b)[a-z_][\w.-]*\s*[:：]\s"
)
"""A name before a colon at the start of an item, but not a word such as "note"."""
_NAME_IN_CODE = re.compile(
    r"`(?!(?:null|true|false)`)[A-Za-z_$][^`]*`(?!\s*(?:and|or|cannot|can't|are|values?|is never)\b)"
)
"""A name in code at the start of an item.

A name before a word such as "and" or "cannot" does not match, because the item is then a sentence.
"""
_ENUMERATED = re.compile(r"`[A-Za-z_][\w.\[\]-]*`(?:\s*[(（][^()（）]*[)）])?")
_ENUMERATION = re.compile(
    rf"(?:{_ENUMERATED.pattern}(?:\s*[,，、]\s*|\s+and\s+|\s*和\s*)){{1,40}}{_ENUMERATED.pattern}(?=\s*(?:[.。]|$))"
)
"""Names in code at the start of a paragraph, up to the end of the sentence."""
_ITEM_NAMES = re.compile(r"`\w+`(?:\s*[,，、/]\s*`\w+`)+(?=\s*[(（])")
"""Several names at the start of an item, before a bracket: "`x`, `y` (integer)"."""
_FORMAT = re.compile(
    r"\A\s*[(（](?!(?:required|optional)\b)([A-Za-z][\w-]{1,20})[)）]", re.IGNORECASE
)
"""The format after a type: "integer (int32)"."""
_REMARK_SEPARATOR = re.compile(r"[,，;；]\s*(?![^\[<]*[\]>])")
"""A comma or semicolon outside brackets, between remarks such as "string, at most 20"."""
_FLAG = re.compile(r"\A\s*(required|optional|必填|必选|可选|选填)\s+", re.IGNORECASE)
_STAR = re.compile(r"(?:\\\*|\*(?=[\s(（:：,，]|$))\s*")
"""A star after a name, which marks the parameter as required."""
MAX_MARK_CHARS = 80
"""Number of characters at the start of an item that are searched for a mark."""
_MARK_WORD = re.compile(
    r"[,，;；]?\s*\b(?:required|optional)\b\s*|[,，;；]?\s*(?:必填|必选|可选|选填)\s*",
    re.IGNORECASE,
)
_CELL_ITEM = re.compile(r"(?:^|<br\s*/?>)(?=(?:&nbsp;|\s)*[-*•]\s)", re.IGNORECASE)
"""The start of a list item in a table cell, with the line break before it."""
_LETTERS = re.compile(r"[A-Za-z]+")
_PUNCTUATION = " :：-–—*,，."
"""Characters that are removed from the start and the end of a description."""


def split_fields(cell: str, kind: str) -> tuple[str, tuple[Parameter, ...]]:
    """Return the description in a cell, and the fields that a list at its end describes.

    `kind` is the type of the parameter that the cell describes. Types such as `string` have no fields.
    """
    if "<br" not in cell or is_simple_type(kind):
        return cell, ()
    text, *items = _CELL_ITEM.split(cell)
    markdown = "\n".join(items).replace("&nbsp;", " ")
    found = listed_parameters(markdown, is_announced=OBJECT.search(kind) is not None)
    return (text if found else cell), found


def listed_parameters(
    markdown: str,
    location: str = "",
    *,
    is_announced: bool = False,
    is_named: bool = False,
    is_required: bool | None = None,
) -> tuple[Parameter, ...]:
    """Return the parameters of a list such as "- `name` (type, required): text"; empty for other lists.

    Indented items become children of the item above them. The flags describe the text above the list:

    - `is_announced`: it announces parameters. Names with descriptions are enough; types may be missing.
    - `is_named`: it is a label such as "Optional parameters". Names in code or before a colon are enough.
    - `is_required`: whether it says that the parameters are required; None if it does not say.

    A mark in an item takes precedence. If nothing above the list says whether the parameters are required,
    those without a mark are optional if all marks say "required".
    """
    items = [item for nested in _nested_items(markdown) for item in _each_name(*nested)]
    matches = [(width, match) for width, text in items if (match := _match_item(text))]
    if not items or len(matches) < len(items):
        return ()
    rests = [match["rest"] for _, match in matches]
    is_typed = any(_ITEM_TYPE.match(rest) or _FLAG.match(rest) for rest in rests)
    is_described = is_announced and all(_DESCRIBED.match(text) for _, text in items)
    has_names = is_named and all(
        _NAME_IN_CODE.match(text) or _PLAIN_NAME.match(text) for _, text in items
    )
    if not (is_typed or is_described or has_names) or _lists_methods(matches):
        return ()
    flat = [(width, _listed_parameter(match, location)) for width, match in matches]
    if is_required is None and by_contrast([each.required for _, each in flat]) is False:
        is_required = False
    return tuple(map(_with_values, nest(fill_required(flat, is_required))))


def _lists_methods(matches: Sequence[tuple[int, re.Match[str]]]) -> bool:
    """Return whether an item on the first level is a method, as in "POST (multipart/form-data)"."""
    names = (match["name"] for width, match in matches if width == matches[0][0])
    return any(re.fullmatch(ANY_METHOD, text_of(name)) for name in names)


def are_typed_fields(items: Sequence[str]) -> bool:
    """Return whether all items of a list are names with a type, such as "`code` (string): text"."""
    return bool(items) and all(map(_is_typed_field, items))


def are_marked_fields(items: Sequence[str]) -> bool:
    """Return whether all items of a list are typed fields that are marked as required or optional.

    Such fields are parameters of a request, even if no text says so.
    """
    return are_typed_fields(items) and all(
        _MARK_WORD.search(item[:MAX_MARK_CHARS]) for item in items
    )


def _is_typed_field(item: str) -> bool:
    match = _match_item(item)
    kind = _ITEM_TYPE.match(match["rest"]) if match else None
    word = _LETTERS.match(kind[1] or kind[2] or "") if kind else None
    return word is not None and bool(SIMPLE_TYPE.fullmatch(word[0]) or OBJECT.match(word[0]))


def enumerated_parameters(paragraph: str, location: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a paragraph such as "`name`, `limit` (integer), `cursor`."; may be empty."""
    match = _ENUMERATION.match(paragraph)
    items = _ENUMERATED.findall(match[0]) if match else []
    found = filter(None, map(_match_item, items))
    return nest([(0, _listed_parameter(item, location)) for item in found])


def _match_item(text: str) -> re.Match[str] | None:
    """Return the match of a list item whose name is not blank; None for other texts."""
    match = LIST_ITEM.match(text)
    return match if match and text_of(match["name"]) else None


def _with_values(parameter: Parameter) -> Parameter:
    """Turn the items below a parameter into its allowed values if its type cannot have fields.

    A colon at the end of the description stays only if it announces the values.
    """
    below = parameter.children
    is_simple = parameter.type and is_simple_type(parameter.type)
    if below and (is_simple or SCALAR.fullmatch(parameter.type)):
        values = tuple(AllowedValue(value=c.name, meaning=c.description) for c in below)
        return parameter.model_copy(update={"children": (), "values": values})
    about = parameter.description.rstrip(_PUNCTUATION)
    children = tuple(map(_with_values, below))
    return parameter.model_copy(update={"children": children, "description": about})


_HEADED_ITEM = re.compile(r"#{1,6} +([\w.$@\\\[\]-]+)(?=\s|$)")
"""A heading that starts a list item, in Markdown made from HTML."""
_SIGNATURE = re.compile(r"`([A-Za-z_$][\w.\[\]-]*)(\??): +([^`]+)`")
"""A name and its type in one code span: "`name: string`", "`name?: string`"."""
_BRACKETED_TYPE = re.compile(r"`([A-Za-z_$][\w.-]*)\s*(?:=|\s-)\s*\[(\w[\w ]*)\],?\s*([^`]*)`")
"""A name with its type in brackets in one code span: "`id=[integer]`", "`id - [string], the user`"."""
_TYPE_AND_DEFAULT = re.compile(
    rf"`:?([\w.-]+)`\s*`\(({_TYPE_NAME}|(?:[a-z-]+ )?[a-z](?:[\w.|\[\]]|<[^<>`]*>)*)(?::\s*([^`]*))?\)`",
    re.IGNORECASE,
)
"""A name and, in a second code span, its type and its default value: "`limit` `(int: 10)`".

The type may have any name: "`owner` `(Person: nil)`", "`labels` `(map<string|string>)`".
"""
_TYPE_FIRST = re.compile(
    rf"({_TYPE_NAME}) +(`[\w.\[\]-]+`|\*\*[\w.\[\]-]+\*\*)"
    r"(?:\s*[(（](required|optional|必填|可选)[)）])?(?=\s*(?:$|\n|[(（:：–—-]))",
    re.IGNORECASE,
)
"""A type before a name: "integer `app_id` (required)"."""
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•]|\d+[.)])\s+(?P<text>.*)$")


def _nested_items(markdown: str) -> list[tuple[int, str]]:
    """Return the indentation and the text of each item of a list, on all levels.

    Forms such as "`name: type` text" and "type `name`: text" are rewritten as "`name` (type): text".
    """
    items: list[tuple[int, str]] = []
    for line in markdown.split("\n"):
        if match := _BULLET.match(line.expandtabs(4)):
            text = _HEADED_ITEM.sub(lambda found: f"`{text_of(found[1])}`", match["text"], count=1)
            if _TYPE_FIRST.match(text):
                text = _TYPE_FIRST.sub(_rewrite_type_first, text, count=1)
            if text.startswith("`"):
                text = _SIGNATURE.sub(_rewrite_signature, text, count=1)
                text = _BRACKETED_TYPE.sub(r"`\1` (\2) \3", text, count=1)
                text = _TYPE_AND_DEFAULT.sub(_rewrite_default, text, count=1)
            items.append((len(match["indent"]), text.strip()))
        elif items and line.strip():
            items[-1] = (items[-1][0], f"{items[-1][1]}\n{line.strip()}")
    return items


def _rewrite_default(typed: re.Match[str]) -> str:
    """Return "`limit` (int, default 10)" for "`limit` `(int: 10)`".

    "`id` `(string: <required>)`" becomes "`id` (string, required)".
    """
    value = (typed[3] or "").strip()
    default = value.strip("\"'")
    remark = value.strip("<>") if value.startswith("<") else f"default {_as_code(default)}"
    return f"`{typed[1]}` ({', '.join(filter(None, [_as_code(typed[2]), default and remark]))})"


def _as_code(text: str) -> str:
    """Return a text as code if it contains `<`, so that `<string>` is not read as a tag."""
    return f"`{text}`" if "<" in text else text


def _rewrite_type_first(typed: re.Match[str]) -> str:
    """Return "`app_id` (integer, required)" for "integer `app_id` (required)"."""
    return f"{typed[2]} ({', '.join(filter(None, [typed[1], typed[3]]))})"


def _rewrite_signature(signature: re.Match[str]) -> str:
    """Return "`name` (string, optional)" for "`name?: string`"."""
    kind = signature[3].translate({ord("("): "[", ord(")"): "]"})
    return f"`{signature[1]}` ({kind}{', optional' if signature[2] else ''})"


def _each_name(width: int, text: str) -> list[tuple[int, str]]:
    """Return an item for each name in an item such as "`x`, `y` (integer): text"."""
    several = _ITEM_NAMES.match(text)
    if several is None:
        return [(width, text)]
    return [(width, name + text[several.end() :]) for name in re.findall("`[^`]+`", several[0])]


def _listed_parameter(match: re.Match[str], location: str) -> Parameter:
    """Return the parameter of an item. If the item has no mark, `required` is None."""
    flag, star = _FLAG.match(match["rest"]), _STAR.match(match["rest"])
    marked = flag or star
    text = match["rest"][marked.end() :] if marked else match["rest"]
    kind = _ITEM_TYPE.match(text)
    stated = " ".join(filter(None, [flag and flag[1], kind and (kind[1] or kind[2])]))
    rest = text[kind.end() :] if kind else text
    if kind and kind[2] and (form := _FORMAT.match(rest)):
        stated, rest = f"{stated}, {form[1]}", rest[form.end() :]
    rest = text_of(rest)
    mark = True if star else _stated_mark(stated)
    if mark is None:
        mark = required_mark(rest)
    unmarked = _MARK_WORD.sub("", text_of(stated))
    remarks = [remark.strip() for remark in _REMARK_SEPARATOR.split(unmarked)]
    limits = [remark for remark in remarks if not TYPE.fullmatch(remark)]
    about = without_final_mark(rest).strip(_PUNCTUATION)
    if rest.endswith((":", "：")):
        about += rest[-1]  # it may announce the values below; see `_with_values`
    type_text = ", ".join(filter(TYPE.fullmatch, remarks))
    return Parameter(
        name=text_of(match["name"]),
        type=type_text,
        required=mark,
        description="; ".join(filter(None, [*limits, about])),
        dimensions=dimensions_of(type_text),
        location=location,
    )


def _stated_mark(text: str) -> bool | None:
    """Return True if the text says "required", False if it says "optional", otherwise None."""
    if re.search(r"\bnot required\b|\boptional\b|非必填|可选|选填", text, re.IGNORECASE):
        return False
    is_required = re.search(r"\brequired\b|必填|必选", text, re.IGNORECASE)
    return True if is_required else None


# --- types ----------------------------------------------------------------------------------------

_TYPE_WORD = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_LIST_TYPE = re.compile(r"\b(?:array|list|set)\b|\[\]|数组|列表", re.IGNORECASE)
SIMPLE_TYPE = re.compile(
    r"(?:strings?|str|text|chars?|int(?:eger)?s?|int\d+|long|numbers?|floats?|doubles?|decimals?"
    r"|bool(?:ean)?s?|dates?|time|datetime|timestamps?|uuids?|enums?|files?|binary|bytes?|array|list|of|or)",
    re.IGNORECASE,
)
"""A word of a type without fields, such as each word of `array of string` (see `is_simple_type`)."""
_ARRAY_TYPE = re.compile(r"\W*(?:array|list|数组|列表)\W*", re.IGNORECASE)
"""An array type that does not name the type of the elements."""
_CHINESE_OBJECT_TYPE = re.compile("对象|结构|实体")
TYPE = re.compile(
    r"(?!(?:default|max|min|up to|at most)\b)[A-Za-z_$][\w .<>\[\],|/?:$&-]*"
    r"|(?:字符|整|数|布尔|对象|列表|枚举|长整|浮点|时间|日期|文件)[\u4e00-\u9fff]*",
    re.IGNORECASE,
)
"""A type, as opposed to other remarks about a field: in `(string, at most 20)`, only `string` matches."""
SCALAR = re.compile(
    r"(?:string|integer|int(?:32|64)?|long|number|float|double|decimal|bool(?:ean)?|enum)\b[^\[\]<>]*",
    re.IGNORECASE,
)
"""A type without fields, such as `string`."""
OBJECT = re.compile(r"\b(?:object|map|dict|struct)|对象|结构", re.IGNORECASE)
"""A type with fields, such as `object`."""


def dimensions_of(kind: str) -> int:
    """Return 1 if `kind` is an array type (also for an array of arrays), else 0."""
    return 1 if _LIST_TYPE.search(kind) else 0


def is_simple_type(text: str) -> bool:
    """Return whether a type is a scalar or an array of scalars, such as 字符串 and `array of string`.

    An array type without the type of its elements is not simple, because the elements may be objects. An
    empty type is simple.
    """
    if _ARRAY_TYPE.fullmatch(text):
        return False
    words_are_simple = all(map(SIMPLE_TYPE.fullmatch, _TYPE_WORD.findall(text)))
    return words_are_simple and not _CHINESE_OBJECT_TYPE.search(text)


# --- nesting --------------------------------------------------------------------------------------

NAME = re.compile(r"[A-Za-z_$@\u4e00-\u9fff{][\w\-.$@\[\]:{}*\u4e00-\u9fff/]*")
"""The name of a parameter, possibly dotted, with brackets or as a placeholder."""
_BRACKETS = re.compile(r"\[[\w*]*\]")
"""Brackets after the name of a list: `[]`, `[0]`, `[*]`, `[n]`."""


def nest(flat: Sequence[tuple[int, Parameter]]) -> tuple[Parameter, ...]:
    """Return parameters as a tree, nested by their indentation and their dotted names.

    `flat` contains each parameter with its indentation in characters.
    """
    parents: list[int | None] = []
    relative: list[Parameter] = []  # with names relative to their parents
    paths: dict[str, int] = {}  # index by full name without brackets
    stack: list[tuple[int, int, str]] = []  # width, index and full name of the parameters above
    for index, (width, parameter) in enumerate(flat):
        while stack and stack[-1][0] >= width:
            stack.pop()
        parent, above = (stack[-1][1], stack[-1][2]) if stack else (None, "")
        name = parameter.name
        plain = _BRACKETS.sub("", name).strip(".")
        if above and plain.startswith(f"{above}."):
            name = plain[len(above) + 1 :]  # drop the parent's repeated name
        head, _, tail = _BRACKETS.sub("", name).rpartition(".")
        full = f"{above}.{head}" if above and head else head
        if full in paths and NAME.match(tail):
            parent, above, name = paths[full], full, tail
        path = ".".join(filter(None, (above, _BRACKETS.sub("", name))))
        paths.setdefault(path, index)
        parents.append(parent)
        relative.append(parameter.model_copy(update={"name": name}))
        stack.append((width, index, path))
    return _tree(relative, parents)


def _tree(relative: Sequence[Parameter], parents: Sequence[int | None]) -> tuple[Parameter, ...]:
    """Return the parameters on the top level, with all others nested below them.

    `parents` contains the index of each parameter's parent, or None on the top level.
    """
    children: dict[int | None, list[Parameter]] = {}
    for index in reversed(range(len(relative))):
        item = relative[index]
        below = (*item.children, *children.get(index, ()))
        update = {
            "children": below,
            "type": item.type or ("object" if below else "string"),
            "dimensions": item.dimensions if below else 0,
        }
        children.setdefault(parents[index], []).insert(0, item.model_copy(update=update))
    return tuple(children.get(None, ()))
