"""A name as people give it, to the documents that it may mean.

Names are compared word by word: a word counts for as much as it is rare among the names, and a word
that is nearly one of theirs counts for nearly as much (SoftTFIDF of Cohen, Ravikumar and Fienberg, "A
Comparison of String Distance Metrics for Name-Matching Tasks", 2003). Chinese has no spaces: there
characters and pairs of them are the words, so that a slip costs what it touches and no more.
"""

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rapidfuzz import fuzz, process

from ingestion.text.words import normalise
from runnables.retrieval.evidence import api_url_candidates
from runnables.retrieval.name_words import GENERIC, ParsedName, parse_name, with_wholes
from runnables.retrieval.query_analysis import Glossary
from schemas.document import CatalogueEntry

NameWords = tuple[str, ...]

LONGEST_NAME = 200
"""Characters of a name that are read."""

NEAR = 0.46
"""The share of a name's weight that a document has to bear out,"""

NEAR_ALIKE, ALIKE = 0.25, 0.74
"""or this share, where the names as wholes are this much alike."""

ALIKE_WORDS = 75
"""The likeness of two Latin words (0 to 100) from which one may be a slip for the other."""

GENERIC_WEIGHT = 0.3
"""What a generic word counts for, as a share of a telling one; nothing where no name holds it."""

SHORTENED = 0.85
"""What the beginning of a word counts for."""

VERSION = 0.5
"""What a version counts for, as a share of a word."""

UNASKED_VERSION = 0.02
"""What a version in a title takes away where none is asked for."""

CANDIDATES = 30
"""Documents whose whole names are compared."""

_FIELD_WEIGHTS = {"title": 1.0, "glossary": 0.9, "address": 0.85, "service": 0.7}

_PATH = re.compile(r"(?:https?:/)?/\S+|[\w.-]+(?:/[\w{}.:-]+)+")
_VERSION_SEGMENT = re.compile(r"/v(\d+)(?=/)", re.IGNORECASE)
_PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class _Document:
    """A document, and what it may be called."""

    entry: CatalogueEntry
    names: tuple[ParsedName, ...]
    versions: frozenset[str]
    """In its titles; where there is none, in its address."""
    titled_version: bool


