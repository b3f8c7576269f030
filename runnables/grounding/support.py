"""How much of what a question is about stands in what is quoted for it.
Whether the chunks that a statement cites say what it says, as far as words and numbers show.

No rule here sees a negation or a reversal: "is not needed" has the words of "is needed". What these
rules refuse is what the chunks do not speak of, and numbers that stand nowhere.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ingestion.text.language import (
    COMMON_ZIPF,
    RAREST_ZIPF,
    detect_language,
    may_be_noun,
    zipf_frequency,
)
from ingestion.text.words import index_words, normalise, stem, vocabulary_words
from runnables.grounding.citations import without_marks
from runnables.grounding.quantities import Quantity, quantities
from runnables.question.extract_details import error_codes, search_query
from runnables.question.topic_scorer import is_content_word
from schemas.document import Chunk

NO_NOUN = 0.25
"""What a word weighs that names nothing: people say 弄 and 导出去 where documents say otherwise.

At 1 plain questions that the samples answer rank above those about gaps in 57 of 100 pairs, at 0.5 in 62,
at 0.25 in 65; pages of public sets do not mind.
"""

Weighed = tuple[str, float]


def coverage(question: str, cited: str) -> float:
    """The part of the telling words and error codes of `question` that `cited` holds, 0 to 1.

    The rarer a word in everyday language, the more it counts; what was pasted does not.
    """
    weighed = list(_weighed(search_query(question)))
    held = set(map(stem, vocabulary_words(cited))) | set(error_codes(cited))
    total = sum(weight for _, weight in weighed)
    return sum(weight for word, weight in weighed if word in held) / total if total else 1.0


def _weighed(text: str) -> Iterator[Weighed]:
    for word in dict.fromkeys(vocabulary_words(text)):
        if is_content_word(word):
            rarity = COMMON_ZIPF - zipf_frequency(word)
            yield stem(word), rarity * (1.0 if may_be_noun(word) else NO_NOUN)
    for code in dict.fromkeys(error_codes(text)):
        yield code, COMMON_ZIPF - RAREST_ZIPF


ENOUGH = 0.46
"""The share of a statement's telling words that the cited chunks have to hold.

On tests/data/support.jsonl paraphrases hold half or more, statements about another section of the
same page at most 0.43, phrases that fit any page at most 0.2. Of the samples' own sentences all hold
with their own chunk, and 5 in 100 with a chunk of another document that was drawn at random; mostly
that speaks of the same thing. Half a point for a Chinese word whose characters are there, or weights
by rarity, told the two kinds apart no better.
"""

_CODE = re.compile(r"`[^`]*`")
_URL = re.compile(r"https?://[!-~]+")
_STEP_NUMBER = re.compile(
    r"\A\s*(?:[-*•]\s+)?(?:\d{1,2}[.)、](?!\d)|[（(]\d{1,2}[)）])"  # "1. ", "2）"
    r"|第 ?\d{1,2} ?步|步骤 ?\d{1,2}(?!\d)|\bsteps? \d{1,2}(?!\d)"
    r"|(?<!\d)\d{1,2} ?(?:个?步骤|步|点(?=[:,，。]))|(?<!\d)\d{1,2} steps\b",
    re.IGNORECASE,
)
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,2}[.)、](?=\s)", re.MULTILINE)
_TOKEN = re.compile(r"[A-Za-z0-9_/.:@#\-]+")
_WITH_UNIT = re.compile(
    r"\d+(?:\.\d+)?-?(?:[KMGT]?B|ms|s|h|min|second|minute|hour|day|week|month|year)[.:]?|v\d+(?:\.\d+)+",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[_/.\-][A-Za-z0-9]+)+|[a-z]+[A-Z]\w*|[A-Z]{3,}")


def is_supported(statement: str, cited: Sequence[Chunk], question: str) -> bool:
    """Whether `cited` holds the numbers of `statement` and enough of its telling words.

    A number may come from the question instead. What a code span or a url says is not looked at
    here, nor are numbers of steps and resolved citation marks. Chunks in another language than the
    statement cannot be compared by words: they support what has its numbers, and one of its
    identifiers if it has any. Without chunks nothing is supported.
    """
    if not cited:
        return False
    said = normalise(without_marks(statement))
    read = "\n".join(map(_text, cited))
    return _holds_numbers(_prose(said), f"{read}\n{question}") and _holds_words(said, cited)


def overlap(statement: str, text: str) -> float:
    """The share of the statement's telling words that `text` has, 0 to 1; 1 where it has none.

    A Chinese word of one character may be a part of a word there: 选 of 选择.
    """
    words = (word for word in vocabulary_words(statement) if not word[0].isdecimal())
    telling = {stem(word) for word in words if zipf_frequency(word) < COMMON_ZIPF}
    held = telling & _words(text)
    held |= {word for word in telling if len(word) == 1 and not word.isascii() and word in text}
    return len(held) / len(telling) if telling else 1.0


def _holds_words(said: str, cited: Sequence[Chunk]) -> bool:
    language = detect_language(_prose(said))
    texts = [_text(chunk) for chunk in cited]
    comparable = [text for text in texts if detect_language(text) == language]
    if comparable and overlap(said, "\n".join(comparable)) >= ENOUGH:
        return True
    return len(comparable) < len(texts) and _shares_identifiers(said, "\n".join(texts))


def _shares_identifiers(said: str, text: str) -> bool:
    identifiers = _IDENTIFIER.findall(said)
    text = text.lower()
    return not identifiers or any(identifier.lower() in text for identifier in identifiers)


def _holds_numbers(prose: str, text: str) -> bool:
    """Whether all numbers of `prose` are in `text`, each with a unit of the same worth or with none.

    A number that counts no known unit may stand there with any.
    """
    stated = [quantity for quantity in quantities(prose) if _is_meant(quantity)]
    if not stated:
        return True
    read = quantities(_LIST_NUMBER.sub("", text))
    amounts = {quantity.amount for quantity in read}
    bare = {part for quantity in read for part in quantity.parts}
    bare |= {
        quantity.value for quantity in read if quantity.amount is None and not quantity.counted
    }
    values = bare | {quantity.value for quantity in read}
    return all(
        q.value in values if q.amount is None else q.amount in amounts or q.value in bare
        for q in stated
    )


def _is_meant(quantity: Quantity) -> bool:
    """Words may be idioms (一次, 十分) or a model's own count (两个参数), but not 三十天."""
    if not quantity.spelled:
        return True
    kind = quantity.amount[0] if quantity.amount else None
    return kind in ("time", "size", "percent") and quantity.value not in ("0", "1")


def _prose(said: str) -> str:
    """What is said without code, urls, identifiers with digits in them, and numbers of steps."""
    text = _URL.sub(" ", _CODE.sub(" ", said))
    return _TOKEN.sub(_no_identifier, _STEP_NUMBER.sub(" ", text))


def _no_identifier(match: re.Match[str]) -> str:
    token = match[0]
    mixed = any(map(str.isdigit, token)) and token.strip("0123456789.:/-") != ""
    return " " if mixed and not _WITH_UNIT.fullmatch(token) else token


def _text(chunk: Chunk) -> str:
    return "\n".join(
        (chunk.title, chunk.section, chunk.body, chunk.api_name, chunk.api_url, chunk.page_url)
    )


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(index_words(text))
