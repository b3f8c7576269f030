"""Recognise the tables of API pages: parameters, error codes and permissions, by their headers.

Headers are matched by word, in Chinese and English, in any column order. Nothing here knows a platform.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ingestion.text.markdown_blocks import plain_text
from schemas.api_document import AllowedValue, ErrorCode, Parameter, PermissionPackage

Table = Sequence[Sequence[str]]
"""Rows of cells, the header first."""


def _words(*words: str) -> re.Pattern[str]:
    """Return a pattern for a header cell that consists of one of `words`."""
    return re.compile(rf"(?:{'|'.join(words)})", re.IGNORECASE)


_COLUMNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "http_status": _words(r"http\s*(?:status|code|状态).*", r"status(?:\s*code)?", "状态码"),
        "code": _words(
            r"(?:(?:api|biz|business|sub)[\s_-]*)?(?:error|err|return|result)[\s_-]*(?:code|no\.?|number)s?",
            r"codes?",
            r"(?:业务|子|平台)?(?:错误|返回|异常|响应|结果|业务|失败)(?:码|代码|编码|编号)",
            r"代码|编码",
            r"errors?",
        ),
        "remedy": _words(
            r".*(?:解决|处理|排查|应对|修复|建议).*",
            r"(?:suggested\s+)?(?:solution|remedy|fix|resolution|action|handling|troubleshooting"
            r"|how to (?:fix|handle|resolve)|what to do)s?.*",
        ),
        "cause": _words(
            r"(?:错误|可能|失败|产生)?(?:的)?原因.*", r"(?:possible\s+)?(?:cause|reason)s?"
        ),
        "required": _words(
            r"(?:是否)?(?:必填|必选|必须|必传|必需|必要|必输)(?:项|字段)?",
            r"(?:is[\s_]*)?(?:required|mandatory)\??",
            r"req\.?",
            r"presence",
            r"m\s*/\s*o",
            r"o\s*/\s*m",
        ),
        "optional": _words(r"(?:是否)?(?:可选|选填|可空)", r"(?:is[\s_]*)?optional\??"),
        "type": _words(
            r"(?:数据|参数|字段|值)?(?:类型|格式)",
            r"(?:data|value|field|param(?:eter)?)?\s*types?",
            r"schema|format",
        ),
        "default": _words(r"(?:默认|缺省)(?:值)?", r"defaults?(?:\s+value)?"),
        "example": _words(
            r"(?:示例|样例|举例|例子|例)(?:值)?", r"(?:examples?|samples?|e\.g\.)(?:\s+values?)?"
        ),
        "values": _words(
            r"(?:取值(?:范围)?|枚举(?:值)?|可选值|允许值|范围)",
            r"(?:enum(?:eration)?s?|(?:allowed|possible|accepted|valid)\s+values?|values?|range|options)",
        ),
        "location": _words(
            r"(?:参数)?(?:位置|传参方式|传递方式)",
            r"(?:in|location|where|passed\s+in|param(?:eter)?\s+in)",
        ),
        "name": _words(
            r"(?:请求|响应|返回|查询|路径|入|出|公共|消息|请求头|头部|header|body|query|path)*\s*(?:参数|字段|属性|变量|键|请求头|头部|头域|header)?(?:名称|名|代码|标识|key)?|变量名?|英文名称?",
            r"(?:(?:request|response|query|path|body|header|form|json|attribute|object)\s+)*(?:param(?:eter)?|field|property|attribute|argument|key|header|variable|member|element)s?(?:\s*(?:name|key|id))?",
            r"names?",
        ),
        "description": _words(
            r"(?:参数|字段)?中文(?:名|名称|含义)?|(?:参数|字段|详细|错误|功能|返回|响应|提示|结果)?(?:描述|说明|含义|解释|备注|释义|信息|意义|场景|场合)(?:信息)?",
            r"(?:(?:error|detailed|short|field)\s+)?(?:descriptions?|desc\.?|notes?|remarks?|meanings?|details?|comments?|explanations?|purpose|messages?|msg|text|definition|summary|when|condition|scenario)",
        ),
    }
)
_MESSAGE = _words(
    r"(?:错误|返回|提示|异常|响应)?(?:信息|消息|提示|文案|名称)",
    r"(?:error|err|return)?[\s_-]*(?:messages?|msg|name|text|string|type|description|desc)",
)
_PART = re.compile(
    r"\s*(?:/|\||（|）|\(|\)|<br\s*/?>|\n|、|&nbsp;)\s*|(?<=[\u4e00-\u9fff])\s+(?=[A-Za-z])|(?<=[A-Za-z])\s+(?=[\u4e00-\u9fff])",
    re.IGNORECASE,
)


def text_of(cell: str) -> str:
    """Return a cell as plain text: no markup, entities decoded, line breaks as spaces."""
    without_breaks = re.sub(
        r"<br\s*/?>|</?(?:p|li|ul|ol|div)[^>]*>", " ", cell, flags=re.IGNORECASE
    )
    return " ".join(html.unescape(plain_text(without_breaks)).replace("\u200b", "").split())


def parts_of(text: str) -> list[str]:
    """Return a label and, if it is in two languages, its parts: `请求方式 / Method`."""
    text = text_of(text).strip(" *:：?？#.")
    return [text, *(part.strip() for part in _PART.split(text) if part.strip() not in ("", text))]


def _column(header: str) -> str | None:
    """Return what a header cell names, or None."""
    for part in parts_of(header):
        for name, pattern in _COLUMNS.items():
            if part and pattern.fullmatch(part):
                return name
    return None


@dataclass(frozen=True)
class Columns:
    """Where each kind of column is, by name; -1 where a table has none."""

    at: Mapping[str, int]

    def cell(self, row: Sequence[str], name: str) -> str:
        """Return the cell of column `name` in `row`, empty where there is none."""
        index = self.at.get(name, -1)
        return row[index] if 0 <= index < len(row) else ""

    def renamed(self, old: str, new: str) -> "Columns":
        """Return the columns with `old` read as `new`."""
        return Columns({new if name == old else name: index for name, index in self.at.items()})

    def __contains__(self, name: str) -> bool:
        return name in self.at


def columns_of(header: Sequence[str], rows: Table = ()) -> Columns:
    """Return the columns that a header row names; the first of two with the same meaning counts.

    Of two columns with names, the one with identifiers in `rows` counts: 字段名 beside 变量名.
    """
    at: dict[str, int] = {}
    for index, cell in enumerate(header):
        name = _column(cell)
        is_better = name == "name" and name in at and not _has_identifiers(rows, at[name])
        if name is not None and (name not in at or (is_better and _has_identifiers(rows, index))):
            at[name] = index
    return Columns(at)


def _has_identifiers(rows: Table, index: int) -> bool:
    cells = [text_of(row[index]) for row in rows if index < len(row)]
    return bool(cells) and all(re.search(r"[A-Za-z_]\w", cell) for cell in cells)


def is_parameter_table(columns: Columns) -> bool:
    """Whether the header is that of parameters: a name, and a type or whether it is required."""
    return (
        "name" in columns
        and ("type" in columns or "required" in columns or "optional" in columns)
        and "code" not in columns
    )


def is_named_values(columns: Columns) -> bool:
    """Whether the header has names and descriptions only: parameters if a heading says so."""
    return "name" in columns and "description" in columns and "code" not in columns


def is_error_table(columns: Columns) -> bool:
    """Whether the header is that of error codes."""
    told = any(name in columns for name in ("description", "cause", "remedy"))
    return "code" in columns and "type" not in columns and "required" not in columns and told


def is_status_table(columns: Columns) -> bool:
    """Whether the header is that of HTTP statuses: error codes if a heading says so."""
    return "http_status" in columns and "description" in columns and "type" not in columns


_INDENT = re.compile(
    r"^(?:\s|&nbsp;|&emsp;|&ensp;|&#160;|\u00a0|\u2003|\u3000|&gt;|[└├│─┗┣∟↳»›>·•▸\-–—+]|\.(?=[.\s]*\w)|└─)+"
)
_ENTITY = re.compile(r"&(?:nbsp|emsp|ensp|gt|#160);")
_REQUIRED_MARK = re.compile(
    r"^(?:required|mandatory|必填|必选|必须|必传)\b|^(?:是|y|yes|true|t|m|must|1|✓|✔|√|✅|☑|●|必)$",
    re.IGNORECASE,
)
_REQUIRED_TEXT = re.compile(
    r"^\W*(?:required|mandatory|必填|必选|必传)(?![\w-]*\s+(?:if|when|unless|for))(?!.{0,3}(?:当|若|如果))",
    re.IGNORECASE,
)
_IN_NAME = re.compile(
    r"(?:[\s(（\[]*(?:\brequired\b|\bmandatory\b|必填|必选|必传)[)）\]]*|(?<=\w)\s*\*+\s*$|^\s*\*\s*(?=\w))",
    re.IGNORECASE,
)
_OPTIONAL_IN_NAME = re.compile(
    r"[\s(（\[]*(?:\boptional\b|可选|选填|非必填)[)）\]]*", re.IGNORECASE
)
_LIST_TYPE = re.compile(r"\b(?:array|list|set)\b|\[\]|数组|列表", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_$@\u4e00-\u9fff{][\w\-.$@\[\]:{}*\u4e00-\u9fff/]*")
_VALUE = re.compile(r"`([^`]{1,60})`\s*[:：=\-–—]?\s*([^`;；,，|]*)")


def parameters(rows: Table, columns: Columns, location: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a table; rows indented under another become its children.

    Raises nothing: a row without a name is left out.
    """
    flat: list[tuple[int, Parameter]] = []
    for row in rows:
        raw = columns.cell(row, "name")
        width, name, marked = _name_of(raw)
        if name:
            flat.append((width, _parameter(row, columns, name, marked, location)))
    return _nested(flat)


