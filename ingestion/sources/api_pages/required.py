"""Reads whether a parameter is required, from cells such as "yes" and from marks such as "(required)"."""

import re
from collections.abc import Collection, Sequence

from ingestion.sources.api_pages.columns import parts_of, text_of
from schemas.document import Parameter, Requirement

_REQUIRED_WORD = (
    r"(?:(?P<required>required|mandatory|必填|必选|必传)|optional|可选(?![值项范])|选填|非必填)"
)
_REQUIRED_START = re.compile(
    r"^\W*(?:(?:in )?(?:header|path|query|body|form|cookie)\W+)?"
    r"(?:required|mandatory|必填|必选|必传)(?![\w-]*\s+(?:if|when|unless|for))(?!.{0,3}(?:当|若|如果))",
    re.IGNORECASE,
)
_OPTIONAL_START = re.compile(r"\A\W*(?:optional\b|可选(?![值项范])|选填|非必填)", re.IGNORECASE)
_YES = re.compile(
    r"required|mandatory|必[填选须传要需输]项?|必|是|y|yes|true|t|m|r|must|1|1\.\.[1-9n*]|[✓✔√✅☑●]",
    re.IGNORECASE,
)
_NO = re.compile(
    r"optional|可选|选[填传]|[非不]必[填选须传要需输]?|否|n|no|false|f|o|0|0\.\.[\dn*]+|[-–—/×✗✘✕❌]+",
    re.IGNORECASE,
)
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
_MARK_VALUE = re.compile(
    r"(?:required|mandatory|必填|必选|必传)\s?[:：=]\s?(true|yes|false|no|是|否)(?!\w)",
    re.IGNORECASE,
)
"""A mark with its value: "Required: true"."""
_MARK_VALUE_SENTENCE = re.compile(
    rf"(?:[.。;；,，\n]\s?|\s(?-i:(?=Required))){_MARK_VALUE.pattern}", re.IGNORECASE
)
"""A mark with its value, after a sentence or a clause: "A name. Required: true"."""


def required_cell(cell: str) -> Requirement:
    """Return what a cell below a title such as "Required" states; None if it is empty.

    A cell with more than yes or no, such as a condition, is returned as text.
    """
    text = text_of(cell)
    words = _words(text)
    if words and all(map(_YES.fullmatch, words)):
        return True
    return False if words and all(map(_NO.fullmatch, words)) else text or None


def is_required_text(text: str) -> bool:
    """Return whether a cell below a title such as "Required" says yes, possibly with more text."""
    words = _words(text)
    return any(map(_YES.fullmatch, words)) and not any(map(_NO.fullmatch, words))


def _words(text: str) -> list[str]:
    """Return the parts of a cell, such as "Yes" and "header" for "Yes (header)"."""
    whole, *pieces = parts_of(text)
    return [word for piece in pieces or [whole] if (word := piece.strip("*`_ ()（）[]"))]


def by_contrast(states: Collection[Requirement]) -> bool | None:
    """Return whether the parameters without a mark are required, judged by the existing marks.

    `states` contains the `required` of all parameters of a table or list; None stands for a missing mark.
    The result is False if all marks in `states` say "required", and True if all say "optional". It is None
    if there are no marks, or marks of both kinds.
    """
    if (True in states) == (False in states):
        return None
    return False in states


def fill_required(
    flat: Sequence[tuple[int, Parameter]], default: bool | None
) -> list[tuple[int, Parameter]]:
    """Return `flat` with `default` as the `required` of the parameters whose `required` is None.

    `flat` contains each parameter with its indentation in characters.
    """
    return [
        (width, each.model_copy(update={"required": default}) if each.required is None else each)
        for width, each in flat
    ]


def required_mark(description: str) -> bool | None:
    """Return whether a description marks the parameter as required; None without a mark.

    A mark is at the start or the end of the description, or at the start of a sentence. A mark with a
    value, such as "Required: true", may also follow a clause. "Required if" and similar do not count.
    """
    if stated := _MARK_VALUE.match(description):
        return _YES.fullmatch(stated[1]) is not None
    if _REQUIRED_START.match(description):
        return True
    if _OPTIONAL_START.match(description):
        return False
    if stated := _MARK_VALUE_SENTENCE.search(description):
        return _YES.fullmatch(stated[1]) is not None
    found = (
        _FINAL_MARK.search(description)
        or _FINAL_MARK_WITH_FACTS.search(description)
        or _MARK_SENTENCE.search(description)
    )
    return found["required"] is not None if found else None


def without_final_mark(description: str) -> str:
    """Return a description without "(required)" or "(optional)" at its end."""
    return _FINAL_MARK.sub("", description)
