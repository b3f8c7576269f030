"""Finds the passages of the chunks that could answer a question, and ranks them.

A passage consists of segments of one chunk in document order, at most about `MAX_CHARS` characters. Its
score is a weighted sum of features; `benchmarks/fit_answers` fits the weights.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from runnables.answer.segments import Segment
from runnables.question.asked_quantities import states_quantity
from runnables.question.extract_details import error_codes
from runnables.question.query_terms import QueryTerms
from runnables.question.question_needs import CALL_NEEDS, fits
from schemas.document import Chunk, SectionKind

MAX_CHARS = 900
"""Length of a passage in characters. Only a single segment can be longer."""

ANCHORS = 3
"""Number of passages per chunk, each around one of its most relevant segments."""

HEADING_FACTOR = 0.3
"""Weight of a word that the heading also contains; such a word does not distinguish segments."""

QUANTITY_FACTOR = 1.3
"""Factor of a segment that states a quantity of the kind that the question asks for."""

SIMILAR_SHARE = 0.5
"""Minimum relevance of further rows of a table and of other anchors, relative to the best one."""

CLEAR_SHARE = 0.3
"""Relevance of a row that is clearly asked for, relative to the weight of all words of the question."""

RARELY_ASKED: frozenset[SectionKind] = frozenset(
    {"response_parameters", "request_headers", "public_parameters", "permission_package"}
)
"""Sections of an API that rarely answer a question that does not ask for them."""


@dataclass(frozen=True)
class Candidate:
    """A chunk whose segments may be quoted, and the question's words that they contain."""

    chunk: Chunk
    segments: Sequence[Segment]
    words: Sequence[frozenset[str]]
    """The words of the question in each segment."""
    heading_words: frozenset[str]
    """The words of the question in the headings and in the API's name and address."""
    rank: int
    """Position among the chunks, from 0."""
    score: float
    """Retrieval score relative to the best chunk's, 0 to 1."""

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        segments: Sequence[Segment],
        terms: QueryTerms,
        rank: int,
        score: float,
    ) -> "Candidate":
        """Return the candidate with the `segments` of `chunk`, which are not empty."""
        words = [terms.found_in(segment.text) for segment in segments]
        heading_words = terms.found_in(_heading(chunk))
        return cls(chunk, segments, words, heading_words, rank, score)


@dataclass(frozen=True)
class QuotedPassage:
    """Segments of one chunk that may answer the question."""

    candidate: Candidate
    segments: tuple[Segment, ...]
    words: frozenset[str]
    """The words of the question in the segments and in the headings above them."""
    identifiers: frozenset[str]
    """The identifiers of the question in the same places."""
    features: Mapping[str, float]
    relevance: float
    """The weighted sum of the features."""

    @property
    def chunk(self) -> Chunk:
        """The chunk that the passage quotes."""
        return self.candidate.chunk

    @cached_property
    def text(self) -> str:
        """The text of the segments."""
        return "\n".join(segment.text for segment in self.segments)


def rank_passages(
    candidates: Iterable[Candidate], terms: QueryTerms, weights: Mapping[str, float]
) -> list[QuotedPassage]:
    """Return the passages of all candidates, best first. `weights` are those of the features."""
    passages = [passage for each in candidates for passage in _passages(each, terms, weights)]
    return sorted(passages, key=lambda passage: -passage.relevance)


def _passages(
    candidate: Candidate, terms: QueryTerms, weights: Mapping[str, float]
) -> Iterator[QuotedPassage]:
    relevance = [_relevance(candidate, i, terms) for i in range(len(candidate.segments))]
    named = [i for i, s in enumerate(candidate.segments) if s.name.lower() in terms.identifiers]
    least = SIMILAR_SHARE * max(relevance)
    similar = [i for i in range(len(relevance)) if relevance[i] >= least]
    anchors = sorted(named or similar, key=lambda i: -relevance[i])[:ANCHORS]
    for indices in dict.fromkeys(_choose(candidate, relevance, i, terms) for i in anchors):
        yield _passage(candidate, indices, terms, weights)


def _heading(chunk: Chunk) -> str:
    """Return the text above a passage: the headings, and the API's name and address."""
    return " ".join((chunk.title, chunk.section, chunk.api_name, chunk.api_url))


