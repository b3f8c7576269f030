"""Checks of an answer that do not use the grounding of apidesk."""

import re
from collections.abc import Iterator

from schemas.answer import Answer

_CITATION = re.compile(r"\[(\d+)\]")
_URL = re.compile(r"https?://[^\s)\]>\"'`，。；]+")
_IDENTIFIER = re.compile(
    r"/[a-z0-9_-]+(?:/[\w{}.-]+)+"  # a path
    r"|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b"  # order_no, SIGN_ERROR
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"  # orderNo
    r"|(?<![\w.,-])\d{4,9}(?![\w.,-])"  # an error code
)


def problems(
    answer: Answer, question: str, documents: str, seconds: float, deadline_s: float
) -> Iterator[str]:
    """Yield each problem of an answer: its time, empty steps, and invented facts, links and citations.

    `documents` are the texts of all chunks.
    """
    if seconds > deadline_s:
        yield f"took {seconds:.0f} of {deadline_s:.0f} seconds"
    if not answer.answer or not all(step.strip() for step in answer.answer):
        yield "has an empty step"
    if answer.type != "unknown":
        yield from _inventions(answer, _evidence(answer, question, documents))


def _inventions(answer: Answer, evidence: str) -> Iterator[str]:
    """Yield the citations, links and identifiers of an answer that its sources do not have."""
    text = " ".join(answer.answer)
    for number in set(map(int, _CITATION.findall(text))) - {s.number for s in answer.sources}:
        if f"[{number}]" not in evidence:  # such as `lines[0].name` in a quote
            yield f"cites [{number}], which is no source"
    for url in {url.rstrip(".,") for url in _URL.findall(text)}:
        if url not in evidence:
            yield f"links {url}"
    known = f"{evidence} {' '.join(answer.unverified)}".lower()
    for number, step in enumerate(answer.answer, 1):
        names = set(_IDENTIFIER.findall(_URL.sub(" ", _CITATION.sub(" ", step))))
        for name in names:
            # Numbers of an unsupported step are listed with the step.
            is_listed = name.isdigit() and number in answer.unsupported
            if name.lower() not in known and not is_listed:
                yield f"states {name}, which is neither in a source nor listed"


def _evidence(answer: Answer, question: str, documents: str) -> str:
    """Return all text that the answer may repeat.

    An answer without sources may name similar identifiers of any document.
    """
    fields = ("title", "section", "page_url", "api_name", "api_url", "text")
    sources = (str(getattr(source, name)) for source in answer.sources for name in fields)
    nearest = (page.page_url for page in answer.nearest)
    return "\n".join([question, *sources, *nearest, *([] if answer.sources else [documents])])
