"""Finds the passages of the chunks that could answer a question, and ranks them.

A passage consists of segments of one chunk in document order. Segments are chosen by their relevance: the
weight of the question's words in a segment. Passages are ranked by their own relevance: a weighted sum of
features. `benchmarks/fit_answers` fits the weights.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from rapidfuzz import fuzz

from ingestion.text.words import split_words, stem
from runnables.answer.code_segments import unasked_code, words_in_segment
from runnables.answer.matrix_rows import MatrixRow, matrix_rows
from runnables.answer.segments import Segment
from runnables.question.error_codes import error_codes
from runnables.question.needs import CALL_NEEDS
from runnables.question.topic_scorer import is_content_word
from runnables.retrieval.exact_search import STATUS_DIGITS, is_section_of, member_names
from runnables.retrieval.named_operations import is_at_path
from runnables.retrieval.query_terms import long_lines
from runnables.retrieval.relevance import RankedChunk, relevance_of
from runnables.retrieval.table_rows import CODE_COLUMN
from schemas.document import Chunk

MAX_CHARS = 900
"""Maximum length of a passage in characters, without its introduction.

A single segment that is longer is quoted as a whole.
"""

MAX_QUOTED_CHARS = 1_200
"""Maximum total length of the passages of an answer, in characters."""

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

HEADING_FACTOR = 0.3
"""Factor for the weight of a word that is also in the heading, and so does not distinguish segments."""

SIMILAR_SHARE = 0.6
"""Minimum relevance of an anchor that the question does not name.

It is a share of the relevance of the most relevant segment of the chunk. If the anchor is a table row, the
constant also limits which other rows of the table are quoted with it (see `_further_rows`).
"""

MIN_ASKED_SHARE = 0.3
"""Minimum relevance of a row that is clearly asked for, relative to the weight of the question's words."""

MIN_PASTED_LINES = 2
"""Minimum number of long lines of a code segment that are also in the question.

The question then contains this code, such as an error log that the documents show as well.
"""

MIN_LINE_SIMILARITY = 80
"""Minimum similarity, 0 to 100, of a line of the question to the same line with another time or name."""

_IDENTIFIER_MARK = re.compile(r"[_.\[\d]|(?<=.)[A-Z]|^-")
"""What distinguishes an identifier such as `sku_id`, `skuId` or `--sku` from a word such as "Refund"."""