def _relevance(candidate: Candidate, index: int, terms: QueryTerms) -> float:
    """Return how much of the question the segment says, beyond its heading."""
    segment, words = candidate.segments[index], candidate.words[index]
    relevance = terms.weight(words) - (1 - HEADING_FACTOR) * terms.weight(
        words & candidate.heading_words
    )
    if states_quantity(segment.text, terms.quantities):
        relevance *= QUANTITY_FACTOR
    return relevance + terms.total * (segment.name.lower() in terms.identifiers)


def _choose(
    candidate: Candidate, relevance: Sequence[float], anchor: int, terms: QueryTerms
) -> tuple[int, ...]:
    """Return the indices of the segments that are quoted with the one at `anchor`, in order.

    Around a row of an API's table they are the other rows that are asked for. Around anything else they
    are the segments before and after it, as many as fit, the more relevant side first.
    """
    segments, kind = candidate.segments, candidate.chunk.kind
    chosen: dict[int, int] = {}
    is_row = segments[anchor].kind == "row"

    def add(index: int) -> bool:
        length = len(segments[index].text)
        if chosen and length + sum(chosen.values()) > MAX_CHARS:
            return False
        chosen[index] = length
        return True

    for index in [anchor, *(_further_rows(segments, relevance, anchor, terms) if is_row else ())]:
        add(index)
    if (before := min(chosen) - 1) >= 0 and segments[before].is_introduction:
        add(before)
    is_named = segments[anchor].name.lower() in terms.identifiers
    is_code = is_named and bool(error_codes(segments[anchor].name))
    if not (is_row and (is_code or kind != "prose")):
        _grow(relevance, min(chosen), max(chosen), add)
    return tuple(sorted(chosen))


def _grow(relevance: Sequence[float], first: int, last: int, add: Callable[[int], bool]) -> None:
    """Add the segments before `first` and after `last`, until one on each side does not fit."""
    before, after = first - 1, last + 1
    while before >= 0 or after < len(relevance):
        if after >= len(relevance) or (before >= 0 and relevance[before] > relevance[after]):
            before = before - 1 if add(before) else -1
        else:
            after = after + 1 if add(after) else len(relevance)


def _further_rows(
    segments: Sequence[Segment], relevance: Sequence[float], anchor: int, terms: QueryTerms
) -> list[int]:
    """Return the other rows of the table to quote: those the question names, or the best ones first.

    If no row is clearly what the question asks for, they are all other rows.
    """
    rows = [i for i, s in enumerate(segments) if s.block == segments[anchor].block and i != anchor]
    if segments[anchor].name.lower() in terms.identifiers:
        return [i for i in rows if segments[i].name.lower() in terms.identifiers]
    if relevance[anchor] < CLEAR_SHARE * terms.total:
        return sorted(rows, key=lambda i: (-relevance[i], i))
    wanted = [i for i in rows if relevance[i] >= relevance[anchor] * SIMILAR_SHARE]
    if terms.needs & CALL_NEEDS:
        wanted += [i for i in rows if segments[i].is_required and i not in wanted]
    return sorted(wanted, key=lambda i: (-relevance[i], i))


def _passage(
    candidate: Candidate, indices: Sequence[int], terms: QueryTerms, weights: Mapping[str, float]
) -> QuotedPassage:
    segments = tuple(candidate.segments[i] for i in indices)
    words = candidate.heading_words.union(*(candidate.words[i] for i in indices))
    text = "\n".join(segment.text for segment in segments)
    whole = f"{_heading(candidate.chunk)}\n{text}".lower()
    identifiers = terms.identifiers_in(whole)
    kind = candidate.chunk.kind
    features = {
        "words": len(words) / max(len(terms.weights), 1),
        "letters": terms.letter_share(whole),
        "identifiers": terms.identifier_share(identifiers),
        "headings": terms.share(candidate.heading_words),
        "quantity": float(states_quantity(text, terms.quantities)),
        "parameters": float(kind == "request_parameters" and "parameter" in terms.needs),
        "unasked": float(kind in RARELY_ASKED and not fits(kind, terms.needs)),
        "rank": 1 / (1 + candidate.rank),
        "score": candidate.score,
    }
    relevance = sum(weight * features[name] for name, weight in weights.items())
    return QuotedPassage(candidate, segments, words, identifiers, features, relevance)
