"""Recognises the columns of tables on API pages by their headers, in Chinese and English.

Columns may have any order. The patterns are not specific to a platform.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from types import MappingProxyType

from ingestion.text.markdown_blocks import plain_text
from ingestion.text.typography import has_chinese, join_lines, label_with

TableRows = Sequence[Sequence[str]]
"""Rows of cells."""


def header_pattern(*alternatives: str) -> re.Pattern[str]:
    """Return a case-insensitive pattern for header cells, to be used with `fullmatch`.

    The pattern matches a text if any of the regular expressions in `alternatives` matches.
    """
    return re.compile(rf"(?:{'|'.join(alternatives)})", re.IGNORECASE)


_COLUMNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "http_status": header_pattern(
            r"http(?:\s*(?:status|code|状态|响应|返回|错误).*)?", r"status(?:\s*code)?", "状态码"
        ),
        "code": header_pattern(
            r"(?:(?:api|biz|business|sub)[\s_-]*)?(?:error|err|return|result|ret|exception|fault|failure|problem)[\s_.-]*(?:code|no\.?|number|name|id|key)s?",
            r"codes?",
            r"(?:业务|子|平台|全局)?(?:错误|返回|异常|响应|结果|业务|失败)(?:码|代码|编码|编号)",
            r"代码|编码",
            r"(?:error|fault)s?",
        ),
        "remedy": header_pattern(
            r".*(?:解决|处理|排查|应对|修复|建议).*",
            r"(?:suggested\s+)?(?:solution|remedy|fix|resolution|action|advice|suggestion|hint|handling|troubleshooting"
            r"|how to (?:fix|handle|resolve)|what to do)s?.*",
        ),
        "cause": header_pattern(
            r"(?:错误|可能|失败|产生)?(?:的)?原因.*", r"(?:possible\s+)?(?:cause|reason)s?"
        ),
        "required": header_pattern(
            r"(?:是否)?(?:必填|必选|必须|必传|必需|必要|必输|非空)(?:项|字段|提供|性)?",
            r"(?:is[\s_]*)?(?:require[ds]?|mandatory|compulsory|must)\??",
            r"req\.?",
            r"presence",
            r"[mocr](?:\s*/\s*[mocr])+|optionality|obligation",
            r"(?:(?:min(?:imum)?[\s_.]*)?occ(?:urs|urrences?)?|card(?:inality)?|mult(?:iplicity)?)\.?",
        ),
        "optional": header_pattern(r"(?:是否)?(?:可选|选填|可空)", r"(?:is[\s_]*)?optional\??"),
        "type": header_pattern(
            r"(?:数据|参数|字段|值|错误|异常)?(?:类型|格式)",
            r"(?:data|value|field|param(?:eter)?|error|exception)?\s*types?",
            r"schema|format",
        ),
        "default": header_pattern(r"(?:默认|缺省)(?:值)?", r"defaults?(?:\s+value)?"),
        "example": header_pattern(
            r"(?:示例|样例|举例|例子|例)(?:值)?", r"(?:examples?|samples?|e\.g\.)(?:\s+values?)?"
        ),
        "values": header_pattern(
            r"(?:取?值(?:范围)?|枚举(?:值)?|可选值|允许值|范围)",
            r"(?:enum(?:eration)?s?|(?:allowed|possible|accepted|valid)\s+values?|values?|range|options)",
        ),
        "scope": header_pattern(
            r"(?:所需|需要的?|要求的?)?(?:权限|授权范围)(?:点|码|标识|要求)?",
            r"(?:(?:required|needed|oauth2?|needs|requires)\s+)?(?:scopes?|permissions?)(?:\s+(?:required|needed))?",
            r"(?:required|needed)\s+(?:roles?|privileges?|acls?)",
            r"(?:roles?|privileges?|acls?)\s+(?:required|needed)",
        ),
        "location": header_pattern(
            r"(?:参数)?(?:位置|传参方式|传递方式)",
            r"(?:in|location|where|(?:passed|located|sent|goes)\s+in|param(?:eter)?\s+in)",
        ),
        "name": header_pattern(
            r"(?:请求|响应|返回|查询|路径|入|出|输入|输出|公共|公用|业务|系统|接口|消息|请求头|头部|header|body|query|path)*\s*(?:参数|字段|属性|变量|键|请求头|头部|头域|header)?(?:名称|名|代码|标识|key)?|变量名?|元素|项目?|英文名称?|(?:返回|响应)值",
            r"(?:return|response)\s+values?",
            r"(?:(?:request|response|query|path|body|header|form|json|attribute|object)\s+)*(?:param(?:eter)?|field|property|attribute|argument|key|header|variable|member|element|option)s?(?:\s*(?:name|key|id))?",
            r"names?",
        ),
        "description": header_pattern(
            r"(?:参数|字段)?中文(?:名|名称|含义)?|错误码(?:取值|含义|说明|描述|信息)|(?:参数|字段|详细|错误|功能|返回|响应|提示|结果)?(?:描述|说明|含义|解释|备注|释义|信息|意义|场景|场合)(?:信息)?|内容",
            r"(?:(?:error|detailed|short|field)\s+)?(?:descriptions?|desc\.?|notes?|remarks?|meanings?|details?|comments?|explanations?|purpose|messages?|msg|text|definition|summary|when|condition|scenario)",
        ),
    }
)
"""The kinds of columns, such as `code` (error codes), with patterns for their titles.