@dataclass(frozen=True)
class Candidate(RankedChunk):
    """A chunk whose segments may be quoted."""

    segments: Sequence[Segment]
    """The segments that may be quoted, at least one."""

    @cached_property
    def heading_codes(self) -> Set[str]:
        """The error codes of the question in the chunk's innermost heading, in lower case."""
        codes = map(str.lower, error_codes(self.chunk.section.rpartition(" > ")[2]))
        return self.terms.identifiers & set(codes)

    @cached_property
    def member_names(self) -> Set[str]:
        """The last parts of those dotted names of the question that belong to the section."""
        return member_names(self.chunk, self.terms.identifiers)

    @cached_property
    def is_asked_section(self) -> bool:
        """Whether the chunk is the section of an identifier that the question asks about.

        See `is_section_of`. Names in pasted JSON and logs do not count.
        """
        return is_section_of(self.chunk, self.terms.names_in_prose)

    @cached_property
    def name_words(self) -> Set[str]:
        """The words of the API's name if the question contains all of them, and those of its path.

        They identify the API, so they do not help to choose a segment.
        """
        name, url = self.chunk.api_name, self.chunk.api_url
        words = {stem(word) for word in split_words(name) if is_content_word(word)}
        is_at = url and any(
            "/" in path and is_at_path(url, path) for path in self.terms.identifiers
        )
        in_path = self.terms.found_in(url) if is_at else frozenset[str]()
        return in_path | words if words <= self.terms.weights.keys() else in_path

    @cached_property
    def words(self) -> Sequence[frozenset[str]]:
        """For each segment, the words of the question that it contains."""
        return [words_in_segment(self.terms, segment) for segment in self.segments]

    @cached_property
    def matrix_rows(self) -> Mapping[int, MatrixRow]:
        """The rows with a cell that the question asks about, by the index of the segment."""
        return matrix_rows(self.terms, self.segments) if self.chunk.kind == "prose" else {}

    @cached_property
    def pasted(self) -> Set[int]:
        """The indices of code segments that the question also contains, such as a pasted error log."""
        return {
            index
            for index, segment in enumerate(self.segments)
            if segment.kind == "code"
            and len(self.terms.lines & long_lines(segment.text)) >= MIN_PASTED_LINES
        }

    def repeats_question(self, index: int) -> bool:
        """Return whether the segment is code whose long lines are all in the question.

        A line may have another time or name there. Unlike `pasted` code, a single line suffices, so the
        code and what introduces it are quoted.
        """
        segment, pasted = self.segments[index], self.terms.lines
        lines = long_lines(segment.text) if segment.kind == "code" else frozenset()
        return bool(lines) and all(
            any(fuzz.ratio(line, own) >= MIN_LINE_SIMILARITY for own in pasted) for line in lines
        )

    def is_asked(self, index: int) -> bool:
        """Return whether the question names the segment, or a cell in it."""
        return index in self.matrix_rows or self.is_named(index)

    def is_named(self, index: int) -> bool:
        """Return whether the segment is a table row or list item that the question names.

        `Segment.names` contains the names. In a table of errors, a code such as `not_found` may be anywhere
        in the row.
        """
        return bool(self._asked_names[index] or self._described_codes(index))

    def mentions_code(self, index: int) -> bool:
        """Return whether the question is about an error number and the segment contains this number."""
        terms = self.terms
        is_about = "meaning" in terms.needs or terms.is_only_identifiers
        found = terms.identifiers_in(self.segments[index].text.lower())
        return is_about and terms.error_number in found

    def is_named_by_phrase(self, index: int) -> bool:
        """Return whether the segment's name has several words, and the question contains it as a phrase.

        An identifier such as `order_id` is not a phrase.
        """
        name = self.segments[index].name
        stems = [stem(word) for word in split_words(name)]
        is_identifier = _IDENTIFIER_MARK.search(name) is not None
        return len(stems) > 1 and not is_identifier and self.terms.contains_phrase(stems)

    def explains_term(self, index: int) -> bool:
        """Return whether the segment explains the only term of the question, like a glossary entry.

        Such a segment is a list item, or a row of a table with two or three columns, such as term,
        translation and explanation.
        """
        segment, terms = self.segments[index], self.terms
        is_entry = segment.kind == "bullet" or len(segment.cells) in (2, 3)
        if self.chunk.kind != "prose" or self.chunk.api_url or not is_entry:
            return False
        stems = {stem(word) for word in split_words(segment.name)}
        numbers = {value for value in terms.values if re.search(r"\d", value)}
        others = (terms.identifiers | numbers) - segment.names.keys()
        is_only_term = terms.weights.keys() <= stems and not others
        return is_only_term and terms.needs <= {"meaning"} and self.is_named(index)

    def stands_alone(self, index: int) -> bool:
        """Return whether a row or list item is a complete answer without its neighbours.

        This holds for a row that defines a code, explains a term, has a name that is a phrase of the
        question, or has a cell that the question asks about. It also holds for a list item that defines a
        code, or explains a term or an identifier that the question is about.
        """
        kind, needs = self.segments[index].kind, self.terms.needs
        if index in self.matrix_rows or self.defined_codes(index) or self.explains_term(index):
            return True
        if kind == "row":
            return self.is_named_by_phrase(index)
        is_asked = "meaning" in needs or self.is_named_identifier(index)
        return kind == "bullet" and self.is_named(index) and is_asked and "difference" not in needs

    @cached_property
    def _asked_names(self) -> Sequence[Set[str]]:
        """For each segment, its names that are identifiers, values or words of the question.

        The words in flags do not count: a question with `--draft` does not name a row `draft`.
        """
        terms = self.terms
        values = terms.identifiers | terms.values | self.member_names
        words = terms.weights.keys() - self.name_words

        def asked(segment: Segment) -> Set[str]:
            if segment.is_alternative:  # its fields, in the next rows, are asked for
                return set()
            names, name = segment.names.keys() & values, segment.name.lower()
            stems = set(map(stem, split_words(name))) if name in segment.names else None
            is_word = stems is not None and stems <= words and not stems <= terms.flag_words
            return names | {name} if is_word else names

        return list(map(asked, self.segments))

    def defined_codes(self, index: int) -> Set[str]:
        """Return the error codes of the question that the segment, a table row or list item, defines.

        An ordinary word such as `expired` is a code only if the question is about an error or asks for a
        meaning. The values in a pasted request are not codes.
        """
        terms, segment = self.terms, self.segments[index]
        names = self._asked_names[index]
        if not terms.needs & {"error", "meaning"}:
            names = names & (terms.identifiers | terms.values)
        if terms.has_pasted_call:
            names = names - (terms.values - terms.identifiers)
        if self.chunk.kind == "error_codes" and self.is_named(index):
            is_explained = sum(bool(cell) for _, cell in segment.cells) > 1
            return self._described_codes(index) | (names if is_explained else set())
        return {
            name
            for name in names
            if name.lstrip("-").isdigit()
            or CODE_COLUMN.search(segment.names[name])
            or error_codes(name)
            or self._is_only_code(name)
        }

    def _is_only_code(self, name: str) -> bool:
        """Return whether the question is about an error, and has no words besides the identifier `name`."""
        words = set(map(stem, split_words(name)))
        is_only_name = self.terms.weights.keys() == words and name in self.terms.identifiers
        return is_only_name and "error" in self.terms.needs

    def is_named_identifier(self, index: int) -> bool:
        """Return whether the question names the segment, and the name is not an ordinary word."""
        return (
            self.is_named(index) and _IDENTIFIER_MARK.search(self.segments[index].name) is not None
        )

    def _described_codes(self, index: int) -> Set[str]:
        """Return the non-numeric codes of the question that the segment, a row of an error table, contains.

        The codes may be in any cell, because in some tables the row of an HTTP status describes several
        codes. A row that begins with a code defines only this code, so the result is empty: the row "2014:
        only orders that are `PART_PAID`" does not define `PART_PAID`.
        """
        segment = self.segments[index]
        has_code = len(segment.name) > STATUS_DIGITS and error_codes(segment.name)
        if self.chunk.kind != "error_codes" or segment.kind != "row" or has_code:
            return set()
        codes = {code.lower() for code in error_codes(segment.text) if not code.isdigit()}
        return self.terms.identifiers & codes


