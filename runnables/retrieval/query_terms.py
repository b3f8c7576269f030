"""The terms of a question: its weighted words, identifiers, needs and quantities.

The words and identifiers are looked for in chunks. `runnables.question.needs` explains needs and
quantities.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from ingestion.store.collection import NO_FILTERS, Collection
from ingestion.text.words import (
    inflected_forms,
    may_be_noun,
    named_words,
    normalise,
    split_words,
    stem,
    with_indexed_versions,
)
from runnables.question.error_codes import error_codes, named_error_code
from runnables.question.extract_details import code_in_response, command_flags
from runnables.question.needs import AskedQuantity, Need, asked_quantities, needs_of, term_to_define
from runnables.question.query_analysis import (
    Glossary,
    Lexicon,
    camel_case_names,
    general_lexicon,
    header_names,
    main_languages,
    names_of_fields,
    numeric_codes,
    specific_identifiers,
)
from runnables.question.topic_scorer import DEVELOPER_WORDS, STOP_WORDS, is_content_word
from runnables.retrieval.exact_search import MAX_IDENTIFIERS, ranges_with
from runnables.retrieval.heading_numbers import contains_number, documented_numbers
from runnables.retrieval.named_operations import chunks_by_path
from runnables.retrieval.path_patterns import chunks_with_pattern, matching_patterns, unescaped_body
from schemas.question import ExtractedDetails, StructuredQuestion

NON_NOUN_FACTOR = 0.5
"""Factor for the weight of a word that is not a noun: questions and documents use different verbs."""

MIN_OTHER_WORDS = 2
"""A question with at least this many words besides codes and names is not only about the codes and names.

