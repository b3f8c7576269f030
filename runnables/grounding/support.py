"""Lexical support: whether cited chunks contain the words and numbers of a statement or a question.

These rules reject topics that the chunks do not cover, and numbers that the chunks do not contain. They
do not recognise negation, because "is not needed" contains the words of "is needed".
"""

import re
from collections.abc import Iterator, Sequence

from ingestion.text.language import COMMON_ZIPF, RAREST_ZIPF, detect_language, zipf_frequency
from ingestion.text.words import index_words, may_be_noun, normalise, stem, vocabulary_words
from runnables.grounding.markdown_text import strip_citations
from runnables.grounding.quantities import Quantity, extract_quantities
from runnables.question.extract_details import error_codes
from runnables.question.topic_scorer import is_content_word
from schemas.document import Chunk

NON_NOUN_FACTOR = 0.25
"""Weight of a word that is not a noun.

It is low because colloquial questions use verbs that documents do not use, such as 弄 and 导出去. It was
measured on pairs of colloquial questions. Files in samples/ answer only one of each pair. That question
has the higher coverage in 57 of 100 pairs with a weight of 1, in 62 with 0.5, and in 65 with 0.25. Public
data sets show no difference.
"""

MIN_WORD_SHARE = 0.46
"""Share of a statement's content words that the cited chunks must contain.

In tests/data/support.jsonl, paraphrases reach at least 0.5, statements about another section of the same
page at most 0.43, and phrases that fit any page at most 0.2. All sentences in samples/ pass with their
own chunk. 5 of 100 pass with a random chunk of another document, and most of these chunks say the same. Two
variants do not separate paraphrases from other statements any better: counting a Chinese word as half if
only its separate characters occur, and weighting words by rarity.
"""

MIN_INFERRED_SHARE, MIN_INFERRED_WORDS = 0.6, 3
"""Minimum share of a statement that a chunk must contain, and minimum number of content words in the
statement, to add a missing citation.
"""

_CODE_SPAN = re.compile(r"`[^`]*`")
_URL = re.compile(r"https?://[!-~]+")
_STEP_NUMBER = re.compile(
    r"\A\s*(?:[-*•]\s+)?(?:\d{1,2}[.)、](?!\d)|[（(]\d{1,2}[)）])"  # "1. ", "2）"
    r"|第 ?\d{1,2} ?步|步骤 ?\d{1,2}(?!\d)|\bsteps? \d{1,2}(?!\d)"
    r"|(?<!\d)\d{1,2} ?(?:个?步骤|步|点(?=[:,，。]))|(?<!\d)\d{1,2} steps\b",
    re.IGNORECASE,
)
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,2}[.)、](?=\s)", re.MULTILINE)
_TOKEN = re.compile(r"[A-Za-z0-9_/.:@#\-]+")
_NUMBER_WITH_UNIT = re.compile(
    r"\d+(?:\.\d+)?-?(?:[KMGT]?B|ms|s|h|min|second|minute|hour|day|week|month|year)[.:]?|v\d+(?:\.\d+)+",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[_/.\-][A-Za-z0-9]+)+|[a-z]+[A-Z]\w*|[A-Z]{3,}")


# --- questions ------------------------------------------------------------------------------------


def coverage(query: str, cited: str) -> float:
    """Return the weighted share of the content words and error codes of `query` in `cited`, 0 to 1.

    The share is 1 if `query` has none. `query` is a question without pasted details (`search_query`). Words
    that are rare in everyday language weigh more.
    """
    weighted_terms = list(_weighted_terms(query))
    cited_terms = index_words(cited) | set(error_codes(cited))
    total = sum(weight for _, weight in weighted_terms)
    covered = sum(weight for term, weight in weighted_terms if term in cited_terms)
    return covered / total if total else 1.0


def _weighted_terms(text: str) -> Iterator[tuple[str, float]]:
    for word in dict.fromkeys(vocabulary_words(text)):
        if is_content_word(word):
            rarity = COMMON_ZIPF - zipf_frequency(word)
            yield stem(word), rarity * (1.0 if may_be_noun(word) else NON_NOUN_FACTOR)
    for code in dict.fromkeys(error_codes(text)):
        yield code, COMMON_ZIPF - RAREST_ZIPF


# --- statements -----------------------------------------------------------------------------------


def is_supported(statement: str, cited: Sequence[Chunk], question: str) -> bool:
    """Return whether `cited` contains the numbers of `statement` and enough of its content words.

    Numbers may also come from the question. Citation marks and step numbers are ignored, and so are
    numbers in code spans, URLs and identifiers. Without chunks, nothing is supported.

    Words cannot be compared with chunks in another language. Such chunks support a statement if they
    contain its numbers and at least one of its identifiers, if it has any.
    """
    if not cited:
        return False
    text = normalise(strip_citations(statement))
    has_numbers = _contains_numbers(f"{_join_texts(cited)}\n{question}", _prose(text))
    return has_numbers and _shares_words_or_identifier(text, cited)


