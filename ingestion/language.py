"""Which of the two languages a text is in, and how many tokens it is worth."""

import math
import re

from schemas.language import Language

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")


def detect_language(text: str) -> Language:
    """`zh` when Chinese characters weigh as much as Latin words, else `en`.

    A Chinese word is about two characters, so two characters count as one word; technical Chinese
    is full of English identifiers, so it takes one Chinese word to three Latin ones to be Chinese.
    """
    han_words = len(_HAN.findall(text)) / 2
    latin_words = len(_LATIN_WORD.findall(text))
    return "zh" if han_words and han_words * 3 >= latin_words else "en"


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, estimated without a tokenizer's tables.

    A Chinese character is about one token; other text about one token in four characters.
    """
    han = len(_HAN.findall(text))
    return han + math.ceil((len(text) - han) / 4)