class NameIndex:
    """The documents of a catalogue by what they are called: title, API, address, id and service, and by
    what the glossary says for a word of the title.
    """

    def __init__(self, entries: Sequence[CatalogueEntry], glossary: Glossary) -> None:
        self._identified: dict[str, list[CatalogueEntry]] = defaultdict(list)
        self._documents: list[_Document] = []
        self._postings: dict[str, dict[int, float]] = defaultdict(dict)
        for number, entry in enumerate(entries):
            self._add(number, entry, glossary)
        latin = (term for term in self._postings if term.isascii())
        self._latin = sorted(latin)

    def resolve(self, name: str, limit: int = 3) -> list[CatalogueEntry]:
        """The documents that `name` may mean, best first, at most `limit`; none where none is near.

        An address or an id means what has it; another version than the one that is named is never meant.
        """
        if identified := self._by_identifier(name):
            return identified[:limit]
        asked = parse_name(name[:LONGEST_NAME])
        scores = self._scores(asked, _plain(name))
        ranked = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._documents[number].entry for number in ranked[:limit]]

    def _scores(self, asked: ParsedName, plain: str) -> dict[int, float]:
        """The documents that are near enough, each with how well it fits."""
        shares, scores = self._shares(asked), {}
        least = NEAR if any(word not in GENERIC for word in asked.words) else math.inf
        for number in sorted(shares, key=lambda number: (-shares[number], number))[:CANDIDATES]:
            document, share = self._documents[number], shares[number]
            is_service = plain == _plain(document.entry.service_id)
            likeness = 1.0 if is_service else _best_likeness(asked, document)
            if share >= least or (share >= NEAR_ALIKE and likeness >= ALIKE):
                scores[number] = share + likeness + _version_bonus(asked, document)
        return scores

    def _add(self, number: int, entry: CatalogueEntry, glossary: Glossary) -> None:
        for identifier in {_plain(i) for i in _identifiers(entry)} - {""}:
            self._identified[identifier].append(entry)
        names = [
            (kind, parse_name(text)) for kind, text in _called(entry, glossary) if text.strip()
        ]
        for kind, name in names:
            for term in name.terms():
                weights = self._postings[term]
                weights[number] = max(weights.get(number, 0.0), _FIELD_WEIGHTS[kind])
        titled = {version for kind, name in names if kind == "title" for version in name.versions}
        addressed = set(_VERSION_SEGMENT.findall(entry.api_url))
        whole = tuple(dict.fromkeys(name for kind, name in names if kind != "service"))
        versions = frozenset(with_wholes(titled or addressed))
        self._documents.append(_Document(entry, whole, versions, bool(titled)))

    def _by_identifier(self, name: str) -> list[CatalogueEntry]:
        """The documents with the address or id that `name` is, or holds."""
        plain = _plain(name)
        if plain in self._identified:
            return self._identified[plain]
        for path in _PATH.findall(plain):
            for candidate in [path, *api_url_candidates(path.partition("://")[2] or path)]:
                if candidate in self._identified:
                    return self._identified[candidate]
        return []

    def _shares(self, asked: ParsedName) -> dict[int, float]:
        """How much of the weight of `asked` each document bears out, 0 to 1."""
        total, borne = 0.0, defaultdict[int, float](float)
        for term in self._asked_terms(asked):
            near = self._near(term)
            weight = self._weight(term, near)
            total += weight
            found: dict[int, float] = {}
            for other, likeness in near.items():
                for number, share in self._postings[other].items():
                    found[number] = max(found.get(number, 0.0), likeness * share)
            for number, share in found.items():
                borne[number] += weight * share
        allowed = (n for n in borne if self._is_version(asked, n))
        return {number: borne[number] / total for number in allowed} if total else {}

    def _asked_terms(self, asked: ParsedName) -> list[str]:
        """The words of `asked` and its Chinese pairs; two Latin ones are one where a name has them so."""
        terms = dict.fromkeys(asked.terms())
        words = asked.words
        for first, second in pairwise(words):
            if not (first + second).isascii():
                continue
            joined = first + second in self._postings
            if joined and first not in self._postings and second not in self._postings:
                terms.pop(first, None)
                terms.pop(second, None)
            else:
                terms.pop(first + second, None)
        return list(terms)

    def _near(self, term: str) -> dict[str, float]:
        """The words of names that `term` may stand for, and how likely it does."""
        if term in self._postings or not term.isascii():
            return {term: 1.0} if term in self._postings else {}
        near = dict.fromkeys(self._beginning_with(term), SHORTENED) if len(term) > 2 else {}
        if len(term) > 3:
            for word, likeness, _ in process.extract(
                term, self._latin, scorer=fuzz.ratio, score_cutoff=ALIKE_WORDS, limit=10
            ):
                near[word] = max(near.get(word, 0.0), likeness / 100)
        return near

    def _beginning_with(self, term: str) -> Iterator[str]:
        place = bisect_left(self._latin, term)
        while place < len(self._latin) and self._latin[place].startswith(term):
            yield self._latin[place]
            place += 1

    def _weight(self, term: str, near: dict[str, float]) -> float:
        """How telling a word of a question is: inverse document frequency, less for one character."""
        documents = min((len(self._postings[word]) for word in near), default=1)
        weight = math.log(1 + len(self._documents) / documents)
        if term in GENERIC:
            return weight * GENERIC_WEIGHT if near else 0.0
        return weight / 2 if len(term) == 1 else weight

    def _is_version(self, asked: ParsedName, number: int) -> bool:
        versions = self._documents[number].versions
        return not asked.versions or not versions or bool(asked.versions & versions)


def _called(entry: CatalogueEntry, glossary: Glossary) -> Iterator[tuple[str, str]]:
    """What a document may be called, and which kind of name that is."""
    yield "title", entry.title
    if entry.api_name != entry.title:
        yield "title", entry.api_name
    for term in glossary.widen(entry.title):
        yield "glossary", term
    yield "address", _PARAMETER.sub("", entry.api_url)
    yield "address", entry.document_id
    yield "address", entry.api_id
    yield "service", entry.service_id


def _identifiers(entry: CatalogueEntry) -> tuple[str, ...]:
    return entry.api_url, entry.api_id, entry.document_id, entry.page_url


def _plain(name: str) -> str:
    """A name as identifiers are compared."""
    return normalise(name[:LONGEST_NAME]).casefold().strip().rstrip("/")


def _version_bonus(asked: ParsedName, document: _Document) -> float:
    """What the versions say for a document, or against it."""
    bonus = 0.0
    if asked.versions & document.versions:
        bonus += VERSION / (len(asked.words) + VERSION)
    if document.titled_version and not asked.versions:
        bonus -= UNASKED_VERSION
    return bonus


def _best_likeness(asked: ParsedName, document: _Document) -> float:
    """How alike `asked` and what the document is called are as wholes, 0 to 1."""
    ways = {asked.words, asked.telling().words}
    return max(_likeness(way, other.words) for way in ways for other in document.names)


def _likeness(asked: NameWords, other: NameWords) -> float:
    """How alike two names are, 0 to 1; in another order a little less."""
    first, second = " ".join(asked), " ".join(other)
    return max(fuzz.ratio(first, second), 0.95 * fuzz.token_sort_ratio(first, second)) / 100
