"""Lexical support: whether cited chunks contain the words and numbers of a statement or a question.

These rules reject statements about topics that the chunks do not cover, and statements with numbers that
the chunks do not contain. The rules do not recognise negation, because "is not needed" contains the words
of "is needed". Numbers are compared with their units, so that 30 天, 三十天 and thirty days are equal.
"""

import re
from collections.abc import Iterator, Sequence

from ingestion.text.language import COMMON_ZIPF, RAREST_ZIPF, detect_language, zipf_frequency
from ingestion.text.words import (
    contains_name,
    index_words,
    may_be_noun,
    normalise,
    stem,
    vocabulary_words,
)
from runnables.grounding.markdown_text import split_markdown, strip_citations
from runnables.grounding.quantities import Quantity, extract_quantities
from runnables.question.error_codes import error_codes
from runnables.question.topic_scorer import is_content_word
from schemas.document import Chunk

NON_NOUN_COVERAGE_FACTOR = 0.25
"""Factor for the weight of a word that is not a noun.

It is low because colloquial questions use verbs that documents do not use, such as 弄 and 导出去. The
value was measured on 100 pairs of colloquial questions. In each pair, files in samples/ answer one question
and not the other. The answered question has the higher `coverage` in 57 pairs with a factor of 1, in 62
with 0.5, and in 65 with 0.25. Public data sets show no difference.
"""

MIN_WORD_SHARE = 0.48
"""Minimum share of a statement's content words and identifiers that the cited chunks must contain.

A capable model answered the questions of benchmarks/questions in 691 steps, of which nearly all are right.
96% of the steps pass with the chunks that they cite, and 22% with another chunk of the same answer. If
identifiers do not count, and the words of the question always do, 95% and 23% pass. In
tests/data/support.jsonl, paraphrases reach at least 0.5, and other statements at most 0.43.
"""

MIN_OWN_WORDS = 4
"""Words of the question are ignored only if at least this many other words are left (see `word_share`)."""

MIN_SENTENCE_SHARE = 0.25
"""Minimum share of the content words of a sentence that the cited chunks must contain.

In 400 test statements, a true sentence of tests/data/support*.jsonl is followed by one about another topic.
Without this rule, 157 of them pass; with it, 67. Of 400 statements with two true sentences, 394 pass with
and without it.
"""

MIN_SENTENCE_WORDS = 5
"""Minimum number of content words of a sentence to which `MIN_SENTENCE_SHARE` applies."""

MIN_INFERRED_SHARE = 0.6
"""Minimum share of a statement that a chunk must contain if a missing citation of the chunk is added."""