def _name_of(cell: str) -> tuple[int, str, bool | None]:
    """Return the indentation, the name, and whether the cell marks it as required or optional."""
    text = re.sub(r"<br\s*/?>.*", "", cell, flags=re.IGNORECASE | re.DOTALL).strip("\n")
    text = re.sub(
        r"</?(?:code|b|strong|em|i|span|sup|sub|font|a|p|div)\b[^>]*>",
        "",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"\\([_\-.*>\[\]{}#+$])", r"\1", text)
    indent = _INDENT.match(text)
    width = _width(indent[0]) if indent else 0
    rest = html.unescape(text[indent.end() if indent else 0 :])
    inner = rest.strip("`* ")
    if not indent and (nested := _INDENT.match(inner)):
        width, rest = _width(nested[0]), inner[nested.end() :]
    marked = (
        True
        if _IN_NAME.search(rest.replace("**", "").replace("`", ""))
        else False
        if _OPTIONAL_IN_NAME.search(rest)
        else None
    )
    rest = _OPTIONAL_IN_NAME.sub("", _IN_NAME.sub("", rest.replace("**", "").replace("`", "")))
    found = _NAME.match(text_of(rest).strip())
    return width, found[0].rstrip(".:") if found else "", marked


def _width(indent: str) -> int:
    return len(_ENTITY.sub(" ", indent))


