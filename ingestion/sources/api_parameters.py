"""Recognises the types of parameters and whether they are required, and nests parameters in each other.

Nesting follows the indentation of parameters and their dotted names.
"""

import re
from collections.abc import Sequence

from schemas.api_document import Parameter

_TYPE_WORD = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_LIST_TYPE = re.compile(r"\b(?:array|list|set)\b|\[\]|数组|列表", re.IGNORECASE)
SIMPLE_TYPE = re.compile(
    r"(?:strings?|str|text|chars?|int(?:eger)?s?|int\d+|long|numbers?|floats?|doubles?|decimals?"
    r"|bool(?:ean)?s?|dates?|time|datetime|timestamps?|uuids?|enums?|files?|binary|bytes?|array|list|of|or)",
    re.IGNORECASE,
)
_ARRAY_TYPE = re.compile(r"\A\W*(?:array|list|数组|列表)\W*", re.IGNORECASE)
"""The type of an array that does not say what its elements are."""
_CHINESE_OBJECT_TYPE = re.compile("对象|结构|实体")
TYPE = re.compile(
    r"(?!(?:default|max|min|up to|at most)\b)[A-Za-z_$][\w .<>\[\],|/?:$&-]*"
    r"|(?:字符|整|数|布尔|对象|列表|枚举|长整|浮点|时间|日期|文件)[\u4e00-\u9fff]*",
    re.IGNORECASE,
)
"""A type among the facts about a field, as in `(string, at most 20)`."""
SCALAR = re.compile(
    r"(?:string|integer|int(?:32|64)?|long|number|float|double|decimal|bool(?:ean)?|enum)\b[^\[\]<>]*",
    re.IGNORECASE,
)
"""A type without fields."""
OBJECT = re.compile(r"\b(?:object|map|dict|struct)|对象|结构", re.IGNORECASE)
"""A type that says that it has fields."""

_REQUIRED_WORD = (
    r"(?:(?P<required>required|mandatory|必填|必选|必传)|optional|可选(?![值项范])|选填|非必填)"
)
_REQUIRED_CELL = re.compile(
    r"^(?:required|mandatory|必填|必选|必须|必传)\b|^(?:是|y|yes|true|t|m|must|1|1\.\.[1-9n*]|✓|✔|√|✅|☑|●|必)$",
    re.IGNORECASE,
)
_REQUIRED_START = re.compile(
    r"^\W*(?:(?:in )?(?:header|path|query|body|form|cookie)\W+)?"
    r"(?:required|mandatory|必填|必选|必传)(?![\w-]*\s+(?:if|when|unless|for))(?!.{0,3}(?:当|若|如果))",
    re.IGNORECASE,
)
_OPTIONAL_START = re.compile(r"\A\W*(?:optional\b|可选(?![值项范])|选填|非必填)", re.IGNORECASE)
_FINAL_MARK = re.compile(
    rf"\s?(?:(?P<open>[(（\[])|[,，;；]\s*){_REQUIRED_WORD}(?(open)[)）\]])[.。]?$", re.IGNORECASE
)
"""A mark at the end of a description: "the name (required)", "the name, required"."""
_FINAL_MARK_WITH_FACTS = re.compile(
    rf"[(（\[]{_REQUIRED_WORD}\s?[,，;；:：](?!\s*(?:if|when|unless|for)\b|\s*[当若如])[^()（）\[\]]{{1,80}}[)）\]][.。]?$",
    re.IGNORECASE,
)
"""A mark at the end of a description, with other facts: "the size (optional, 20 by default)"."""
_MARK_SENTENCE = re.compile(
    rf"[.。!！?？;；]\s*{_REQUIRED_WORD}(?=\s*(?:[.。;；(（]|$|[,，](?!\s*(?:if\b|when\b|unless\b|for\b|当|若|如果))))",
    re.IGNORECASE,
)
"""A mark as a sentence, or at the start of one: "A name. Required.", "A name. Optional, at most 20."."""

NAME = re.compile(r"[A-Za-z_$@\u4e00-\u9fff{][\w\-.$@\[\]:{}*\u4e00-\u9fff/]*")
"""The name of a parameter, possibly dotted, with brackets or as a placeholder."""
_BRACKETS = re.compile(r"\[[\w*]*\]")
"""Brackets after the name of a list: `[]`, `[0]`, `[*]`, `[n]`."""


def dimensions_of(kind: str) -> int:
    """Return 1 if `kind` is an array type, else 0. Nested arrays are not counted."""
    return 1 if _LIST_TYPE.search(kind) else 0


def is_simple_type(text: str) -> bool:
    """Return whether a type names no structure or object, as in `array of string` and 字符串.

    An array whose elements have no type may contain objects.
    """
    if _ARRAY_TYPE.fullmatch(text):
        return False
    words_are_simple = all(map(SIMPLE_TYPE.fullmatch, _TYPE_WORD.findall(text)))
    return words_are_simple and not _CHINESE_OBJECT_TYPE.search(text)


def is_required_cell(text: str) -> bool:
    """Return whether a cell below a title such as "Required" says yes."""
    return _REQUIRED_CELL.match(text) is not None


def required_mark(description: str) -> bool | None:
    """Return whether a description marks the parameter as required; None without a mark.

    A mark is at the start or the end of the description, or is a sentence of its own. "Required" with a
    condition, such as "required if", does not count.
    """
    if _REQUIRED_START.match(description):
        return True
    if _OPTIONAL_START.match(description):
        return False
    found = (
        _FINAL_MARK.search(description)
        or _FINAL_MARK_WITH_FACTS.search(description)
        or _MARK_SENTENCE.search(description)
    )
    return found["required"] is not None if found else None


def without_final_mark(description: str) -> str:
    """Return a description without "(required)" or "(optional)" at its end."""
    return _FINAL_MARK.sub("", description)


def nest(flat: Sequence[tuple[int, Parameter]]) -> tuple[Parameter, ...]:
    """Return the tree of parameters that their indentation and their dotted names describe.

    `flat` contains each parameter with its indentation in columns.
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
    """Return the parameters without a parent, with the others as their children.

    `parents` contains the index of each parameter's parent.
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
