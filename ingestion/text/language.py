"""The language of a text, its size in tokens, and replacement of characters that cannot be stored."""

import math
import re
from bisect import bisect_right

from schemas.choices import Language

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def detect_language(text: str) -> Language:
    """Return `zh` if Chinese has enough weight against Latin words, else `en`.

    Two Chinese characters count as one word. Technical Chinese is full of English identifiers, so one
    Chinese word weighs as much as three Latin ones.
    """
    han_words = len(_HAN.findall(text)) / 2
    latin_words = len(_LATIN_WORD.findall(text))
    return "zh" if han_words and han_words * 3 >= latin_words else "en"


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text` without a tokenizer.

    A Chinese character counts as one token, other text as one token per four characters.
    """
    han = len(_HAN.findall(text))
    return han + math.ceil((len(text) - han) / 4)


def truncate_to_tokens(text: str, tokens: int) -> str:
    """Return the longest prefix of `text` that is estimated at no more than `tokens`."""
    text = text[: 4 * tokens]  # one token is at most four characters
    lengths = range(len(text) + 1)
    return text[: bisect_right(lengths, tokens, key=lambda n: estimate_tokens(text[:n])) - 1]


def replace_surrogates(text: str) -> str:
    """Return `text` with U+FFFD for each unpaired surrogate, which UTF-8 cannot encode.

    Truncated emoji in JSON and invalid UTF-8 on the command line contain them.
    """
    return _SURROGATE.sub("\ufffd", text)


def storable_text(text: str) -> str:
    """Return `text` with U+FFFD for NUL and unpaired surrogates, which PostgreSQL cannot store."""
    return replace_surrogates(text).replace("\0", "\ufffd")