def _parameter(
    row: Sequence[str], columns: Columns, name: str, marked: bool | None, location: str
) -> Parameter:
    kind = text_of(columns.cell(row, "type"))
    description = text_of(columns.cell(row, "description"))
    stated = text_of(columns.cell(row, "required"))
    if "required" in columns:
        required = any(map(_REQUIRED_MARK.match, parts_of(stated)))
    elif "optional" in columns:
        required = text_of(columns.cell(row, "optional")).lower() in ("否", "no", "n", "false", "×")
    else:
        required = bool(marked) or (
            marked is None
            and (
                _REQUIRED_TEXT.match(description) is not None
                or re.search(r"\brequired\b|必填|必选", kind, re.IGNORECASE) is not None
            )
        )
    kind = re.sub(
        r"[,，;；(（]?\s*(?:\brequired\b|\boptional\b|必填|必选|可选|选填)[)）]?",
        "",
        kind,
        flags=re.IGNORECASE,
    ).strip(" ,，;-–—")
    if default := text_of(columns.cell(row, "default")).strip("-–—/ "):
        description = f"{description} (default: {default})".strip()
    return Parameter(
        name=name,
        type=kind or "string",
        required=required,
        description=description,
        example=text_of(columns.cell(row, "example")).strip("-–—"),
        values=_values(columns.cell(row, "values")),
        dimensions=1 if _LIST_TYPE.search(kind) else 0,
        location=text_of(columns.cell(row, "location")) or location,
    )


