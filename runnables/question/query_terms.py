"""What to look for in the chunks: the weighted words of a question, its identifiers and its needs."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ingestion.store.collection import Collection
from ingestion.text.words import may_be_noun, normalise, split_words, stem
from runnables.question.extract_details import error_codes
from runnables.question.question_needs import Need, needs_of
from runnables.question.topic_scorer import is_content_word
from runnables.retrieval.identifiers import specific_identifiers
from schemas.question import ExtractedDetails, StructuredQuestion

NON_NOUN_FACTOR = 0.5
"""Weight of a word that is not a noun; questions and documents use different verbs."""

_PIECE = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")


@dataclass(frozen=True)
class QueryTerms:
    """The words of a question with their weights, its identifiers and its needs."""

    weights: Mapping[str, float]
    """Information content of each stem in the documents, in nats."""
    identifiers: frozenset[str]
    """Names, paths and codes, in lower case."""
    needs: frozenset[Need]

    @classmethod
    def of(
        cls,
        details: ExtractedDetails,
        structured: StructuredQuestion | None,
        collection: Collection,
        part: str = "",
    ) -> "QueryTerms":
        """Return the terms of a question, or the words of one `part` of it. Blocks the event loop."""
        text = normalise(part or details.search_query)
        words = [word for word in dict.fromkeys(split_words(text)) if is_content_word(word)]
        counts, total = collection.word_counts(words), max(collection.manifest.words, 2)
        weights = {
            stem(word): math.log(total / (1 + counts.get(word, 0)))
            * (1.0 if may_be_noun(word) else NON_NOUN_FACTOR)
            for word in words
        }
        codes = [code.lower() for code in error_codes(details.text)]
        identifiers = frozenset([*specific_identifiers(details.text), *codes])
        return cls(weights, identifiers, needs_of(details.text, structured))

    @cached_property
    def total(self) -> float:
        """The weight of all words."""
        return sum(self.weights.values())

    @cached_property
    def _patterns(self) -> list[tuple[str, str]]:
        return [(word, _pattern(word)) for word in self.weights]

    def found_in(self, text: str) -> frozenset[str]:
        """Return the stems that occur in `text`. Chinese words also count as parts of longer ones."""
        spaced = f" {' '.join(_PIECE.findall(normalise(text).lower()))} "
        return frozenset(word for word, pattern in self._patterns if pattern in spaced)

    def weight(self, words: Iterable[str]) -> float:
        """Return the weight of `words`, which are stems of the question."""
        return sum(self.weights[word] for word in words)

    def share(self, words: Iterable[str]) -> float:
        """Return the weight of `words` relative to all words, 0 to 1."""
        return self.weight(words) / self.total if self.total else 0.0

    def identifier_share(self, text: str) -> float:
        """Return the share of the identifiers that `text` contains; 0 without identifiers."""
        lowered = text.lower()
        found = sum(identifier in lowered for identifier in self.identifiers)
        return found / len(self.identifiers) if self.identifiers else 0.0


def _pattern(word: str) -> str:
    """Return what a text with single spaces contains if it contains a word with this stem."""
    if not word.isascii():
        return word
    # The stemmer turns a final y into i. Short words are not matched as the start of others.
    return f" {word.removesuffix('i')}" if len(word) > 3 else f" {word} "
