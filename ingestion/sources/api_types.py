"""Recognises the types of parameters: lists, types without fields, and types with fields."""

import re

_WORD = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
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


def dimensions_of(kind: str) -> int:
    """Return 1 if `kind` is an array type, else 0. Nested arrays are not counted."""
    return 1 if _LIST_TYPE.search(kind) else 0


def is_simple_type(text: str) -> bool:
    """Return whether a type names no structure or object, as in `array of string` and 字符串.

    An array whose elements have no type may contain objects.
    """
    if _ARRAY_TYPE.fullmatch(text):
        return False
    words_are_simple = all(map(SIMPLE_TYPE.fullmatch, _WORD.findall(text)))
    return words_are_simple and not _CHINESE_OBJECT_TYPE.search(text)