def _values(cell: str) -> tuple[AllowedValue, ...]:
    """Return the values that a cell lists in code spans or between commas."""
    if not cell.strip():
        return ()
    found = [
        (m[1], text_of(m[2]).strip(" ()（）"))
        for m in _VALUE.finditer(re.sub(r"<br\s*/?>", ";", cell))
    ]
    if not found:
        found = [
            (part.strip(), "")
            for part in re.split(r"[,，、;；|/]|<br\s*/?>|\s+or\s+", text_of(cell))
            if part.strip()
        ]
    return tuple(AllowedValue(value=value, meaning=meaning) for value, meaning in found)


def _nested(flat: Sequence[tuple[int, Parameter]]) -> tuple[Parameter, ...]:
    """Make each parameter a child of the one that its indentation or its dotted name refers to."""
    root: list[Parameter] = []
    made: dict[int, list[Parameter]] = {}
    order: list[tuple[int, int | None, Parameter]] = []
    stack: list[tuple[int, int, str]] = []  # (width, index, full name)
    full: dict[str, int] = {}
    for index, (width, parameter) in enumerate(flat):
        while stack and stack[-1][0] >= width:
            stack.pop()
        parent, name = (stack[-1][1] if stack else None), parameter.name
        if parent is None and "." in name.strip("."):
            head, _, tail = (
                name.replace("[]", "").replace("[0]", "").replace("[*]", "").rpartition(".")
            )
            if head in full and _NAME.match(tail):
                parent, name = full[head], tail
        path = f"{_path(order, parent)}.{name}" if parent is not None else name
        full.setdefault(path.replace("[]", "").replace("[0]", ""), index)
        order.append((index, parent, parameter.model_copy(update={"name": name})))
        stack.append((width, index, path))
    for index, parent, _ in reversed(order):
        own, item = tuple(made.get(index, [])), order[index][2]
        kind = "object" if own and item.type == "string" else item.type
        item = item.model_copy(
            update={"children": own, "type": kind, "dimensions": item.dimensions if own else 0}
        )
        (made.setdefault(parent, []) if parent is not None else root).insert(0, item)
    return tuple(root)


def _path(order: Sequence[tuple[int, int | None, Parameter]], index: int | None) -> str:
    names: list[str] = []
    while index is not None:
        names.append(order[index][2].name)
        index = order[index][1]
    return ".".join(reversed(names))


_NO_CODE = re.compile(r"^[\W_]*$")


def error_codes(rows: Table, header: Sequence[str], columns: Columns) -> tuple[ErrorCode, ...]:
    """Return the codes of an error table; an HTTP status beside the code goes into the message."""
    key = "code" if "code" in columns else "http_status"
    message_at = next(
        (
            i
            for i, cell in enumerate(header)
            if i != columns.at[key]
            and i != columns.at.get("http_status")
            and _MESSAGE.fullmatch(text_of(cell))
        ),
        -1,
    )
    found: list[ErrorCode] = []
    for row in rows:
        code = text_of(columns.cell(row, key)).strip("`")
        if not code or len(code) > 80 or _NO_CODE.match(code.replace("-", "")):
            continue
        message = text_of(row[message_at]) if 0 <= message_at < len(row) else ""
        description = text_of(columns.cell(row, "description"))
        status = text_of(columns.cell(row, "http_status")) if key == "code" else ""
        cause = text_of(columns.cell(row, "cause"))
        if not message:
            message, description = description, ""
        elif description and description != message:
            cause = cause or description
        found.append(
            ErrorCode(
                code=code,
                message=f"{message} (HTTP {status})" if status and status != code else message,
                cause=cause,
                remedy=text_of(columns.cell(row, "remedy")),
            )
        )
    return tuple(found)


_SCOPE = re.compile(r"`([^`\n]{2,80})`|(?<![\w./:@-])([a-z][\w-]*(?:[:.][\w*-]+)+)(?![\w/])")
_SCOPE_SEPARATOR = re.compile(r"<br\s*/?>|\n|[;；、,，]\s*(?=`)|</li>")


def scopes_in(text: str) -> list[PermissionPackage]:
    """Return the permissions in a cell, list or sentence: code spans and dotted names.

    What follows a name on its line describes it.
    """
    found: dict[str, str] = {}
    for line in _SCOPE_SEPARATOR.split(text.replace("\\_", "_")):
        for match in _SCOPE.finditer(line):
            about = text_of(line[match.end() :]).strip(" :：-–—|()（）.。")
            found.setdefault(match[1] or match[2], about)
    return [PermissionPackage(name=name, description=about) for name, about in found.items()]


