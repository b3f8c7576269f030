"""Fuzzy lookup of documents by name.

Names are compared word by word. Words that are rare among all names count more than frequent words, and a
similar word counts nearly as much as an equal word (SoftTFIDF; Cohen, Ravikumar and Fienberg, "A
Comparison of String Distance Metrics for Name-Matching Tasks", 2003). Because Chinese has no spaces,
single characters and pairs of characters count as words. A typing error then affects only one character
and its pairs.
"""

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from rapidfuzz import fuzz, process

from ingestion.text.words import normalise, stem
from runnables.question.query_analysis import Glossary
from runnables.retrieval.path_patterns import api_url_candidates
from schemas.document import CatalogueEntry

_CAMEL_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(
    r"(?<![a-z0-9])(?:version|ver|v)[ ._-]?(\d+(?:\.\d+)*)(?![a-z0-9])"
    r"|版本(\d+(?:\.\d+)*)|第?(?<![\d.])(\d+(?:\.\d+)*)版"
)
_TRAILING_DIGIT = re.compile(r"(?<![a-z0-9./:_-])([1-9])$")
_STOP_WORD = re.compile(r"[的与和及]|\b(?:an?|the|of|for|to|in|on|and|with|how|do|i|my|https?)\b")
_CHINESE_GENERIC = ("接口", "文档", "指南", "说明", "教程", "手册", "页面", "章节", "服务", "怎么",
                    "如何")  # fmt: skip
_LATIN_GENERIC = ("api", "doc", "documentation", "guide", "manual", "tutorial", "reference", "page",
                  "endpoint", "interface", "service")  # fmt: skip
_WORD = re.compile(rf"[a-z0-9]+|{'|'.join(_CHINESE_GENERIC)}|[^\W\da-z_]")

GENERIC_WORDS = frozenset(map(stem, (*_CHINESE_GENERIC, *_LATIN_GENERIC)))
"""Stems of words such as "API" and "guide", which people often add to a name or omit."""

MAX_NAME_CHARS = 200
"""Number of characters of a name that are compared; the rest is ignored."""

MIN_NAME_COVERAGE = 0.46
"""Minimum coverage of a document.

The coverage is the share, by weight, of the words to look up that match the names of the document.
"""

MIN_COVERAGE_IF_SIMILAR = 0.25
"""Minimum coverage, instead of MIN_NAME_COVERAGE, if the whole names are similar."""

MIN_NAME_SIMILARITY = 0.74
"""Minimum similarity, 0 to 1, at which whole names count as similar."""

MIN_WORD_SIMILARITY = 75
"""Minimum similarity, 0 to 100, at which one Latin word may be a misspelling of another."""

GENERIC_WORD_FACTOR = 0.3
"""Weight of a generic word relative to other words."""

PREFIX_SIMILARITY = 0.85
"""Similarity of a word to a longer word that begins with it."""

VERSION_BONUS = 0.5
"""Weight of a matching version relative to a word."""

UNREQUESTED_VERSION_PENALTY = 0.02
"""Penalty for a version in a document's title if the name to look up has no version."""

MAX_COMPARED_DOCUMENTS = 30
"""Maximum number of documents whose names are compared as a whole."""

NameField = Literal["title", "glossary", "address", "service"]

_FIELD_WEIGHTS: dict[NameField, float] = {
    "title": 1.0,
    "glossary": 0.9,
    "address": 0.85,
    "service": 0.7,
}

_PATH = re.compile(r"(?:https?:/)?/\S+|[\w.-]+(?:/[\w{}.:-]+)+")
_VERSION_SEGMENT = re.compile(r"/v(\d+)(?=/)", re.IGNORECASE)
_PATH_PARAMETER = re.compile(r"\{[^}]*\}")


class ParsedName(NamedTuple):
    """The words and versions of a name."""

    words: tuple[str, ...]
    """Stems of Latin words, generic Chinese words, and the characters of other Chinese words."""
    versions: frozenset[str]
    """Normalised version numbers, such as `2` for V2, v2.0 and 第2版."""

    def terms(self) -> Iterator[str]:
        """Yield each word, and each pair of adjacent words of the same script joined into one term."""
        yield from self.words
        for first, second in pairwise(self.words):
            if first.isascii() == second.isascii():
                yield first + second

    def specific_words(self) -> tuple[str, ...]:
        """Return the words that are not generic, or all words if all are generic."""
        return tuple(word for word in self.words if word not in GENERIC_WORDS) or self.words


def parse_name(text: str) -> ParsedName:
    """Parse `text` as a name, ignoring character width, case and punctuation."""
    rest = _CAMEL_BREAK.sub(" ", normalise(text)).casefold().strip()
    versions = [next(filter(None, groups)) for groups in _VERSION.findall(rest)]
    rest = _VERSION.sub(" ", rest)
    if digit := _TRAILING_DIGIT.search(rest):
        versions.append(digit[1])
        rest = rest[: digit.start()]
    words = _WORD.findall(_STOP_WORD.sub("", rest.replace("_", " ")))
    return ParsedName(tuple(map(stem, words)), frozenset(map(_normalise_version, versions)))