MIN_INFERRED_WORDS = 3
"""Minimum number of content words of a statement to which a missing citation is added."""

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
    """Return the weighted share of the content words and codes of `query` that `cited` contains, 0 to 1.

    The share is 1 if `query` has neither. `query` is `ExtractedDetails.search_query`. Words that are rare
    in everyday language weigh more, and words that are not nouns weigh less.
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
            yield stem(word), rarity * (1.0 if may_be_noun(word) else NON_NOUN_COVERAGE_FACTOR)
    for code in dict.fromkeys(error_codes(text)):
        yield code, COMMON_ZIPF - RAREST_ZIPF


# --- statements -----------------------------------------------------------------------------------


def is_supported(statement: str, cited: Sequence[Chunk], question: str) -> bool:
    """Return whether `cited` contains the numbers of `statement` and enough of its content words.

    Numbers may also come from the question. Citation marks and step numbers are ignored, and so are
    numbers in code spans, URLs and identifiers. Without chunks, nothing is supported. If all chunks are in
    the language of the statement, a long sentence about another topic makes the whole statement
    unsupported.

    Words cannot be compared with chunks in another language. For such chunks, one shared identifier is
    enough, and a statement without identifiers passes.
    """
    return contains_numbers(statement, cited, question) and shares_words(statement, cited, question)


def contains_numbers(statement: str, cited: Sequence[Chunk], question: str) -> bool:
    """Return whether `cited` or `question` contains the numbers of `statement`; False without chunks."""
    prose = _prose(normalise(strip_citations(statement)))
    return bool(cited) and _has_numbers_of(prose, f"{_join_texts(cited)}\n{question}")


def word_share(statement: str, text: str, question: str = "") -> float:
    """Return the share of the content words and identifiers of `statement` that are in `text`, 0 to 1.

    The share is 1 if `statement` has none. A Chinese word of one character is also found within a longer
    word, such as 选 in 选择.

    An answer often repeats words of `question` that the documents do not use. Such words are ignored if at
    least `MIN_OWN_WORDS` other words and identifiers are left.
    """
    words, identifiers = _content_words(statement), _identifiers(statement)
    lower_text = text.lower()
    shared = words & index_words(text)
    shared |= {word for word in words if len(word) == 1 and not word.isascii() and word in text}
    found = len(shared) + sum(contains_name(lower_text, name) for name in identifiers)
    total = len(words) + len(identifiers)
    repeated = len((words - shared) & _content_words(question))
    if total - repeated >= MIN_OWN_WORDS:
        total -= repeated
    return found / total if total else 1.0


def inferred_support(statement: str, chunk: Chunk, question: str) -> float:
    """Return the share of `statement` that `chunk` contains, 0 to 1, to find a missing citation.

    The share is that of content words and identifiers or, if the chunk is in another language, of
    identifiers only. The result is 0 if no citation can be inferred:

    - The share is less than `MIN_INFERRED_SHARE`.
    - The chunk does not support the statement (see `is_supported`).
    - The chunk is in the language of the statement, and the statement has fewer than `MIN_INFERRED_WORDS`
      content words, as in "the documentation does not say". Many pages contain such words.
    """
    if not is_supported(statement, [chunk], question):
        return 0.0
    text = _chunk_text(chunk)
    if detect_language(_prose(statement)) == detect_language(text):
        has_enough_words = len(_content_words(statement)) >= MIN_INFERRED_WORDS
        share = word_share(statement, text) if has_enough_words else 0.0
    else:
        share = _identifier_share(statement, text) or 0.0
    return share if share >= MIN_INFERRED_SHARE else 0.0


def _content_words(text: str) -> set[str]:
    """Return the stems of the words of `text` that are not numbers and not very common.

    Unlike in `coverage`, stop words count if they are not very common.
    """
    words = (word for word in vocabulary_words(text) if not word[0].isdecimal())
    return {stem(word) for word in words if zipf_frequency(word) < COMMON_ZIPF}


def _identifiers(statement: str) -> set[str]:
    """Return the code spans and other identifiers of `statement`, in lower case.

    Names with a hyphen count only in code spans, because words such as "30-day" are not identifiers.
    """
    spans = (span.strip("` ") for span in _CODE_SPAN.findall(statement))
    names = (name for name in _IDENTIFIER.findall(statement) if "-" not in name)
    return {name.lower() for name in (*spans, *names) if name}


def shares_words(statement: str, cited: Sequence[Chunk], question: str) -> bool:
    """Return whether `cited` contains enough of the words of `statement`.

    Words are compared with the chunks in the language of the statement. If all chunks are in this language,
    no sentence may be about another topic (see `_has_unrelated_sentence`). If a chunk is in another
    language, a shared identifier is also enough, and a statement without identifiers passes.

    The language is detected in the text of each chunk, because `Chunk.language` is that of the whole
    document, whose sections may be in several languages.
    """
    statement = normalise(strip_citations(statement))
    language = detect_language(_prose(statement))
    same_language = [chunk for chunk in cited if detect_language(_chunk_text(chunk)) == language]
    text = _join_texts(same_language)
    if same_language and word_share(statement, text, question) >= MIN_WORD_SHARE:
        is_mixed = len(same_language) < len(cited)
        return is_mixed or not _has_unrelated_sentence(statement, text, question)
    if len(same_language) == len(cited):
        return False
    share = _identifier_share(statement, _join_texts(cited))
    return share is None or share > 0


def _has_unrelated_sentence(statement: str, text: str, question: str) -> bool:
    """Return whether `statement` has a long sentence of which `text` contains almost no words.

    Code fences are not compared.
    """
    blocks = split_markdown(statement)
    sentences = [_prose(block) for block in blocks if not block.lstrip().startswith(("```", "~~~"))]
    return any(
        len(_content_words(sentence)) >= MIN_SENTENCE_WORDS
        and word_share(sentence, text, question) < MIN_SENTENCE_SHARE
        for sentence in sentences
    )


def _identifier_share(statement: str, text: str) -> float | None:
    """Return the share of the identifiers of `statement` that `text` contains; None if there are none."""
    identifiers = _IDENTIFIER.findall(statement)
    text = text.lower()
    found = sum(identifier.lower() in text for identifier in identifiers)
    return found / len(identifiers) if identifiers else None


def _has_numbers_of(prose: str, text: str) -> bool:
    """Return whether `text` contains all numbers of `prose` that must be supported.

    The item numbers of lists in `text` do not count. A number with a known unit matches an equal quantity,
    or the same number without a unit. A number without a known unit matches the same number with or without
    a unit.
    """
    stated = [quantity for quantity in extract_quantities(prose) if _is_checked(quantity)]
    if not stated:
        return True
    available = extract_quantities(_LIST_NUMBER.sub("", text))
    amounts = {quantity.amount for quantity in available}
    unitless = {value for quantity in available for value in quantity.other_values}
    unitless |= {q.value for q in available if q.amount is None and not q.has_counter}
    values = unitless | {quantity.value for quantity in available}
    return all(
        q.value in values if q.amount is None else (q.amount in amounts or q.value in unitless)
        for q in stated
    )


def _is_checked(quantity: Quantity) -> bool:
    """Return whether a number must be supported.

    A number in words may be part of an idiom (一次, 十分) or count parts of the answer (两个参数). If
    `may_be_idiom` is true, the number is checked only if it has a unit of time, size or percentage (十天)
    and is neither 0 nor 1.
    """
    if not quantity.may_be_idiom:
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
