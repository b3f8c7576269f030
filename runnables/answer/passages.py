"""Finds the passages of the chunks that could answer a question, and ranks them.

A passage consists of segments of one chunk. Segments are chosen by their relevance: the weight of the
question's words in a segment. Passages are ranked by their own relevance: a weighted sum of features.
`benchmarks/fit_answers` fits the weights.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from ingestion.chunking import MAX_INTRODUCTION_CHARS
from runnables.answer.candidate import PARAMETER_WORDS, Candidate
from runnables.answer.code_segments import unasked_code
from runnables.answer.segments import Segment
from runnables.question.needs import CALL_NEEDS
from runnables.retrieval.exact_search import STATUS_DIGITS
from runnables.retrieval.query_terms import QueryTerms
from runnables.retrieval.relevance import relevance_of
from schemas.document import Chunk

MAX_CHARS = 900
"""Maximum length of a passage in characters, without its introduction.

A single segment that is longer is quoted as a whole.
"""

MAX_QUOTED_CHARS = 1_200
"""Maximum total length of the passages of an answer, in characters.

If it is unclear which passage is right, more may be quoted (see `choose_passages.UNCLEAR`).
"""

MAX_PASSAGES_PER_CHUNK = 3
"""Maximum number of passages per chunk.

Each passage extends around an anchor: a segment that the question names, or one of the most relevant
segments.
"""

SMALL_TABLE_CHARS = 500
"""Maximum length of a table that is quoted as a whole, in characters."""

MAX_LABEL_CHARS = 40
"""Maximum length of a label such as "Request example", in characters.

A label is a short paragraph that ends with a letter or a digit.
"""

SIMILAR_SHARE = 0.6
"""Minimum relevance of an anchor that the question does not name.

It is a share of the relevance of the most relevant segment of the chunk. If the anchor is a table row, the
constant also limits which other rows of the table are quoted with it (see `_further_rows`).
"""

MIN_ASKED_SHARE = 0.3
"""Minimum relevance of a row that is clearly asked for, as a share of the weight of the question's words.

