"""Compares the names in a question with names in documents that have a variable part.

The variable part is a placeholder, as in `QUEUE_<NAME>_URL`, or follows a prefix in code font, as in
`` `max_` ``. This module is separate because `path_patterns` compares whole segments of paths only.
"""

import re
from functools import lru_cache

from ingestion.store.collection import Collection
from ingestion.text.words import split_words
from runnables.retrieval.path_patterns import search_chunks, unescaped_body
from schemas.question import Filters

_PLACEHOLDER = r"(?:<[a-z][\w -]{0,40}>|\$?\{[a-z][\w -]{0,40}\})"
_PATTERN = re.compile(
    rf"(?<![\w/<{{$.-])\w{{1,40}}_{_PLACEHOLDER}\w{{0,40}}(?![\w/])"
    r"|(?<=`)[a-z][a-z0-9]{0,40}_(?=`)"
)
"""A name with a placeholder after `_`, or a prefix in code font, in a text in lower case.

A name that begins with a placeholder, such as `{resource}_id`, does not count: it may be a rule for names.
"""


def contains_name_pattern(collection: Collection, identifier: str, filters: Filters) -> bool:
    """Return whether a chunk has a pattern that matches `identifier`, a name with `_` in lower case.

    False for other identifiers. This function blocks: call it in a worker thread.
    """
    if not re.fullmatch(r"\w+", identifier) or "_" not in identifier.strip("_"):
        return False
    chunks = search_chunks(collection, " ".join(split_words(identifier)), filters)
    patterns = (name for chunk in chunks for name in _patterns_in(unescaped_body(chunk).lower()))
    return any(_expression(name).fullmatch(identifier) for name in patterns)


@lru_cache(maxsize=1_000)
def _patterns_in(text: str) -> tuple[str, ...]:
    """Return the distinct patterns in the text of a section; cached, because many questions read it."""
    return tuple(dict.fromkeys(_PATTERN.findall(text)))


@lru_cache(maxsize=1_000)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of the names that match `pattern`."""
    literals = re.split(_PLACEHOLDER, pattern)
    expression = r"\w+".join(map(re.escape, literals))
    return re.compile(expression if len(literals) > 1 else rf"{expression}\w+")