@dataclass(frozen=True)
class RankedPassage:
    """Segments of one chunk that may answer the question."""

    chunk: Chunk
    segments: Sequence[Segment]
    words: frozenset[str]
    """The words of the question that the segments or `RankedChunk.heading` contain."""
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
    """Whether it ends with code that the question contains."""

    @property
    def is_only_pasted(self) -> bool:
        """Whether it consists of code that the question contains."""
        return self.ends_with_pasted and all(each.kind == "code" for each in self.segments)

    @cached_property
    def text(self) -> str:
        """The text of the segments."""
        return "\n".join(segment.text for segment in self.segments)


def is_http_status(code: str) -> bool:
    """Return whether `code` looks like an HTTP status."""
    return len(code) == STATUS_DIGITS and code.isdigit()


def rank_passages(
    candidates: Iterable[Candidate], weights: Mapping[str, float]
) -> list[RankedPassage]:
    """Return the passages of all candidates, best first. `weights` are the weights of the features.

    Definitions of error codes come first, then passages with `is_asked_section`, then other passages with
    `is_definition`, then all others. Within each of these groups, passages with `mentions_code` come first.
    """
    passages = [passage for each in candidates for passage in _passages(each, weights)]

    def order(passage: RankedPassage) -> tuple[bool, bool, bool, bool, float]:
        defines_code = passage.is_definition and bool(passage.codes)
        kind = not defines_code, not passage.is_asked_section, not passage.is_definition
        return *kind, not passage.mentions_code, -passage.relevance

    return sorted(passages, key=order)


def _passages(candidate: Candidate, weights: Mapping[str, float]) -> Iterator[RankedPassage]:
    indices = range(len(candidate.segments))
    relevance = [_relevance(candidate, i) for i in indices]
    min_relevance = SIMILAR_SHARE * max(relevance)
    named = [i for i in indices if candidate.is_asked(i) or candidate.mentions_code(i)]
    similar = [i for i in indices if relevance[i] >= min_relevance]
    anchors = sorted(named or similar, key=lambda i: -relevance[i])[:MAX_PASSAGES_PER_CHUNK]
    for chosen in dict.fromkeys(_choose_segments(candidate, relevance, i) for i in anchors):
        yield _passage(candidate, chosen, weights)