def with_parent_versions(versions: Iterable[str]) -> Iterator[str]:
    """Yield each version and its parent versions, such as 2 and 2.1 for version 2.1."""
    for version in versions:
        parts = version.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _normalise_version(version: str) -> str:
    """Return `version` without leading zeros and trailing `.0`: `2` for `02` and `2.0`."""
    return re.sub(r"(?:\.0+)+$", "", version).lstrip("0") or "0"


@dataclass(frozen=True)
class _IndexedDocument:
    entry: CatalogueEntry
    names: tuple[ParsedName, ...]
    versions: frozenset[str]
    """The versions in the titles or, if there are none, in the address, with their parent versions."""
    has_version_in_title: bool


class NameIndex:
    """Index of documents by title, API name, address, ids, service and glossary terms.

    An address is an API URL or a page URL.
    """

    def __init__(self, entries: Sequence[CatalogueEntry], glossary: Glossary) -> None:
        self._by_identifier: dict[str, list[CatalogueEntry]] = defaultdict(list)
        self._documents: list[_IndexedDocument] = []
        self._postings: dict[str, dict[int, float]] = defaultdict(dict)
        """For each term, the weights of the documents that contain it, by document number."""
        for number, entry in enumerate(entries):
            self._add(number, entry, glossary)
        self._latin_terms = sorted(term for term in self._postings if term.isascii())

    def resolve(self, name: str, limit: int = 3) -> list[CatalogueEntry]:
        """Return at most `limit` documents that `name` may refer to, best first.

        If `name` is an id, or contains an indexed address, only the documents with that id or address are
        returned. If `name` contains a version, documents of other versions are excluded.
        """
        if identified := self._find_by_identifier(name):
            return identified[:limit]
        parsed = parse_name(name[:MAX_NAME_CHARS])
        scores = self._score(parsed, _normalise_identifier(name))
        ranked = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._documents[number].entry for number in ranked[:limit]]

    def _add(self, number: int, entry: CatalogueEntry, glossary: Glossary) -> None:
        identifiers = entry.api_url, entry.api_id, entry.document_id, entry.page_url
        for identifier in {*map(_normalise_identifier, identifiers)} - {""}:
            self._by_identifier[identifier].append(entry)
        names = [
            (field, parse_name(text)) for field, text in _names(entry, glossary) if text.strip()
        ]
        for field, name in names:
            for term in name.terms():
                weights = self._postings[term]
                weights[number] = max(weights.get(number, 0.0), _FIELD_WEIGHTS[field])
        in_titles = {
            version for field, name in names if field == "title" for version in name.versions
        }
        in_address = set(_VERSION_SEGMENT.findall(entry.api_url))
        own_names = tuple(dict.fromkeys(name for field, name in names if field != "service"))
        versions = frozenset(with_parent_versions(in_titles or in_address))
        self._documents.append(_IndexedDocument(entry, own_names, versions, bool(in_titles)))

    def _find_by_identifier(self, name: str) -> list[CatalogueEntry]:
        """Return the documents whose address or id equals `name`, or whose address is part of `name`."""
        identifier = _normalise_identifier(name)
        if identifier in self._by_identifier:
            return self._by_identifier[identifier]
        for path in _PATH.findall(identifier):
            for candidate in [path, *api_url_candidates(path.partition("://")[2] or path)]:
                if candidate in self._by_identifier:
                    return self._by_identifier[candidate]
        return []

    def _score(self, name: ParsedName, identifier: str) -> dict[int, float]:
        """Return the scores of the documents that match well enough, by document number."""
        coverage, scores = self._coverage(name), {}
        # A name that has only generic words must be similar as a whole.
        has_specific_word = any(word not in GENERIC_WORDS for word in name.words)
        min_coverage = MIN_NAME_COVERAGE if has_specific_word else math.inf
        ranked = sorted(coverage, key=lambda number: (-coverage[number], number))
        for number in ranked[:MAX_COMPARED_DOCUMENTS]:
            document, share = self._documents[number], coverage[number]
            is_service = identifier == _normalise_identifier(document.entry.service_id)
            similarity = 1.0 if is_service else _best_similarity(name, document)
            is_similar = share >= MIN_COVERAGE_IF_SIMILAR and similarity >= MIN_NAME_SIMILARITY
            if share >= min_coverage or is_similar:
                scores[number] = share + similarity + _version_adjustment(name, document)
        return scores

    def _coverage(self, name: ParsedName) -> dict[int, float]:
        """Return the coverage of each document, 0 to 1, by document number (see `MIN_NAME_COVERAGE`)."""
        total, matched = 0.0, defaultdict[int, float](float)
        for term in self._query_terms(name):
            similar = self._similar_terms(term)
            weight = self._term_weight(term, similar)
            total += weight
            best: dict[int, float] = {}
            for other, similarity in similar.items():
                for number, field_weight in self._postings[other].items():
                    best[number] = max(best.get(number, 0.0), similarity * field_weight)
            for number, score in best.items():
                matched[number] += weight * score
        numbers = (number for number in matched if self._is_version_compatible(name, number))
        return {number: matched[number] / total for number in numbers} if total else {}

    def _query_terms(self, name: ParsedName) -> list[str]:
        """Return the terms of `name`, without those compounds of two Latin words that are not needed.

        If a compound is indexed but neither of its words is, such as `webhook` for "web hook", the compound
        replaces the words. Otherwise, the words are returned and the compound is not.
        """
        terms = dict.fromkeys(name.terms())
        for first, second in pairwise(name.words):
            compound = first + second
            if not compound.isascii():
                continue
            is_indexed = compound in self._postings
            if is_indexed and first not in self._postings and second not in self._postings:
                terms.pop(first, None)
                terms.pop(second, None)
            else:
                terms.pop(compound, None)
        return list(terms)

    def _similar_terms(self, term: str) -> dict[str, float]:
        """Return the indexed terms that `term` may stand for, with their similarities, 0 to 1."""
        if term in self._postings or not term.isascii():
            return {term: 1.0} if term in self._postings else {}
        similar: dict[str, float] = {}
        if len(term) > 2:
            similar = dict.fromkeys(self._terms_with_prefix(term), PREFIX_SIMILARITY)
        if len(term) > 3:
            for other, similarity, _ in process.extract(
                term,
                self._latin_terms,
                scorer=fuzz.ratio,
                score_cutoff=MIN_WORD_SIMILARITY,
                limit=10,
            ):
                similar[other] = max(similar.get(other, 0.0), similarity / 100)
        return similar

    def _terms_with_prefix(self, prefix: str) -> Iterator[str]:
        index = bisect_left(self._latin_terms, prefix)
        while index < len(self._latin_terms) and self._latin_terms[index].startswith(prefix):
            yield self._latin_terms[index]
            index += 1

    def _term_weight(self, term: str, similar: dict[str, float]) -> float:
        """Return the inverse document frequency, reduced for single characters and generic words."""
        frequency = min((len(self._postings[other]) for other in similar), default=1)
        weight = math.log(1 + len(self._documents) / frequency)
        if term in GENERIC_WORDS:
            return weight * GENERIC_WORD_FACTOR if similar else 0.0
        return weight / 2 if len(term) == 1 else weight

    def _is_version_compatible(self, name: ParsedName, number: int) -> bool:
        versions = self._documents[number].versions
        return not name.versions or not versions or bool(name.versions & versions)


