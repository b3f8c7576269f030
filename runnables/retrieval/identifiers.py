"""Identifiers in a question: error codes, paths, field names, dotted names, header names, enum values."""

import re

from runnables.question.extract_details import error_codes, extract_details

# The lookbehind keeps a search linear: a long word is tried from its first character only.
_URL_OR_EMAIL = re.compile(r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+", re.ASCII)
_NAME = re.compile(
    r"(?<![A-Za-z0-9_./:-])(?:[A-Za-z][A-Za-z0-9]*(?:(?:\[\])?[_.-][A-Za-z0-9]+)+(?:\[\])?"
    r"|[a-z]+[0-9]*[A-Z][A-Za-z0-9]*)(?![A-Za-z0-9_/-])"
)
_SHORT_CODE = re.compile(r"(?<![A-Za-z0-9_.-])(?:-\d{1,3}|\d{3})(?![A-Za-z0-9_%-]|\.\w)")
_ERROR_WORD = re.compile(
    r"错误|报错|异常|失败|返回码|状态码"
    r"|(?<![a-z])(?:err|errors?|err_?code|ret_?code|http|status|code)(?![a-z])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CODE_WORD = re.compile(
    r"(?:错误码|返回码|状态码|err_?code|error[ _-]?code|\berror)[\s:：=\"'`]{1,3}"
    r"([A-Za-z][A-Za-z0-9_]{2,})",
    re.IGNORECASE,
)
_ASKS_FOR_MEANING = re.compile(
    r"\bwhat(?:'s|\s+is|\s+are|\s+does)\b|\bmeaning\b|\bmeans?\b|是什么|什么意思|啥意思|含义|指什么|干什么用",
    re.IGNORECASE,
)
_QUESTION_WORDS = {"what", "is", "are", "does", "do", "the", "a", "an", "of", "s", "mean", "means",
                   "meaning", "field", "parameter", "param", "header", "error", "code", "errcode",
                   "enum", "value"}  # fmt: skip


def extract_identifiers(question: str) -> list[str]:
    """Return the distinct identifiers in `question`, in lower case.

    Identifiers are error codes, paths, and names with `_`, `.`, `-` or an inner capital. Short numbers such
    as 404 and -1 are codes only if the question is about errors. A plain Latin word is an identifier if it
    is the whole question, follows a term for error codes, or is the only word whose meaning the question
    asks for.
    """
    text = _URL_OR_EMAIL.sub(" ", question)
    short = _SHORT_CODE.findall(text) if _ERROR_WORD.search(text) else []
    names = [
        *error_codes(text),
        *short,
        *extract_details(question).paths,
        *_NAME.findall(text),
        *_plain_words(question),
    ]
    return list(dict.fromkeys(name.lower() for name in names))


def specific_identifiers(question: str) -> list[str]:
    """Return the identifiers in `question` that contain `_`, `.` or `/`, unlike ordinary words.

    If the question is about errors, numbers are also returned.
    """
    about_errors = _ERROR_WORD.search(question) is not None
    return [name for name in extract_identifiers(question) if _is_specific(name, about_errors)]


def _is_specific(name: str, about_errors: bool) -> bool:
    if name.lstrip("-").isdigit():
        return about_errors
    return any(mark in name for mark in "_./")


def _plain_words(question: str) -> list[str]:
    """Return the plain words that are identifiers, as `extract_identifiers` describes."""
    stripped = question.strip().strip("`\"'?？")
    if _WORD.fullmatch(stripped):
        return [stripped]
    named = [word for word in _CODE_WORD.findall(question) if word.lower() not in _QUESTION_WORDS]
    if named or not _ASKS_FOR_MEANING.search(question):
        return named
    words = [word for word in _WORD.findall(question) if word.lower() not in _QUESTION_WORDS]
    return words if len(words) == 1 else []