The first pattern that matches is used.
"""
_MEANINGS = ("description", "cause", "remedy")
"""The kinds of columns that explain an error code."""
_TEXT_KINDS = ("name", *_MEANINGS)
"""The kinds of columns whose titles add nothing to their texts."""
_ROW_NUMBER = header_pattern("序号", r"no\.?", "#", "index")
_REQUIRED_WORDS = r"必填|必选|必传|可选|选填|非必填|required|optional|mandatory"
_REQUIRED_MARK = re.compile(_REQUIRED_WORDS, re.IGNORECASE)
_NO_TEXT = re.compile(rf"[-–—/\s]*|无|none|n/?a|{_REQUIRED_WORDS}", re.IGNORECASE)
"""The text of a cell that says nothing, or only whether a parameter is required."""
_SEPARATOR = re.compile(r"[/|（）()\[\]【】、]")


def text_of(cell: str) -> str:
    """Return a cell as plain text: no markup, entities decoded, line breaks as spaces."""
    without_breaks = re.sub(
        r"<br\s*/?>|</?(?:p|li|ul|ol|div)[^>]*>", " ", cell, flags=re.IGNORECASE
    )
    return " ".join(html.unescape(plain_text(without_breaks)).replace("\u200b", "").split())


_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((https?://[^\s()<>]+)\)")
_HIDDEN = {"`": "\ue000", "[": "\ue001", "](": "\ue002", ")": "\ue003", "_": "\ue004"}
"""Private-use characters that replace the markup to keep, because `text_of` removes all markup."""


def description_of(cell: str) -> str:
    """Return a cell as plain text (see `text_of`), but keep code spans and absolute links.

    A `<br>` becomes punctuation.
    """
    text = join_lines(cell) if "<br" in cell.lower() else cell
    text = _LINK.sub(_hide_link, _CODE.sub(rf"`{_HIDDEN['`']}\1{_HIDDEN['`']}`", text))
    text = text_of(text)
    for markup, hidden in _HIDDEN.items():
        text = text.replace(hidden, markup)
    return text


def _hide_link(link: re.Match[str]) -> str:
    url = link[2].replace("_", _HIDDEN["_"])
    return f"{_HIDDEN['[']}{link[1]}{_HIDDEN['](']}{url}{_HIDDEN[')']}"


def parts_of(text: str) -> list[str]:
    """Return a label as plain text, followed by its parts. Chinese and other words are separate parts.

    For `类型[长度] Data type`, the parts are `类型`, `长度` and `Data type`.
    """
    text = text_of(text).strip(" *:：?？#.")
    pieces = (
        " ".join(words)
        for piece in _SEPARATOR.split(text)
        for _, words in groupby(piece.split(), key=has_chinese)
    )
    return [text, *(piece for piece in pieces if piece not in ("", text))]


def _column_kind(header: str) -> str | None:
    """Return the kind of column that a header cell names, such as `code`; None if it is unknown."""
    for part in parts_of(header):
        for kind, pattern in _COLUMNS.items():
            if part and pattern.fullmatch(part):
                return kind
    return None


def is_row_number_column(title: str) -> bool:
    """Return whether a column with this title numbers the rows of its table."""
    return _ROW_NUMBER.fullmatch(text_of(title)) is not None


def is_name_column(title: str) -> bool:
    """Return whether a column with this title contains names of parameters or fields."""
    return _column_kind(title) == "name"


@dataclass(frozen=True)
class Columns:
    """The columns that were recognised in a table."""

    at: Mapping[str, int]
    """Index of the column of each kind, such as `code`. A kind that the table lacks is absent."""
    titles: Sequence[str] = ()
    """The header row."""

    def cell(self, row: Sequence[str], kind: str) -> str:
        """Return the cell of `row` in the column of this kind; empty if there is no such cell."""
        index = self.at.get(kind, -1)
        return row[index] if 0 <= index < len(row) else ""

    def title(self, kind: str) -> str:
        """Return the title of the column of this kind as plain text; empty if there is none."""
        return text_of(self.cell(self.titles, kind))

    def renamed(self, old: str, new: str) -> "Columns":
        """Return the columns with the kind `old` replaced by `new`."""
        at = {new if kind == old else kind: index for kind, index in self.at.items()}
        return replace(self, at=at)

    def further_names(self, row: Sequence[str]) -> dict[int, str]:
        """Return the Chinese names in `row`, with column indexes as keys.

        Only columns of names that are not in `at` are read.

        For example, a table may have two columns of names: 变量名 with identifiers, which is in `at`, and
        字段名 with Chinese names.
        """
        texts = {
            index: text_of(row[index])
            for index, title in enumerate(map(text_of, self.titles[: len(row)]))
            if _column_kind(title) == "name" and index not in self.at.values()
        }
        return {index: text for index, text in texts.items() if has_chinese(text)}

    def further_texts(self, row: Sequence[str], read: Iterable[int]) -> list[str]:
        """Return the texts in the columns of `row` that are not in `read`, such as "Since: 2.0".

        `read` contains column indexes. A text is preceded by the title of its column, unless the title adds
        nothing, as "Description" does. Code spans and absolute links are kept. Row numbers and cells
        without information are left out.
        """
        skipped = frozenset(read)
        cells = enumerate(zip(self._labels, map(description_of, row), strict=False))
        return [
            label_with(label, text) if label else text
            for index, (label, text) in cells
            if index not in skipped
            and label is not None
            and not _NO_TEXT.fullmatch(text.strip("`"))
        ]

    @cached_property
    def _labels(self) -> Sequence[str | None]:
        """The label before the texts of each column; may be empty. None for a column of row numbers."""
        titles = map(text_of, self.titles)
        return [
            None if _ROW_NUMBER.fullmatch(t) else "" if _column_kind(t) in _TEXT_KINDS else t
            for t in titles
        ]

    def __contains__(self, kind: str) -> bool:
        return kind in self.at


def columns_of(header: Sequence[str], rows: TableRows = ()) -> Columns:
    """Return the columns that a header row names.

    If several columns have the same kind, the first is used. Of several columns of names, such as 字段名
    and 变量名, the one with the most identifiers in `rows` is used.

    If no title announces a column of marks such as `required`, a column whose cells are all such marks is
    used. In a table with types and marks, names in the first column are recognised by their form, if no
    title announces names. If the titles of types and descriptions are in the wrong order, the cells decide.
    """
    at: dict[str, int] = {}
    for index, cell in enumerate(header):
        kind = _column_kind(cell)
        if kind is None:
            continue
        at.setdefault(kind, index)
        if kind == "name" and _count_identifiers(rows, index) > _count_identifiers(rows, at[kind]):
            at[kind] = index
    if "required" not in at and "optional" not in at:
        others = (index for index in range(len(header)) if index not in at.values())
        required = next((i for i in others if _all_cells(rows, i, _REQUIRED_MARK)), None)
        if required is not None:
            at["required"] = required
    has_marks = "required" in at or "optional" in at
    may_be_names = "name" not in at and "type" in at and has_marks and 0 not in at.values()
    if may_be_names and rows and _count_identifiers(rows, 0) == len(rows):
        at["name"] = 0
    return Columns(_with_types(at, rows), header)


def _with_types(at: dict[str, int], rows: TableRows) -> dict[str, int]:
    """Return `at`, but swap the columns `type` and `description` if only the second one contains types."""
    if not at.keys() >= {"type", "description"}:
        return at
    first, second = at["type"], at["description"]
    is_swapped = _all_cells(rows, second, _TYPE) and not _all_cells(rows, first, _TYPE)
    return at | {"type": second, "description": first} if is_swapped else at


_TYPE = re.compile(
    r"(?:string|int(?:eger|32|64)?|long|number|float|double|decimal|bool(?:ean)?|object|array|list|map)"
    r"(?:[<\[(].*)?",
    re.IGNORECASE,
)
"""A cell that contains only a type."""
_IDENTIFIER = re.compile(r"\W*[A-Za-z_$@][\w.\-$@\[\]{}]*\W*")


def is_identifier(cell: str) -> bool:
    """Return whether a cell is a name as in program code, possibly with punctuation around it."""
    return _IDENTIFIER.fullmatch(text_of(cell)) is not None


def _all_cells(rows: TableRows, index: int, pattern: re.Pattern[str]) -> bool:
    """Return whether there are rows, and all their cells in the column `index` match `pattern`."""
    return bool(rows) and all(
        index < len(row) and pattern.fullmatch(text_of(row[index])) for row in rows
    )


def _count_identifiers(rows: TableRows, index: int) -> int:
    return sum(is_identifier(row[index]) for row in rows if index < len(row))


def is_parameter_table(columns: Columns) -> bool:
    """Return whether a table with these columns is a table of parameters.

    Such a table has a column of names, a column `type`, `required` or `optional`, and no error codes.
    """
    return (
        "name" in columns
        and ("type" in columns or "required" in columns or "optional" in columns)
        and "code" not in columns
    )


def has_described_names(columns: Columns) -> bool:
    """Return whether a table has names with descriptions, values, defaults or examples, and no error codes.

    Such a table lists parameters only if a heading says so.
    """
    is_described = any(kind in columns for kind in ("description", "values", "default", "example"))
    return "name" in columns and is_described and "code" not in columns


def is_error_table(columns: Columns) -> bool:
    """Return whether a table has error codes with a description, cause or remedy.

    A table with a column `type` or `required` is not a table of errors.
    """
    is_described = any(kind in columns for kind in _MEANINGS)
    has_types = "type" in columns or "required" in columns
    return "code" in columns and is_described and not has_types


def is_status_table(columns: Columns, role: str) -> bool:
    """Return whether a table lists HTTP statuses. `role` is the role of its section; empty if unknown.

    A column "Status" may also contain something else, such as the states of an order. The table must
    therefore have a description, cause or remedy, unless `role` is known and there is no column `type`.
    """
    if "http_status" not in columns or role not in ("errors", "response", ""):
        return False
    return bool(role and "type" not in columns) or any(kind in columns for kind in _MEANINGS)
