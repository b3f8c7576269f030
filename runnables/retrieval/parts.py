"""A question that asks for two things, as two questions."""

import re

MOST = 3
"""Parts that a question is split into; more is a list, and no list of questions."""

_ENGLISH = re.compile(
    r"\s*(?:[,;]\s*)?\b(?:and then|and after that|and afterwards|then also|and also|as well as how|"
    r"and (?=how|what|which|where|when|do|can|is|are))\b\s*|\s*[?;]\s+(?=\w)",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"[，,、；;]?\s*(?:然后再|然后|之后再|接着再|接着|以及怎么|以及如何|并且怎么|还有怎么|，?同时怎么|另外)\s*|[？?；;]\s*(?=\S)"
)
_FIRST_THEN = re.compile(r"先(?P<first>[^，,。？?]{2,30}?)[，,]?再(?P<then>[^。？?]{2,40})")
_ASKS = re.compile(
    r"怎么|如何|怎样|什么|哪|吗|多少|几|能不能|能否|可以|是否|为何|为什么|"
    r"\b(?:how|what|which|where|when|why|who|can|could|do|does|is|are|should|may)\b",
    re.IGNORECASE,
)
_SHORTEST = 4
"""Bytes below which a part says nothing by itself: two Chinese characters are more, "it" is less."""


def split_question(question: str) -> list[str]:
    """The questions that `question` consists of; itself alone, where it is one.

    Only what is asked in sequence is split ("and then", 先…再…, one question mark after another): an
    "and" between two nouns is one question.
    """
    if match := _FIRST_THEN.search(question):
        tail = question[match.end() :].strip(" ，,？?。")
        head = question[: match.start()]
        found = [f"{head}{match['first']}".strip(), f"{match['then']} {tail}".strip()]
    else:
        pattern = _CHINESE if re.search(r"[\u4e00-\u9fff]", question) else _ENGLISH
        found = [part.strip(" ，,。.?？") for part in pattern.split(question)]
    found = [part for part in found if len(part.encode()) >= _SHORTEST]
    return found if 1 < len(found) <= MOST and _are_questions(question, found) else [question]


def _are_questions(question: str, found: list[str]) -> bool:
    """Whether what stands on both sides of a question mark asks something; "please explain" does not."""
    inner = question.strip().rstrip("?？;； ")
    return not re.search(r"[?？;；]", inner) or all(_ASKS.search(part) for part in found)