def _relevance(candidate: Candidate, index: int) -> float:
    """Return the weight of the question's words in the segment; words in the heading count less.

    The words of the API's name do not count. If the question names the segment, the weight of all words of
    the question is added.
    """
    terms, words = candidate.terms, candidate.words[index] - candidate.name_words
    in_heading = terms.weight(words & candidate.heading_words)
    named = terms.total * candidate.is_asked(index)
    return terms.weight(words) - (1 - HEADING_FACTOR) * in_heading + named


def _choose_segments(
    candidate: Candidate, relevance: Sequence[float], anchor: int
) -> tuple[int, ...]:
    """Return the indices of the segments of the passage around `anchor`, in document order.

    The passage has up to `MAX_CHARS` characters; code that the question contains is not counted. If the
    anchor is a table row, `_further_rows` chooses other rows of its table. Then the segments before and
    after are added, unless the anchor needs no context, such as the row of an error code.
    """
    segments = candidate.segments
    chosen: dict[int, int] = {}
    is_row = segments[anchor].kind == "row"

    def add(index: int) -> bool:
        length = 0 if index in candidate.pasted else len(segments[index].text)
        if chosen and length + sum(chosen.values()) > MAX_CHARS:
            return False
        chosen[index] = length
        return True

    for index in [anchor, *(_further_rows(candidate, relevance, anchor) if is_row else ())]:
        add(index)
    if (before := min(chosen) - 1) >= 0 and _introduces(segments, before):
        chosen[before] = 0  # not counted: the segments after it are unclear without it
    if not (candidate.stands_alone(anchor) or (is_row and candidate.chunk.kind != "prose")):
        left_out = unasked_code(segments, candidate.terms, candidate.heading_words)
        if is_row:
            left_out.update(_table_rows(segments, anchor))
        _grow(relevance, min(chosen), max(chosen), lambda i: i in left_out or add(i))
    while (last := max(chosen)) != anchor and _introduces(segments, last):
        del chosen[last]
    return tuple(sorted(chosen))


def _introduces(segments: Sequence[Segment], index: int) -> bool:
    """Return whether the segment announces what follows, and so must not end a passage.

    A label that is the last segment of its chunk announces the next chunk.
    """
    segment, following = segments[index], segments[index + 1 : index + 2]
    next_kind = following[0].kind if following else ""
    is_label = len(segment.text) <= MAX_LABEL_CHARS and segment.text[-1:].isalnum()
    return segment.is_introduction or (
        segment.kind == "paragraph"
        and (next_kind == "code" or (is_label and next_kind in ("row", "")))
    )


def _grow(relevance: Sequence[float], first: int, last: int, add: Callable[[int], bool]) -> None:
    """Add the segments before `first` and after `last`, the more relevant side first, while they fit."""
    before, after = first - 1, last + 1
    while before >= 0 or after < len(relevance):
        if after >= len(relevance) or (before >= 0 and relevance[before] > relevance[after]):
            before = before - 1 if add(before) else -1
        else:
            after = after + 1 if add(after) else len(relevance)


def _table_rows(segments: Sequence[Segment], row: int) -> list[int]:
    """Return the indices of all rows of the table of `row`."""
    return [i for i, segment in enumerate(segments) if segment.block == segments[row].block]


def _further_rows(candidate: Candidate, relevance: Sequence[float], anchor: int) -> list[int]:
    """Return the indices of the other rows of the anchor's table to quote, best first.

    Rows that the question does not clearly ask for come last, parent parameters before their children.
    """
    segments, terms = candidate.segments, candidate.terms
    clear = MIN_ASKED_SHARE * terms.total
    table = _table_rows(segments, anchor)
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
        # If the names come from a pasted request, the named rows alone may not be the answer.
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
        map(candidate.explains_term, indices)
    )
    if terms.is_only_identifiers:
        defined = row_codes if terms.is_bare else codes
        is_definition |= bool(defined) or any(map(candidate.is_named_identifier, indices))
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
