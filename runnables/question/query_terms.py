"""The terms of a question to look for in chunks: weighted words, identifiers and kinds of content."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ingestion.store.collection import Collection
from ingestion.text.words import may_be_noun, normalise, split_words, stem
from runnables.question.extract_details import error_codes
from runnables.question.question_needs import AskedQuantity, Need, asked_quantities, needs_of
from runnables.question.topic_scorer import is_content_word
from runnables.retrieval.identifiers import specific_identifiers
from runnables.retrieval.query_analysis import Glossary, general_lexicon
from schemas.question import ExtractedDetails, StructuredQuestion

NON_NOUN_FACTOR = 0.5
"""Weight of a word that is not a noun; questions and documents use different verbs."""

_PIECE = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")


@dataclass(frozen=True)
class QueryTerms:
    """The words of a question with their weights, its identifiers and what it asks for."""

    weights: Mapping[str, float]
    """Information content of each stem in the documents, in nats; less if it is not a noun."""
    equivalents: Mapping[str, Sequence[str]]
    """Equivalent terms by stem, stemmed and in lower case; stems without equivalents are missing."""
    letters: Sequence[str]
    """Sequences of two Chinese characters or three other ones, which also match words with typos."""
    identifiers: frozenset[str]
    """Names, paths, codes and the parameters of a pasted request, in lower case."""
    needs: frozenset[Need]
    """The kinds of content that the question asks for, such as errors or parameters."""
    quantities: frozenset[AskedQuantity]
    """The kinds of quantities that the question asks for, such as a time."""

    @classmethod
    def of(
        cls,
        details: ExtractedDetails,
        structured: StructuredQuestion | None,
        collection: Collection,
        glossary: Glossary,
        part: str = "",
    ) -> "QueryTerms":
        """Return the terms of a question. `part` limits the words to one part of its text.

        Blocks the event loop.
        """
        text = normalise(part or details.search_query)
        words = [word for word in dict.fromkeys(split_words(text)) if is_content_word(word)]
        counts, total = collection.word_counts(words), max(collection.manifest.words, 2)
        weights = {
            stem(word): math.log(total / (1 + counts.get(word, 0)))
            * (1.0 if may_be_noun(word) else NON_NOUN_FACTOR)
            for word in words
        }
        codes = [code.lower() for code in error_codes(details.text)]
        sent = [name.lower() for name in details.request_param]
        return cls(
            weights=weights,
            equivalents=_equivalents(text, weights, glossary),
            letters=_letters(text),
            identifiers=frozenset([*specific_identifiers(details.text), *codes, *sent]),
            needs=needs_of(details.text, structured),
            quantities=asked_quantities(details.text),
        )

    @cached_property
    def total(self) -> float:
        """The weight of all words."""
        return sum(self.weights.values())

    @cached_property
    def _patterns(self) -> list[tuple[str, list[str]]]:
        return [
            (word, [_pattern(word), *map(_pattern, self.equivalents.get(word, ()))])
            for word in self.weights
        ]

    def found_in(self, text: str) -> frozenset[str]:
        """Return the stems of the question that `text` contains, in any form or as an equivalent.

        A Chinese word also counts if it is a part of a longer word.
        """
        spaced = f" {' '.join(_PIECE.findall(normalise(text).lower()))} "
        return frozenset(
            word
            for word, patterns in self._patterns
            if any(pattern in spaced for pattern in patterns)
        )

    def weight(self, words: Iterable[str]) -> float:
        """Return the weight of `words`, which are stems of the question."""
        return sum(self.weights[word] for word in words)

    def share(self, words: Iterable[str]) -> float:
        """Return the weight of `words` relative to all words, 0 to 1."""
        return self.weight(words) / self.total if self.total else 0.0

    def letter_share(self, text: str) -> float:
        """Return the share of `letters` that `text` contains, 0 to 1. `text` is in lower case."""
        found = sum(letters in text for letters in self.letters)
        return found / len(self.letters) if self.letters else 0.0

    def identifiers_in(self, text: str) -> frozenset[str]:
        """Return the identifiers that `text` contains. `text` is in lower case."""
        return frozenset(identifier for identifier in self.identifiers if identifier in text)

    def identifier_share(self, identifiers: frozenset[str]) -> float:
        """Return the share of the question's identifiers that are in `identifiers`, 0 to 1."""
        return len(identifiers) / len(self.identifiers) if self.identifiers else 0.0


def _equivalents(text: str, stems: Iterable[str], glossary: Glossary) -> dict[str, tuple[str, ...]]:
    """Return the equivalent terms by stem, for those of `stems` that have any."""
    found: dict[str, tuple[str, ...]] = {}
    for term, group in (*general_lexicon().groups(text), *glossary.groups(text)):
        of_term = set(map(stem, split_words(term)))
        others = tuple(stem(other.lower()) for other in group if other.lower() != term)
        for word in stems:
            if word in of_term or (not word.isascii() and (word in term or term in word)):
                found[word] = (*found.get(word, ()), *others)
    return found


def _letters(text: str) -> tuple[str, ...]:
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
    # The stemmer turns a final y into i. A short word does not match the start of a longer word.
    return f" {word.removesuffix('i')}" if len(word) > 3 else f" {word} "