`PARAMETER_WORDS` do not count.
"""


@dataclass(frozen=True)
class RankedPassage:
    """Segments of one chunk that may answer the question."""

    chunk: Chunk
    segments: Sequence[Segment]
    words: frozenset[str]
    """The words of the question in the segments, in omitted pasted code, and in `RankedChunk.heading`."""
    named: frozenset[str]
    """The words and identifiers of the question that `RankedChunk.heading` contains."""
    codes: Set[str]
    """The error codes of the question that a row or a list item defines, or that are in the heading."""
    is_definition: bool
    """Whether the question asks for a definition that the passage contains.

    A question asks for a definition if it is only about identifiers or a term, or asks what an error code
    means.
    """
    is_asked_section: bool
    """Whether the chunk is the section of an identifier of the question (see `is_section_of`)."""
    mentions_code: bool
    """Whether the question is about an error number and the passage contains this number."""
    features: Mapping[str, float]
    relevance: float
    """The weighted sum of the features, less `RankedChunk.penalty`."""
    ends_with_pasted: bool = False
    """Whether the passage ends with code that the question contains; `segments` may omit this code."""

    @property
    def is_only_pasted(self) -> bool:
        """Whether the passage consists of code that the question contains."""
        return self.ends_with_pasted and all(each.kind == "code" for each in self.segments)

    @cached_property
    def text(self) -> str:
        """The text of the segments."""
        return "\n".join(segment.text for segment in self.segments)


def is_http_status(code: str) -> bool:
    """Return whether `code` looks like an HTTP status."""
    return len(code) == STATUS_DIGITS and code.isdigit()


def rank_passages(
    candidates: Iterable[Candidate], weights: Mapping[str, float], max_chars: int = MAX_CHARS
) -> list[RankedPassage]:
    """Return the passages of all candidates, best first. `weights` are the weights of the features.

    `max_chars` is the maximum length of a passage, see `MAX_CHARS`.

    Definitions of error codes come first, then passages with `is_asked_section`, then other passages with
    `is_definition`, then all others. Within each of these groups, passages with `mentions_code` come first.
    """
    passages = [each for c in candidates for each in _passages(c, weights, max_chars)]

    def order(passage: RankedPassage) -> tuple[bool, bool, bool, bool, float]:
        defines_code = passage.is_definition and bool(passage.codes)
        kind = not defines_code, not passage.is_asked_section, not passage.is_definition
        return *kind, not passage.mentions_code, -passage.relevance

    return sorted(passages, key=order)


def _passages(
    candidate: Candidate, weights: Mapping[str, float], max_chars: int
) -> Iterator[RankedPassage]:
    indices, relevance = range(len(candidate.segments)), candidate.relevances
    min_relevance = SIMILAR_SHARE * max(relevance)
    named = [i for i in indices if candidate.is_asked(i) or candidate.mentions_code(i)]
    named = [i for i in indices if candidate.defines_term(i)] or named
    similar = [i for i in indices if relevance[i] >= min_relevance]
    anchors = sorted(named or similar, key=lambda i: -relevance[i])[:MAX_PASSAGES_PER_CHUNK]
    for chosen in dict.fromkeys(_choose_segments(candidate, i, max_chars) for i in anchors):
        yield _passage(candidate, chosen, weights)


def _choose_segments(candidate: Candidate, anchor: int, max_chars: int) -> tuple[int, ...]:
    """Return the indices of the segments of the passage around `anchor`, sorted by `_asked_rows_first`.

    The passage has up to `max_chars` characters; code that the question contains is not counted. If the
    anchor is a table row, `_further_rows` chooses other rows of its table. Then the segments before and
    after are added, unless the anchor needs no context, such as the row of an error code.
    """
    segments = candidate.segments
    chosen: dict[int, int] = {}
    is_row = segments[anchor].kind == "row"

    def add(index: int) -> bool:
        length = 0 if index in candidate.pasted else len(segments[index].text)
        if chosen and length + sum(chosen.values()) > max_chars:
            return False
        chosen[index] = length
        return True

    rows = [anchor, *(_further_rows(candidate, anchor) if is_row else ())]
    for index in rows:
        add(index)
    chosen |= _single_rest(segments, rows, chosen, max_chars)
    chosen |= _introduction(segments, min(chosen))
    if not (candidate.stands_alone(anchor) or (is_row and candidate.chunk.kind != "prose")):
        left_out = unasked_code(segments, candidate.terms, candidate.heading_words)
        if is_row:
            left_out.update(_same_block(segments, anchor))
        _grow(candidate.relevances, min(chosen), max(chosen), lambda i: i in left_out or add(i))
        items = [i for i in _same_block(segments, max(chosen)) if segments[i].list_size]
        chosen |= _single_rest(segments, items, chosen, max_chars)
        # The items may be from the middle of their list, whose introduction also governs them.
        chosen |= _introduction(segments, min(_same_block(segments, min(chosen))))
    while (last := max(chosen)) != anchor and _introduces(segments, last):
        del chosen[last]
    return _asked_rows_first(candidate, chosen)


def _introduction(segments: Sequence[Segment], index: int) -> dict[int, int]:
    """Return the segment before `index` if it announces the one at `index`.

    Its length is 0: it is not counted, because the segments after it are unclear without it.
    """
    return {index - 1: 0} if index and _introduces(segments, index - 1) else {}


def _introduces(segments: Sequence[Segment], index: int) -> bool:
    """Return whether the segment announces what follows, and so must not end a passage.

    A label that is the last segment of its chunk announces the next chunk. A short paragraph above a list
    may govern it without a colon, as in "The following actions are not performed."
    """
    segment, following = segments[index], segments[index + 1 : index + 2]
    next_kind = following[0].kind if following else ""
    is_label = len(segment.text) <= MAX_LABEL_CHARS and segment.text[-1:].isalnum()
    is_above_list = next_kind in ("bullet", "item") and len(segment.text) <= MAX_INTRODUCTION_CHARS
    return segment.is_introduction or (
        segment.kind == "paragraph"
        and (next_kind == "code" or is_above_list or (is_label and next_kind in ("row", "")))
    )


def _single_rest(
    segments: Sequence[Segment], indices: Sequence[int], chosen: Collection[int], max_chars: int
) -> dict[int, int]:
    """Return the one of `indices` that is not in `chosen`, if it is short and the only one.

    `max_chars` is the maximum length of the passage; a third of it is short. Its length in the result is 0:
    it is not counted, because an ellipsis in its place would be hardly shorter.
    """
    rest = [index for index in indices if index not in chosen]
    is_short = len(rest) == 1 and len(segments[rest[0]].text) <= max_chars // 3
    return {rest[0]: 0} if is_short else {}


def _grow(relevance: Sequence[float], first: int, last: int, add: Callable[[int], bool]) -> None:
    """Add the segments before `first` and after `last`, the more relevant side first, while they fit."""
    before, after = first - 1, last + 1
    while before >= 0 or after < len(relevance):
        if after >= len(relevance) or (before >= 0 and relevance[before] > relevance[after]):
            before = before - 1 if add(before) else -1
        else:
            after = after + 1 if add(after) else len(relevance)


def _same_block(segments: Sequence[Segment], index: int) -> list[int]:
    """Return the indices of all rows of a table, or items of a list, of which one is at `index`."""
    return [i for i, segment in enumerate(segments) if segment.block == segments[index].block]


def _further_rows(candidate: Candidate, anchor: int) -> list[int]:
    """Return the indices of the other rows of the anchor's table to quote, best first.

    Rows that the question does not clearly ask for come last, parent parameters before their children.
    """
    segments, terms, relevance = candidate.segments, candidate.terms, candidate.relevances
    clear = _clear_relevance(terms)
    table = _same_block(segments, anchor)
    rows = [i for i in table if i != anchor]
    if anchor in candidate.matrix_rows:
        rows = [i for i in rows if i in candidate.matrix_rows]
    elif candidate.defined_codes(anchor):
        rows = [i for i in rows if candidate.is_named(i)]
    elif candidate.is_named_by_phrase(anchor):
        asked = candidate.words[anchor]
        rows = [i for i in rows if candidate.is_named_by_phrase(i) or candidate.words[i] >= asked]
    elif terms.needs and sum(len(segments[i].text) for i in table) <= SMALL_TABLE_CHARS:
        pass  # the whole table is quoted
    elif candidate.is_named(anchor):
        # The names may come from a pasted request, so rows that are not named may also be the answer.
        rows = [i for i in rows if candidate.is_named(i) or relevance[i] >= clear]
    elif relevance[anchor] >= clear:
        min_relevance = SIMILAR_SHARE * relevance[anchor]
        needs_call = terms.needs & CALL_NEEDS
        rows = [
            i
            for i in rows
            if relevance[i] >= min_relevance or (needs_call and segments[i].is_required)
        ]

    def order(index: int) -> tuple[float, int, int]:
        is_clear = relevance[index] >= clear
        return -relevance[index] if is_clear else 0.0, segments[index].depth, index

    return sorted(rows, key=order)


def _clear_relevance(terms: QueryTerms) -> float:
    """Return the minimum relevance of a row that the question clearly asks for."""
    return MIN_ASKED_SHARE * terms.weight(terms.weights.keys() - PARAMETER_WORDS)


def _asked_rows_first(candidate: Candidate, indices: Collection[int]) -> tuple[int, ...]:
    """Return `indices` in document order, except that the rows asked for come first in their table.

    These are the rows that the question clearly asks for, and that are almost as relevant as the best one.
    """
    relevance, segments = candidate.relevances, candidate.segments
    best = max(relevance[i] for i in indices)
    clear = max(_clear_relevance(candidate.terms), SIMILAR_SHARE * best)

    def order(index: int) -> tuple[int, bool, int]:
        is_other_row = segments[index].kind == "row" and relevance[index] < clear
        return segments[index].block, is_other_row, index

    return tuple(sorted(indices, key=order))


def _is_pasted(candidate: Candidate, index: int) -> bool:
    """Return whether the segment is code that the question contains, or introduces only such code."""
    is_before = index + 1 in candidate.pasted and _introduces(candidate.segments, index)
    return index in candidate.pasted or is_before


def _passage(
    candidate: Candidate, indices: Sequence[int], weights: Mapping[str, float]
) -> RankedPassage:
    chunk, terms = candidate.chunk, candidate.terms
    segments = [candidate.segments[i] for i in indices]
    quoted = [candidate.segments[i] for i in indices if not _is_pasted(candidate, i)]
    words = candidate.heading_words.union(*(candidate.words[i] for i in indices))
    text = "\n".join(segment.text for segment in segments)
    features = _features(candidate, indices, text, words)
    row_codes = set().union(*map(candidate.defined_codes, indices))
    codes = candidate.heading_codes | row_codes
    is_definition = (bool(codes) and {"error", "meaning"} <= terms.needs) or any(
        candidate.explains_term(i) or candidate.defines_term(i) for i in indices
    )
    if terms.is_only_identifiers:
        defined = row_codes if terms.is_bare else codes
        # The need `returned` may ask where a value comes from, which request parameters do not say.
        may_define = chunk.kind != "request_parameters" or "returned" not in terms.needs
        is_named = may_define and any(map(candidate.is_named_identifier, indices))
        is_definition |= bool(defined) or is_named
    return RankedPassage(
        chunk,
        quoted or segments,
        words,
        named=candidate.heading_words | terms.identifiers_in(candidate.heading.lower()),
        codes=codes,
        is_definition=is_definition,
        is_asked_section=candidate.is_asked_section,
        mentions_code=any(map(candidate.mentions_code, indices)),
        features=features,
        relevance=relevance_of(features, weights) - candidate.penalty,
        ends_with_pasted=candidate.repeats_question(indices[-1]),
    )


def _features(
    candidate: Candidate, indices: Sequence[int], text: str, words: frozenset[str]
) -> dict[str, float]:
    """Return the features of the passage of the segments at `indices`.

    `text` is the text of the segments, and `words` are the words of the question in it and in the heading.
    """
    terms, segments = candidate.terms, [candidate.segments[i] for i in indices]
    is_code = all(segment.kind == "code" for segment in segments)
    asked = frozenset() if terms.has_pasted_call else terms.identifiers | terms.values
    is_named = any(segment.names.keys() & asked for segment in segments)
    features = candidate.features(text, words, is_code=is_code, is_named=is_named)
    features["ngrams"] = terms.ngram_share(f"{candidate.heading}\n{text}".lower())
    if matrix := [candidate.matrix_rows[i] for i in indices if i in candidate.matrix_rows]:
        # The name of a row and the title of a column are the headings of their cell.
        named = candidate.heading_words.union(*(row.words for row in matrix))
        features["headings"] = terms.share(named)
        is_stated = any(row.states_quantity for row in matrix)
        features["quantity"] = max(features["quantity"], float(is_stated))
    return features
