"""Quotes the fields that a pasted request lacks, for questions such as "what is missing here?".

For a question such as "what is wrong here?", only the missing required fields are added to the quote.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import replace
from itertools import accumulate

from pydantic import JsonValue

from ingestion.sources.api_pages.required import is_required_text
from runnables.answer.passages import MAX_CHARS, RankedPassage
from runnables.answer.segments import Segment, split_chunk
from runnables.retrieval.query_terms import QueryTerms
from schemas.choices import Language
from schemas.question import ExtractedDetails

_ASKS_FOR_MISSING = re.compile(
    r"[缺漏]|少[了传填]|没[传填]|还(?:需?要|得|该)"
    r"|\b(?:missing|lacks?|lacking|omit(?:s|ted)?|left out|for[gy]ot(?:ten)?|what else)\b",
    re.IGNORECASE,
)
_ASKS_WHAT_IS_WRONG = re.compile(
    r"(?:哪里|哪儿|什么地方|怎么)(?:有)?(?:错|不对|问题)|(?:错|问题)(?:出)?在哪|有(?:什么|啥)(?:问题|错)"
    r"|\bwhat(?:['’]?s|\s+is)\s+(?:the\s+)?(?:wrong|problem|mistake|error)\b|\bis\s+\w+\s+wrong\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?<![非不])必[填选须传要需]|[二三]选一|其一|\b(?:required|mandatory|must|either|one of)\b",
    re.IGNORECASE,
)
"""Words with which a field's description says when the field is required."""

_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")


def sent_fields(details: ExtractedDetails) -> frozenset[str]:
    """Return the names of the fields in a pasted request, if the question asks what is missing or wrong.

    The names are dotted, without `[]`, and in lower case: `owner.id`. The result is empty for all other
    questions.
    """
    is_asked = asks_for_missing(details) or _ASKS_WHAT_IS_WRONG.search(details.prose)
    return frozenset(_names_in(details.request_param, "") if is_asked else ())


def asks_for_missing(details: ExtractedDetails) -> bool:
    """Return whether the question contains a request and asks what the request lacks."""
    return bool(details.request_param and _ASKS_FOR_MISSING.search(details.prose))


def _names_in(value: JsonValue, parent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{parent}{key}".lower()
            yield from _names_in(inner, f"{parent}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from _names_in(inner, parent)


def with_missing_fields(
    passage: RankedPassage,
    terms: QueryTerms,
    sent: Set[str],
    language: Language,
    *,
    only_required: bool = False,
) -> RankedPassage:
    """Return a passage of request parameters with the rows of the missing fields instead of its own rows.

    Missing fields are those that are not in `sent`, except path parameters, whose values are in the pasted
    URL, and fields of objects that are missing themselves. Required fields come first, then those that are
    required under a condition, then all others. Within each of these groups, fields with words of the
    question come first. Fields are dropped at the end if the passage would exceed `MAX_CHARS`.

    With `only_required`, the rows of the missing required fields come before the passage's own rows. If
    there is no such field, or if the passage is from another section, it is returned unchanged. Labels such
    as "required" are in `language`.
    """
    chunk = passage.chunk
    if chunk.kind != "request_parameters":
        return passage
    in_path = frozenset(map(str.lower, _PLACEHOLDER.findall(chunk.api_url)))
    known = sent | in_path
    missing = [each for each in split_chunk(chunk, language) if _is_missing(each, known)]
    if only_required:
        required = [each for each in missing if _optionality(each) == 0]
        others = [each for each in passage.segments if each not in required]
        missing = [*required, *others] if required else []
    else:
        missing.sort(
            key=lambda each: (_optionality(each), -terms.weight(terms.found_in(each.text)))
        )
    lengths = accumulate(len(segment.text) for segment in missing)
    kept = [each for each, end in zip(missing, lengths, strict=True) if end <= MAX_CHARS]
    return replace(passage, segments=kept or missing[:1] or passage.segments)


def _is_missing(segment: Segment, known: Set[str]) -> bool:
    name = segment.name.replace("[]", "").lower()
    parent = name.rpartition(".")[0]
    return segment.kind == "row" and name not in known and (not parent or parent in known)


def _optionality(segment: Segment) -> int:
    """Return 0 for the row of a required field, 1 if it is required under a condition, otherwise 2."""
    cells = [cell for _, cell in segment.cells]
    if segment.is_required or any(map(is_required_text, cells[2:3])):
        return 0
    return 1 if any(map(_CONDITION.search, cells[2:])) else 2