def word_share(statement: str, text: str) -> float:
    """Return the share of the content words of `statement` that are in `text`, 0 to 1.

    The share is 1 if `statement` has none. A Chinese word of one character also counts if it is part of a
    longer word, such as 选 in 选择.
    """
    content_words = _content_words(statement)
    shared = content_words & index_words(text)
    shared |= {
        word for word in content_words if len(word) == 1 and not word.isascii() and word in text
    }
    return len(shared) / len(content_words) if content_words else 1.0


def inferred_support(statement: str, chunk: Chunk, question: str) -> float:
    """Return the share of `statement` that `chunk` contains, 0 to 1, to find a missing citation.

    The share is that of content words or, if the chunk is in another language, of identifiers. The result
    is 0 if the share is less than `MIN_INFERRED_SHARE`, or if the chunk does not support the statement.
    Content words are compared only if there are at least `MIN_INFERRED_WORDS`, because a statement such as
    "the documentation does not say" shares its words with many pages.
    """
    if not is_supported(statement, [chunk], question):
        return 0.0
    text = _chunk_text(chunk)
    if detect_language(_prose(statement)) == detect_language(text):
        is_distinct = len(_content_words(statement)) >= MIN_INFERRED_WORDS
        share = word_share(statement, text) if is_distinct else 0.0
    else:
        identifiers = _IDENTIFIER.findall(statement)
        found = sum(identifier.lower() in text.lower() for identifier in identifiers)
        share = found / len(identifiers) if identifiers else 0.0
    return share if share >= MIN_INFERRED_SHARE else 0.0


def _content_words(text: str) -> set[str]:
    words = (word for word in vocabulary_words(text) if not word[0].isdecimal())
    return {stem(word) for word in words if zipf_frequency(word) < COMMON_ZIPF}


def _shares_words_or_identifier(statement: str, cited: Sequence[Chunk]) -> bool:
    """Return whether the chunks in the language of `statement` contain enough of its words.

    If a chunk is in another language, it is also enough if any chunk contains an identifier of `statement`,
    or if `statement` has none.
    """
    language = detect_language(_prose(statement))
    same_language = [chunk for chunk in cited if detect_language(_chunk_text(chunk)) == language]
    if same_language and _shares_words(statement, _join_texts(same_language)):
        return True
    return len(same_language) < len(cited) and _shares_identifier(statement, _join_texts(cited))


def _shares_words(statement: str, text: str) -> bool:
    return word_share(statement, text) >= MIN_WORD_SHARE


def _shares_identifier(statement: str, text: str) -> bool:
    """Return whether `text` contains an identifier of `statement`; True if `statement` has none."""
    identifiers = _IDENTIFIER.findall(statement)
    text = text.lower()
    return not identifiers or any(identifier.lower() in text for identifier in identifiers)


def _contains_numbers(text: str, prose: str) -> bool:
    """Return whether `text` contains all numbers of `prose`.

    A number with a known unit matches an equal quantity, or the same number without a unit. A number
    without a known unit matches the same number with any unit.
    """
    stated = [quantity for quantity in extract_quantities(prose) if _is_checked(quantity)]
    if not stated:
        return True
    available = extract_quantities(_LIST_NUMBER.sub("", text))
    amounts = {quantity.amount for quantity in available}
    unitless = {part for quantity in available for part in quantity.parts}
    unitless |= {q.value for q in available if q.amount is None and not q.has_counter}
    values = unitless | {quantity.value for quantity in available}
    return all(
        q.value in values if q.amount is None else q.amount in amounts or q.value in unitless
        for q in stated
    )


def _is_checked(quantity: Quantity) -> bool:
    """Return whether a number must be supported.

    A number in words may be part of an idiom (一次, 十分) or count parts of the answer (两个参数). It is
    checked only if it is greater than 1 and has a unit of time, size or percentage, such as 三十天.
    """
    if not quantity.is_word:
        return True
    kind = quantity.amount[0] if quantity.amount else None
    return kind in ("time", "size", "percent") and quantity.value not in ("0", "1")


def _prose(statement: str) -> str:
    """Return the statement without code, URLs, identifiers that contain digits, and step numbers."""
    text = _URL.sub(" ", _CODE_SPAN.sub(" ", statement))
    return _TOKEN.sub(_drop_identifier, _STEP_NUMBER.sub(" ", text))


def _drop_identifier(match: re.Match[str]) -> str:
    token = match[0]
    is_mixed = any(map(str.isdigit, token)) and token.strip("0123456789.:/-") != ""
    return " " if is_mixed and not _NUMBER_WITH_UNIT.fullmatch(token) else token


def _chunk_text(chunk: Chunk) -> str:
    return "\n".join(
        (chunk.title, chunk.section, chunk.body, chunk.api_name, chunk.api_url, chunk.page_url)
    )


def _join_texts(chunks: Sequence[Chunk]) -> str:
    return "\n".join(map(_chunk_text, chunks))
