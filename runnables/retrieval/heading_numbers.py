"""Finds the sections whose headings begin with the number of a version or chapter that a question names."""

import re
from collections.abc import Iterable

from ingestion.store.client import batches
from ingestion.store.collection import Collection
from schemas.document import Chunk
from schemas.question import Filters

MAX_NUMBERS = 3
"""Maximum number of versions and chapters to look for. Further ones in the question are ignored."""

MAX_NUMBERED_DOCUMENTS = 3
"""Maximum number of documents whose sections are returned."""

READ_DOCUMENTS = 20
"""Number of documents to read at a time.

More are read only if filters leave fewer than `MAX_NUMBERED_DOCUMENTS` documents.
"""

MAX_READ_DOCUMENTS = 200
"""Maximum number of documents to read, so that a filter that no document meets does not take seconds."""

_NUMBER = re.compile(
    r"(?:(?P<before>[A-Za-z]{2,20}|[\u4e00-\u9fff]) ?)?(?<![A-Za-z0-9_.,:=/$¥€£-])"
    r"[vV]?(?P<number>\d{1,3}(?:\.\d{1,3}){1,2})(?![A-Za-z0-9_%-]|\.\w|,\d)"
    r"(?! ?(?:[元秒天倍个万亿度]|分钟|小时"
    r"|(?i:[kmg]?i?b|ms|px|usd|(?:second|minute|hour|day|week|month|year|time)s?)\b))",
    re.ASCII,
)
"""A number with one or two dots and without a unit, and the word or the Chinese character before it."""

_WORDS_BEFORE = frozenset(
    ["version", "release", "section", "chapter", "since", "after", "before", "in", "of", "from", "to",
     "with", "for", "and", "is", "was", "api", "sdk", "cli"]
)  # fmt: skip
"""Words that may precede the number of a version or chapter, unlike "TLS" in "TLS 1.2"."""

_CHARACTERS_BEFORE_VALUE = frozenset("为是成约到")
"""Chinese characters that precede a value or an amount, as in 值为 1.5."""

_VERSION_PREFIX = "(?:[vV]|[Vv]ersion |[Rr]elease |版本 ?)?"
"""Words that may precede the number of a version at the start of a heading."""


def heading_numbers(question: str) -> list[str]:
    """Return at most `MAX_NUMBERS` numbers such as `3.2` in `question` that may be versions or chapters.

    Each number is returned once. A number with one dot counts only at the start of the question, after one
    of `_WORDS_BEFORE`, or after a Chinese character that is not in `_CHARACTERS_BEFORE_VALUE`. Elsewhere,
    it is often an amount. A number with two dots also counts after a punctuation mark, as in "what changed
    (3.8.1)?", but not after a word that is not in `_WORDS_BEFORE`, as in "python 3.8.1".
    """
    numbers = [
        match["number"]
        for match in _NUMBER.finditer(question.strip())
        if _may_be_heading(match["before"] or "", match["number"], is_first=match.start() == 0)
    ]
    return list(dict.fromkeys(numbers))[:MAX_NUMBERS]


def _may_be_heading(before: str, number: str, *, is_first: bool) -> bool:
    if before.isascii() and before:
        return before.lower() in _WORDS_BEFORE
    if before in _CHARACTERS_BEFORE_VALUE:
        return False
    return is_first or bool(before) or number.count(".") > 1


def documented_numbers(collection: Collection, question: str) -> list[str]:
    """Return the version and chapter numbers in `question` that begin a heading. This function blocks."""
    return [
        number
        for number in heading_numbers(question)
        if any(
            _rank(path, [number])
            for entry in collection.catalogue()
            for path in entry.outline
            if number in path  # much faster than a pattern
        )
    ]


def chunks_by_heading_number(
    collection: Collection, question: str, filters: Filters
) -> list[Chunk]:
    """Return the chunks under headings that begin with a version or chapter number of `question`.

    For example, 3.2 finds the heading "3.2.0 (2024-10-15)", and 4.2 finds "4.2 Callbacks". The chunks are
    sorted by `_rank`, and come from at most `MAX_NUMBERED_DOCUMENTS` documents.

    This function blocks: call it in a worker thread.
    """
    numbers = heading_numbers(question)
    documents: dict[tuple[str, str], int] = {}
    for entry in collection.catalogue() if numbers else ():
        paths = (path for path in entry.outline if any(number in path for number in numbers))
        if ranks := list(filter(None, (_rank(path, numbers) for path in paths))):
            documents[entry.source, entry.document_id] = min(ranks)
    best = sorted(documents, key=lambda key: documents[key])[:MAX_READ_DOCUMENTS]
    chunks: list[Chunk] = []
    for keys in batches(best, READ_DOCUMENTS):
        found = collection.chunks_of_documents(keys)
        chunks += [c for c in found if _rank(c.section, numbers) and filters.allow(c)]
        if len({chunk.document_key for chunk in chunks}) >= MAX_NUMBERED_DOCUMENTS:
            break
    chunks.sort(key=lambda chunk: _rank(chunk.section, numbers))
    kept = list(dict.fromkeys(chunk.document_key for chunk in chunks))[:MAX_NUMBERED_DOCUMENTS]
    return [chunk for chunk in chunks if chunk.document_key in kept]


def contains_number(text: str, number: str) -> bool:
    """Return whether `text` contains `number`, such as 3.2 in "3.2.0", but not in "1.3.2"."""
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text) is not None


def _rank(path: str, numbers: Iterable[str]) -> int:
    """Return the rank of a path of headings, such as "Changelog > 3.2.0 > Fixes".

    The best rank is 1. The rank is 0 if no heading begins with one of `numbers`. The more headings follow
    the heading with the number, the worse is the rank. At the same place in the path, a heading with a
    longer number, such as 3.2.0 for 3.2, has a worse rank than one with exactly the number.
    """
    for below, heading in enumerate(reversed(path.split(" > "))):
        for number in numbers:
            if match := re.match(rf"\W*{_VERSION_PREFIX}{re.escape(number)}(?!\d)(\.\d)?", heading):
                return 1 + 2 * below + (match[1] is not None)
    return 0
