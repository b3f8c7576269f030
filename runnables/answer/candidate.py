"""The chunks that could answer a question, with the segments that may be quoted.

For each of its segments, a candidate says how relevant the segment is to the question, whether the question
names it, and which error codes of the question it defines.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from rapidfuzz import fuzz

from ingestion.text.markdown_blocks import plain_text
from ingestion.text.words import split_words, stem
from runnables.answer.code_segments import words_in_segment
from runnables.answer.matrix_rows import MatrixRow, matrix_rows
from runnables.answer.segments import Segment
from runnables.question.error_codes import error_codes
from runnables.question.needs import states_definition
from runnables.question.topic_scorer import is_content_word
from runnables.retrieval.exact_search import STATUS_DIGITS, is_section_of, member_names
from runnables.retrieval.named_operations import is_at_path
from runnables.retrieval.number_ranges import is_range
from runnables.retrieval.query_terms import long_lines
from runnables.retrieval.relevance import RankedChunk
from runnables.retrieval.table_rows import CODE_COLUMN

HEADING_FACTOR = 0.3
"""Factor for the weight of a word that is also in the heading, and so does not distinguish segments."""

MIN_PASTED_LINES = 2
"""Minimum number of long lines of a code segment that are also in the question.

The question then contains this code, such as an error log that the documents show as well.
"""

MIN_LINE_SIMILARITY = 80
"""Minimum similarity, 0 to 100, at which a line of the question repeats a line of code.

The lines may differ in a time or a name.
"""

PARAMETER_WORDS = frozenset(
    ["paramet", "param", "argument", "field", "参数", "字段", "传", "传入", "填", "填写"]
)
"""Stems of words with which a question asks for parameters.

They do not help to choose the row of a parameter.
"""

_IDENTIFIER_MARK = re.compile(r"[_.\[\d]|(?<=.)[A-Z]|^-")
"""Matches in identifiers such as `sku_id`, `skuId` and `--sku`, but not in words such as "Refund"."""


@dataclass(frozen=True)
class Candidate(RankedChunk):
    """A chunk whose segments may be quoted."""

    segments: Sequence[Segment]
    """The segments that may be quoted, at least one."""

    @cached_property
    def heading_codes(self) -> Set[str]:
        """The error codes that are in the question and in the chunk's innermost heading, in lower case."""
        codes = map(str.lower, error_codes(self.chunk.section.rpartition(" > ")[2]))
        return self.terms.identifiers & set(codes)

    @cached_property
    def is_asked_section(self) -> bool:
        """Whether the chunk is the section of an identifier that the question asks about.

        See `is_section_of`. Names in pasted JSON and logs do not count.
        """
        return is_section_of(self.chunk, self.terms.names_in_prose)

    @cached_property
    def name_words(self) -> Set[str]:
        """The words of the question that identify the API, and so do not help to choose a segment.

        These are the words of the API's name, if the question contains all of them, and the words of its
        URL, if the question contains a path at which the API is.
        """
        name, url = self.chunk.api_name, self.chunk.api_url
        words = {stem(word) for word in split_words(name) if is_content_word(word)}
        has_path = url and any(
            "/" in path and is_at_path(url, path) for path in self.terms.identifiers
        )
        in_path = self.terms.found_in(url) if has_path else frozenset[str]()
        return in_path | words if words <= self.terms.weights.keys() else in_path

    @cached_property
    def words(self) -> Sequence[frozenset[str]]:
        """For each segment, the words of the question that it contains."""
        return [words_in_segment(self.terms, segment) for segment in self.segments]

    @cached_property
    def relevances(self) -> Sequence[float]:
        """For each segment, the weight of the question's words in it; words in the heading count less.

        `name_words` and, in the row of a parameter, `PARAMETER_WORDS` do not count. If the question names
        the segment or a cell in it, the weight of all words of the question is added.
        """
        return list(map(self._relevance, range(len(self.segments))))

    def _relevance(self, index: int) -> float:
        words = self.words[index] - self.name_words
        if self.segments[index].is_parameter:
            words -= PARAMETER_WORDS
        in_heading = self.terms.weight(words & self.heading_words)
        named = self.terms.total * self.is_asked(index)
        return self.terms.weight(words) - (1 - HEADING_FACTOR) * in_heading + named

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

        The question may have another time or name in a line. Unlike for `pasted`, a single line suffices.
        Such code is quoted together with its introduction, unless it is also in `pasted`.
        """
        segment, question_lines = self.segments[index], self.terms.lines
        lines = long_lines(segment.text) if segment.kind == "code" else frozenset()
        return bool(lines) and all(
            any(fuzz.ratio(line, other) >= MIN_LINE_SIMILARITY for other in question_lines)
            for line in lines
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

    @cached_property
    def _asked_names(self) -> Sequence[Set[str]]:
        """For each segment, its names that are identifiers, values or words of the question.

        The words in flags do not count: a question with `--draft` does not name a row `draft`.
        """
        terms = self.terms
        values = terms.identifiers | terms.values | member_names(self.chunk, terms.identifiers)
        words = terms.weights.keys() - self.name_words

        def asked_names(segment: Segment) -> Set[str]:
            if segment.is_alternative:  # a question asks for its fields, which are in the next rows
                return set()
            names, name = segment.names.keys() & values, segment.name.lower()
            stems = set(map(stem, split_words(name))) if name in segment.names else None
            is_word = stems is not None and stems <= words and not stems <= terms.flag_words
            return names | {name} if is_word else names

        return list(map(asked_names, self.segments))

    def is_named_identifier(self, index: int) -> bool:
        """Return whether the question names the segment, and the name is not an ordinary word."""
        return self.is_named(index) and bool(_IDENTIFIER_MARK.search(self.segments[index].name))

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

    def defines_term(self, index: int) -> bool:
        """Return whether the segment is a paragraph with the definition that the question asks for."""
        segment, term = self.segments[index], self.terms.term_to_define
        is_text = bool(term) and segment.kind == "paragraph"
        return is_text and states_definition(plain_text(segment.text), term)

    def stands_alone(self, index: int) -> bool:
        """Return whether a row, a list item or a part of long code is complete without its neighbours.

        - Each part of long code is complete, such as a setting or a function.
        - A row or a list item is complete if it defines a code or explains a term.
        - A row is also complete if the question asks about one of its cells, or contains its name as a
          phrase.
        - A list item is also complete if the question names it, unless the question asks for a difference.
          Its name must be an identifier, or the question must ask for a meaning.
        """
        kind, needs = self.segments[index].kind, self.terms.needs
        if kind == "code":
            return sum(each.block == self.segments[index].block for each in self.segments) > 1
        if index in self.matrix_rows or self.defined_codes(index) or self.explains_term(index):
            return True
        if kind == "row":
            return self.is_named_by_phrase(index)
        is_asked = "meaning" in needs or self.is_named_identifier(index)
        return kind == "bullet" and self.is_named(index) and is_asked and "difference" not in needs

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
            or is_range(name)
            or CODE_COLUMN.search(segment.names[name])
            or error_codes(name)
            or self._is_only_code(name)
        }

    def _is_only_code(self, name: str) -> bool:
        """Return whether the question is about an error, and has no words besides the identifier `name`."""
        words = set(map(stem, split_words(name)))
        is_only_name = self.terms.weights.keys() == words and name in self.terms.identifiers
        return is_only_name and "error" in self.terms.needs

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
