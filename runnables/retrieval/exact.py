"""Identifiers that a question names, and the chunks that define them."""

import re

from ingestion.markdown_blocks import parse_table, plain
from runnables.question.pasted import error_codes, extract_details
from schemas.document import Chunk, RetrievedChunk

_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9_./:-])(?:[A-Za-z][A-Za-z0-9]*(?:(?:\[\])?[_.-][A-Za-z0-9]+)+(?:\[\])?"
    r"|[a-z]+[0-9]*[A-Z][A-Za-z0-9]*)(?![A-Za-z0-9_/-])"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MEANING = re.compile(
    r"\bwhat(?:'s|\s+is|\s+are|\s+does)\b|\bmeaning\b|\bmeans?\b|是什么|什么意思|啥意思|含义|指什么|干什么用",
    re.IGNORECASE,
)
_ASKING = {"what", "is", "are", "does", "do", "the", "a", "an", "of", "s", "mean", "means",
           "meaning", "field", "parameter", "param", "header"}  # fmt: skip
_URL = re.compile(r"https?://\S+")
_LAST_PART = re.compile(r"[^.\[\]]+(?=(?:\[\])?$)")


def identifiers(question: str) -> list[str]:
    """What in `question` is written as an identifier, in lower case: error codes, paths, and names with
    `_`, `.`, `-` or a capital inside. One plain word is one where it is all there is, or where the
    question is what it means.
    """
    text = _URL.sub(" ", question)
    found = [
        *error_codes(text),
        *extract_details(question).paths,
        *_IDENTIFIER.findall(text),
        *_asked_word(question),
    ]
    return list(dict.fromkeys(name.lower() for name in found))


def _asked_word(question: str) -> list[str]:
    """The one word that is asked for, if it is one."""
    alone = question.strip().strip("`\"'?？")
    if _WORD.fullmatch(alone):
        return [alone]
    words = [word for word in _WORD.findall(question) if word.lower() not in _ASKING]
    return words if len(words) == 1 and _MEANING.search(question) else []


def defining_first(found: list[RetrievedChunk], names: list[str]) -> list[RetrievedChunk]:
    """`found`, with the chunks in front that define the most of `names`; else in their order."""
    if not names:
        return found
    return sorted(found, key=lambda r: -sum(defines(r.chunk, name) for name in names))


def defines(chunk: Chunk, name: str) -> bool:
    """Whether `chunk` is the place of `name`: a row of one of its tables begins with it, or it is its
    API's url or name.
    """
    if name in (chunk.api_url.lower(), chunk.api_name.lower()):
        return True
    if name not in chunk.body.lower():
        return False
    rows = parse_table(chunk.body)
    return any(name in _names(row[0]) for row in rows[1:] if row)


def _names(cell: str) -> tuple[str, str]:
    """What the first cell of a row calls its field, in full and without its parents."""
    whole = plain(cell).lower()
    last = _LAST_PART.search(whole)
    return whole, last[0] if last else whole