def is_title_of(name: str, entry: CatalogueEntry) -> bool:
    """Return whether `name` is the document's title or API name, ignoring case and character width."""
    titles = map(_normalise_identifier, (entry.title, entry.api_name))
    return _normalise_identifier(name) in titles


def _names(entry: CatalogueEntry, glossary: Glossary) -> Iterator[tuple[NameField, str]]:
    yield "title", entry.title
    if entry.api_name != entry.title:
        yield "title", entry.api_name
    for term in glossary.equivalents(entry.title):
        yield "glossary", term
    yield "address", _PATH_PARAMETER.sub("", entry.api_url)
    yield "address", entry.document_id
    yield "address", entry.api_id
    yield "service", entry.service_id


def _normalise_identifier(name: str) -> str:
    return normalise(name[:MAX_NAME_CHARS]).casefold().strip().rstrip("/")


def _version_adjustment(name: ParsedName, document: _IndexedDocument) -> float:
    """Return the bonus for a matching version, less the penalty for a version that was not requested."""
    adjustment = 0.0
    if name.versions & document.versions:
        adjustment += VERSION_BONUS / (len(name.words) + VERSION_BONUS)
    if document.has_version_in_title and not name.versions:
        adjustment -= UNREQUESTED_VERSION_PENALTY
    return adjustment


def _best_similarity(name: ParsedName, document: _IndexedDocument) -> float:
    """Return the similarity of `name` to the most similar name of the document, 0 to 1."""
    variants = {name.words, name.specific_words()}
    return max(_similarity(words, other.words) for words in variants for other in document.names)


def _similarity(words: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return the similarity of two names, 0 to 1; a different word order reduces it by 5%."""
    first, second = " ".join(words), " ".join(other)
    return max(fuzz.ratio(first, second), 0.95 * fuzz.token_sort_ratio(first, second)) / 100
