"""Recognises what cells and descriptions say about whether a parameter is required."""

import re

_WORD = r"(?:(?P<required>required|mandatory|必填|必选|必传)|optional|可选(?![值项范])|选填|非必填)"
_CELL = re.compile(
    r"^(?:required|mandatory|必填|必选|必须|必传)\b|^(?:是|y|yes|true|t|m|must|1|1\.\.[1-9n*]|✓|✔|√|✅|☑|●|必)$",
    re.IGNORECASE,
)
_REQUIRED_START = re.compile(
    r"^\W*(?:(?:in )?(?:header|path|query|body|form|cookie)\W+)?"
    r"(?:required|mandatory|必填|必选|必传)(?![\w-]*\s+(?:if|when|unless|for))(?!.{0,3}(?:当|若|如果))",
    re.IGNORECASE,
)
_OPTIONAL_START = re.compile(r"\A\W*(?:optional\b|可选(?![值项范])|选填|非必填)", re.IGNORECASE)
_END = re.compile(
    rf"\s?(?:(?P<open>[(（\[])|[,，;；]\s*){_WORD}(?(open)[)）\]])[.。]?$", re.IGNORECASE
)
"""A mark at the end of a description: "the name (required)", "the name, required"."""
_WITH_FACTS = re.compile(
    rf"[(（\[]{_WORD}\s?[,，;；:：](?!\s*(?:if|when|unless|for)\b|\s*[当若如])[^()（）\[\]]{{1,80}}[)）\]][.。]?$",
    re.IGNORECASE,
)
"""A mark at the end of a description, with other facts: "the size (optional, 20 by default)"."""
_SENTENCE = re.compile(
    rf"[.。!！?？;；]\s*{_WORD}(?=\s*(?:[.。;；(（]|$|[,，](?!\s*(?:if\b|when\b|unless\b|for\b|当|若|如果))))",
    re.IGNORECASE,
)
"""A mark as a sentence, or at the start of one: "A name. Required.", "A name. Optional, at most 20."."""


def is_required_cell(text: str) -> bool:
    """Return whether a cell below a title such as "Required" says yes."""
    return _CELL.match(text) is not None


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
        _END.search(description) or _WITH_FACTS.search(description) or _SENTENCE.search(description)
    )
    return found["required"] is not None if found else None


def without_final_mark(description: str) -> str:
    """Return a description without "(required)" or "(optional)" at its end."""
    return _END.sub("", description)