def scopes_of_rows(rows: Table) -> list[PermissionPackage]:
    """Return a permission per row: the first cell names it, the second describes it."""
    return [
        PermissionPackage(name=text_of(row[0]), description=text_of(row[1]) if row[1:] else "")
        for row in rows
        if row and text_of(row[0])
    ]


_ITEM = re.compile(
    r"^(?P<name>(?:\*\*)?`[^`]+`(?:\*\*)?|\*\*[\w.\[\]-]+\*\*|[A-Za-z_][\w.\[\]-]*(?=\s*[(（:：]))"
    r"\s*(?P<rest>.*)$",
    re.DOTALL,
)
_ITEM_TYPE = re.compile(
    r"^[\s—–:-]*[(（\[]\s*([^)）\]]*)[)）\]]"
    r"|^[\s—–:-]*[*_]?\b(string|integer|int|number|boolean|bool|object|array(?:\s+of\s+\w+|<\w+>)?"
    r"|long|float|double)\b[*_]?",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"[,，;；]?\s*\b(?:required|optional)\b\s*|[,，;；]?\s*(?:必填|必选|可选|选填)\s*",
    re.IGNORECASE,
)


def listed_parameters(markdown: str, location: str = "") -> tuple[Parameter, ...]:
    """Return the parameters of a list such as "- `name` (type, required): text".

    Items that are indented under another one become its children. Empty if an item is no parameter.
    """
    items = _nested_items(markdown)
    matches = [(width, _ITEM.match(text)) for width, text in items]
    if not any(match and _ITEM_TYPE.match(match["rest"]) for _, match in matches):
        return ()
    if not all(match for _, match in matches):
        return ()
    return _nested([(w, _listed_parameter(match, location)) for w, match in matches if match])


_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•]|\d+[.)])\s+(?P<text>.*)$")


def _nested_items(markdown: str) -> list[tuple[int, str]]:
    """Return the indentation and the text of each item of a list, on all levels."""
    items: list[tuple[int, str]] = []
    for line in markdown.split("\n"):
        if match := _BULLET.match(line.expandtabs(4)):
            items.append((len(match["indent"]), match["text"].strip()))
        elif items and line.strip():
            items[-1] = (items[-1][0], f"{items[-1][1]} {line.strip()}")
    return items


def _listed_parameter(match: re.Match[str], location: str) -> Parameter:
    kind = _ITEM_TYPE.match(match["rest"])
    stated = (kind[1] or kind[2] or "") if kind else ""
    rest = match["rest"][kind.end() :] if kind else match["rest"]
    is_required = re.search(r"\brequired\b|必填|必选", stated, re.IGNORECASE)
    is_optional = re.search(r"\bnot required\b|\boptional\b|非必填", stated, re.IGNORECASE)
    required = bool(is_required and not is_optional) or bool(_REQUIRED_TEXT.match(text_of(rest)))
    return Parameter(
        name=text_of(match["name"]),
        type=_STATED.sub("", text_of(stated)).strip(" ,，") or "string",
        required=required,
        description=text_of(rest).strip(" :：-–—*,，."),
        location=location,
    )


def listed_errors(items: Sequence[str]) -> tuple[ErrorCode, ...]:
    """Return the error codes of a list such as "`code`: meaning"; none if an item differs."""
    matches = [_ITEM.match(item) for item in items]
    if not matches or not all(matches):
        return ()
    return tuple(_listed_error(match) for match in matches if match)


def _listed_error(match: re.Match[str]) -> ErrorCode:
    """Return the code of an item; of an HTTP status followed by a code, the code."""
    name, rest = text_of(match["name"]), match["rest"]
    second = re.match(r"\s*`([^`]+)`", rest)
    if second and re.fullmatch(r"[1-5]\d\d", name):
        return ErrorCode(
            code=second[1],
            message=f"{text_of(rest[second.end() :]).strip(' :：-–—')} (HTTP {name})".strip(),
        )
    return ErrorCode(code=name, message=text_of(rest).strip(" :：-–—"))