Words that developers use on every platform, such as "error", and `REMEDY_WORDS` do not count.
"""

REMEDY_WORDS = frozenset(
    ["errcode", "retcode", "fix", "solve", "solution", "resolve", "handle", "cause", "reason",
     "解决", "处理", "原因", "修复", "办法", "方案"]
)  # fmt: skip
"""Words with which a question asks what an error means and what to do about it."""

MAX_SHORT_VALUE_CHARS = 2
"""Maximum length, in characters, of a value that counts only after words such as "is" or "code"."""

MIN_LINE_CHARS = 15
"""Minimum length, in characters, of a line that shows that program code or a log was pasted."""

_MARKED_WORD = re.compile(
    r"(?<![\w.-])(?!\d{3}\b(?![.-]\w))-?(?=\w*\d|\w*[._-]\w|\w+[A-Z])[A-Za-z\d]+(?:[._-][A-Za-z\d]+)*(?![\w-])",
    re.ASCII,
)
"""A word with a digit, `.`, `_`, `-` or an inner capital, such as `order_id`; not a three-digit number."""

_SHORT_VALUE = re.compile(
    r"(?:[为是=:：]|等于|错误|报错|码|返回|状态|类型|\b(?:is|equals|errors?|codes?|status|returns|value))"
    r"\s?[\"'`“]?(-?[A-Za-z\d]{1,2})(?![\w.-])",
    re.ASCII | re.IGNORECASE,
)
"""A value of one or two characters, such as `5` in "status is 5"."""

_WORD_CHAR = "[a-z0-9_]"
_PIECE = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")


@dataclass(frozen=True)
class QueryTerms:
    """The words of a question with their weights, its identifiers and what it asks for."""

    weights: Mapping[str, float]
    """Information content of each stem in nats, from the frequency of its word in the documents.

    The weight of a word that is not a noun is multiplied by `NON_NOUN_FACTOR`. The number of a version or
    chapter, such as `2.1`, also has a weight if a heading begins with it.
    """
    stems: Sequence[str]
    """The stem of each word of the question, in order."""
    equivalents: Mapping[str, Sequence[str]]
    """The equivalent terms of each stem that has any, stemmed and in lower case."""
    ngrams: Sequence[str]
    """Overlapping sequences of two Chinese or three other characters; a typo changes only a few of them."""
    names_in_prose: Sequence[str]
    """The identifiers in the question without pasted JSON and logs, in lower case."""
    identifiers: frozenset[str]
    """Names, paths, codes, and the names of parameters in a pasted request, in lower case.

    The numbers with which headings begin (see `weights`) are also among them, and the names of rows such as
    `4900~4913` that describe a number.
    """
    values: frozenset[str]
    """Words that may be names or values in the documents, in lower case: `order_id`, `5` in "status is 5".

    If one of these words is the name of a table row or list item, the question is about that row or item.
    """
    error_number: str | None
    """The number that the question names as an error, such as 61055 in "error 61055"."""
    has_pasted_call: bool
    """Whether the question contains the pasted parameters of a request, or a pasted response."""
    lines: frozenset[str]
    """The long lines of a question, without indentation; if there are several, most are pasted."""
    needs: frozenset[Need]
    """The kinds of content that the question asks for, such as errors or parameters."""
    quantities: frozenset[AskedQuantity]
    """The kinds of quantities that the question asks for, such as a time."""
    term_to_define: str = ""
    """The term whose definition the question asks for; empty if it asks for something else."""

    @classmethod
    def of(
        cls,
        details: ExtractedDetails,
        structured: StructuredQuestion | None,
        collection: Collection,
        glossary: Glossary,
        part: str = "",
    ) -> "QueryTerms":
        """Return the terms of a question. This method blocks: call it in a worker thread.

        `structured` is the classified question, or None before classification. If `part` is given, words,
        equivalents, n-grams and heading numbers come only from this part of the question's text.
        """
        text = normalise(part or details.search_query)
        text = with_indexed_versions(text, collection.word_counts)
        asked = with_indexed_versions(details.text, collection.word_counts)
        names = [
            *_identifiers_and_patterns(asked, collection),
            *camel_case_names(asked),
            *header_names(details.question),
            *names_of_fields(text),
        ]
        codes = [code.lower() for code in error_codes(details.text)]
        codes += filter(None, [code_in_response(details)])
        code = named_error_code(details.prose)
        parameters = [name.lower() for name in details.request_param]
        numbers = documented_numbers(collection, part or details.prose)
        ranges = [
            each
            for name in dict.fromkeys([*names, *codes][:MAX_IDENTIFIERS])
            for each in ranges_with(collection, name, NO_FILTERS)
        ]
        identifiers = frozenset([*names, *codes, *parameters, *numbers, *ranges])
        weights = _without_remedy_words(_weights(text, numbers, collection), identifiers)
        return cls(
            weights=weights,
            stems=list(map(stem, split_words(text))),
            equivalents=_equivalents(
                text, weights, (general_lexicon(main_languages(collection)), glossary)
            ),
            ngrams=_ngrams(text),
            names_in_prose=[
                name.lower() for name in specific_identifiers(details.prose)[:MAX_IDENTIFIERS]
            ],
            identifiers=identifiers,
            values=_values(asked),
            error_number=code if code and code.isdecimal() else None,
            has_pasted_call=bool(details.request_param) or details.response is not None,
            lines=long_lines(details.question),
            needs=needs_of(details.text, structured),
            quantities=asked_quantities(details.text),
            term_to_define=term_to_define(part or details.text),
        )

    @cached_property
    def total(self) -> float:
        """The total weight of all words."""
        return sum(self.weights.values())

    @cached_property
    def _heading_numbers(self) -> frozenset[str]:
        """The numbers of versions and chapters among the words."""
        return frozenset(word for word in self.weights if "." in word)

    @cached_property
    def _patterns(self) -> list[tuple[str, list[str]]]:
        """Each stem, with the strings that `found_in` looks for."""
        return [
            (word, [_pattern(word), *map(_pattern, self.equivalents.get(word, ()))])
            for word in self.weights.keys() - self._heading_numbers
        ]

    def found_in(self, text: str) -> frozenset[str]:
        """Return the stems of the question that `text` contains, in any form or as an equivalent.

        A Chinese word also counts if it is a part of a longer word.
        """
        spaced = f" {' '.join(_PIECE.findall(normalise(text).lower()))} "
        found = (
            word
            for word, patterns in self._patterns
            if any(pattern in spaced for pattern in patterns)
        )
        numbers = (number for number in self._heading_numbers if contains_number(text, number))
        return frozenset([*found, *numbers])

    def weight(self, words: Iterable[str]) -> float:
        """Return the weight of `words`, which are stems of the question."""
        return sum(self.weights[word] for word in words)

    def share(self, words: Iterable[str]) -> float:
        """Return the weight of `words` relative to all words, 0 to 1."""
        return self.weight(words) / self.total if self.total else 0.0

    def has_other_words(self, names: Iterable[str]) -> bool:
        """Return whether the question has at least `MIN_OTHER_WORDS` words that are not in `names`.

        `DEVELOPER_WORDS` and `REMEDY_WORDS` do not count.
        """
        known = _with_stems(names) | _GENERAL_WORDS
        return len(self.weights.keys() - known) >= MIN_OTHER_WORDS

    @cached_property
    def flag_words(self) -> Set[str]:
        """The stems of the words in flags such as `--draft`."""
        flags = (name for name in self.identifiers if name.startswith("--"))
        return {stem(word) for flag in flags for word in split_words(flag)}

    @cached_property
    def is_only_identifiers(self) -> bool:
        """Whether the question is only about its identifiers, and not about a difference between them.

        It may contain words such as "error" and "fix" (see `has_other_words`). False for a question without
        identifiers and values, such as "get an API key".
        """
        has_names = bool(self.identifiers or self.values)
        is_difference = "difference" in self.needs
        return has_names and not is_difference and not self.has_other_words(self.identifiers)

    @cached_property
    def is_bare(self) -> bool:
        """Whether the question has no words besides its identifiers, not even words such as "error"."""
        return self.weights.keys() <= _with_stems(self.identifiers)

    def contains_phrase(self, stems: Sequence[str]) -> bool:
        """Return whether the question contains words with these stems, one after the other."""
        return f" {' '.join(stems)} " in f" {' '.join(self.stems)} "

    def ngram_share(self, text: str) -> float:
        """Return the share of `ngrams` that `text` contains, 0 to 1. `text` is in lower case."""
        found = sum(ngram in text for ngram in self.ngrams)
        return found / len(self.ngrams) if self.ngrams else 0.0

    @cached_property
    def _identifier_patterns(self) -> Mapping[str, re.Pattern[str]]:
        return {
            name: re.compile(rf"(?<!{_WORD_CHAR}){re.escape(name)}(?!{_WORD_CHAR})")
            if re.fullmatch(rf"{_WORD_CHAR}+", name)
            else re.compile(re.escape(name))
            for name in self.identifiers
        }

    def identifiers_in(self, text: str) -> frozenset[str]:
        """Return the identifiers that `text` contains. `text` is in lower case.

        A single word such as `reason` must be a whole word: `diff_reason` does not contain it.
        """
        patterns = self._identifier_patterns.items()
        names = frozenset(name for name, pattern in patterns if pattern.search(text))
        return names - {n for n in self._heading_numbers & names if not contains_number(text, n)}

    def identifier_share(self, text: str) -> float:
        """Return the share of `identifiers` that `text` contains, 0 to 1. `text` is in lower case."""
        found = self.identifiers_in(text)
        return len(found) / len(self.identifiers) if self.identifiers else 0.0


def _weights(text: str, numbers: Iterable[str], collection: Collection) -> dict[str, float]:
    """Return the weights of the stems in `text` and of `numbers`, with which headings begin."""
    names = named_words(text)
    words = [
        word
        for word in dict.fromkeys(split_words(text))
        if (word in names and word not in STOP_WORDS) or is_content_word(word)
    ]
    forms = {word: {word, *inflected_forms(word)} for word in words}
    form_counts = collection.word_counts(set().union(*forms.values()))
    counts = {word: sum(form_counts.get(form, 0) for form in forms[word]) for word in words}
    total = max(collection.manifest.words, 2)
    weights = {
        stem(word): math.log(total / (1 + counts[word]))
        * (1.0 if may_be_noun(word) else NON_NOUN_FACTOR)
        for word in words
    }
    # A number in a heading identifies its section as well as the rarest word does.
    return weights | dict.fromkeys(numbers, math.log(total))


def _without_remedy_words(
    weights: dict[str, float], identifiers: frozenset[str]
) -> dict[str, float]:
    """Return `weights` without `REMEDY_WORDS` if the question has no words besides these and identifiers.

    "How do I fix 40014" is then a question about 40014, not about texts with the word "fix".
    """
    remedy_words = _with_stems(REMEDY_WORDS)
    if not identifiers or weights.keys() - _with_stems(identifiers) - remedy_words:
        return weights
    return {word: weight for word, weight in weights.items() if word not in remedy_words}


def _identifiers_and_patterns(text: str, collection: Collection) -> Iterator[str]:
    """Yield the specific identifiers of a question.

    A path that belongs to no API is followed by the patterns that match it, such as `/devices/{id}/state`.
    """
    for name in specific_identifiers(text)[:MAX_IDENTIFIERS]:
        yield name
        if "/" in name and not chunks_by_path(collection, name):
            for chunk in chunks_with_pattern(collection, name, NO_FILTERS):
                yield from matching_patterns(unescaped_body(chunk), name)


def _equivalents(
    text: str, stems: Iterable[str], lexicons: Iterable[Lexicon | Glossary]
) -> dict[str, tuple[str, ...]]:
    """Return the equivalent terms of each of `stems` that has any.

    Words of the question are not equivalents of each other. Otherwise, a text that contains only "limit"
    would seem to contain both words of "max limit".
    """
    found: dict[str, tuple[str, ...]] = {}
    stems = dict.fromkeys(stems)
    for term, group in chain.from_iterable(lexicon.groups(text) for lexicon in lexicons):
        of_term = set(map(stem, split_words(term)))
        synonyms = (stem(other.lower()) for other in group if other.lower() != term)
        others = tuple(other for other in synonyms if other in of_term or other not in stems)
        for word in stems:
            if word in of_term or (not word.isascii() and (word in term or term in word)):
                found[word] = (*found.get(word, ()), *others)
    return found


def _values(text: str) -> frozenset[str]:
    """Return the values of a question.

    A number of three digits counts only after the name of a code, as in `code=142`, or if it is negative.
    Most other numbers of three digits are HTTP statuses.
    """
    marked = (word for word in _MARKED_WORD.findall(text) if len(word) > MAX_SHORT_VALUE_CHARS)
    values = *marked, *_SHORT_VALUE.findall(text), *numeric_codes(text), *command_flags(text)
    return frozenset(value.lower() for value in values)


def long_lines(text: str) -> frozenset[str]:
    """Return the lines of `text` with at least `MIN_LINE_CHARS` characters, without indentation."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(line for line in lines if len(line) >= MIN_LINE_CHARS)


def _ngrams(text: str) -> tuple[str, ...]:
    lowered = " ".join(text.lower().split())
    sequences = (
        lowered[i : i + 3] if lowered[i : i + 3].isascii() else lowered[i : i + 2]
        for i in range(len(lowered) - 1)
    )
    return tuple(dict.fromkeys(sequences))


def _pattern(word: str) -> str:
    """Return the string by which a word with this stem is found in a text with single spaces."""
    if not word.isascii():
        return word
    # The stemmer turns a final y into i. A word of up to three letters matches only as a whole.
    return f" {word.removesuffix('i')}" if len(word) > 3 else f" {word} "


def _with_stems(texts: Iterable[str]) -> frozenset[str]:
    """Return `texts` and the stems of their words."""
    return frozenset(word for text in texts for word in (text, *map(stem, split_words(text))))


_GENERAL_WORDS = _with_stems(DEVELOPER_WORDS | REMEDY_WORDS)
"""Words that say nothing about the subject of a question."""
