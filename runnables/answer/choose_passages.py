"""Chooses the passages to quote from the ranked ones, and leaves out what they repeat."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from rapidfuzz import fuzz

from ingestion.text.markdown_blocks import plain_text
from runnables.answer.confidence import first_probability
from runnables.answer.passages import (
    MAX_CHARS,
    MAX_QUOTED_CHARS,
    RankedPassage,
    is_http_status,
)
from runnables.answer.segments import Segment
from runnables.page_versions import is_deprecated
from runnables.question.error_codes import error_codes, named_error_code
from runnables.retrieval.query_terms import QueryTerms
from schemas.document import Chunk

UNCLEAR = 0.3
"""Probability of the best passage below which it is unclear which passage is right.

More and shorter passages are then quoted.
"""

MAX_QUOTED_DEFINITIONS = 3
"""Maximum number of definitions to quote of a single error code."""

MUCH_LONGER = 1.5
"""Minimum length of a definition of an error code, relative to a similar one, for both to be quoted."""

SIMILAR_TEXT = 75
"""Minimum similarity, 0 to 100, at which a definition of an error code repeats another one."""


@dataclass(frozen=True)
class Limits:
    """Limits of the passages that are quoted for a part of the question."""

    passages: int
    """Maximum number of passages."""
    passage_chars: int
    """Maximum length of each passage, in characters (see `passages.MAX_CHARS`)."""
    chars: int
    """Maximum total length of the passages of an answer, in characters."""
    relevance_gap: float
    """Maximum difference in relevance between the best passage and a further passage.

    Relevance is in log-odds: at a difference of 2, the odds that the further passage is right are 0.14
    times (e^-2) those of the best one.
    """


_CLEAR_LIMITS = Limits(4, MAX_CHARS, MAX_QUOTED_CHARS, 2.0)
_UNCLEAR_LIMITS = Limits(6, 450, 1_800, 3.0)
"""The limits if it is unclear which passage is right (see `UNCLEAR`)."""


def limits_of(ranked: Sequence[RankedPassage]) -> Limits:
    """Return the limits of the passages to quote for a part of the question with the passages `ranked`."""
    is_unclear = bool(ranked) and first_probability(ranked) < UNCLEAR
    return _UNCLEAR_LIMITS if is_unclear else _CLEAR_LIMITS


def choose_passages(
    ranked: Sequence[RankedPassage],
    terms: QueryTerms,
    compared: Set[tuple[str, str]],
    limits: Limits,
    part_count: int,
) -> list[RankedPassage]:
    """Return the passages to quote for one of the `part_count` parts of the question, best first.

    - If the best passage defines an error code, `_choose_definitions` chooses the passages.
    - If the question is about an error and another passage defines its code, the result is the best passage
      and this definition, with a text that mentions the code if it is an HTTP status (see
      `_mentions_of_status`). The definition comes first if the best passage does not contain the code,
      unless the code is an HTTP status. A best passage about a different code is left out.
    - Otherwise, the best passage comes first. If the question compares things, the best passages about the
      other things follow (see `_other_sides`), and those about deprecated things come last. `compared` are
      the documents of the APIs that it compares. Further passages must be within `limits`; each part has
      the same share of their total length.
    """
    if not ranked or ranked[0].codes:
        return _choose_definitions(ranked)
    best, *others = ranked
    definition = next((passage for passage in others if passage.codes), None)
    if definition and "error" in terms.needs:
        # The best passage defines no code of the question. If its heading names one, as in "Error 1013",
        # the passage is therefore about another code.
        heading = best.chunk.section.rpartition(" > ")[2]
        is_about_code = heading.startswith(tuple(error_codes(heading))) or named_error_code(heading)
        others = [*_mentions_of_status(definition, ranked), definition]
        if is_about_code:
            return others
        is_explained = any(code in best.text.lower() for code in definition.codes)
        is_status = all(map(is_http_status, definition.codes))
        return [best, *others] if is_explained or is_status else [*others, best]
    chosen = [best]
    if compared or "difference" in terms.needs:
        chosen = [best, *_other_sides(best, others, compared)]
        chosen.sort(key=lambda passage: is_deprecated(passage.chunk))
    chars_left = limits.chars // part_count - sum(len(passage.text) for passage in chosen)
    for passage in others:
        if len(chosen) >= limits.passages:
            break
        is_near = best.relevance - passage.relevance <= limits.relevance_gap
        is_new = all(passage.chunk.body != quoted.chunk.body for quoted in chosen)
        is_asked = not passage.features["unasked"] and passage.mentions_code >= best.mentions_code
        if is_asked and is_near and is_new and len(passage.text) <= chars_left:
            chosen.append(passage)
            chars_left -= len(passage.text)
    return chosen


def _choose_definitions(ranked: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the best definition of each error code, and for a single code also other definitions.

    HTTP statuses are left out if there is also a named error such as `lock_timeout`, which says more.

    If only pages of APIs define the code, the APIs may define it differently, so several definitions are
    returned. If a page about the whole platform defines it too, the definition of an API is added only if
    it is much longer, for example because it contains the remedy. If the code is an HTTP status, a text of
    the same API that mentions the status comes first, because it may say when the API returns it.
    """
    chosen: list[RankedPassage] = []
    has_name = any("_" in code or "." in code for passage in ranked for code in passage.codes)
    for passage in ranked:
        is_status = has_name and all(map(is_http_status, passage.codes))
        if not is_status and not any(passage.codes <= earlier.codes for earlier in chosen):
            chosen.append(passage)
    if len(chosen) != 1:
        return chosen
    first = chosen[0]
    definitions = [passage for passage in ranked if passage.codes == first.codes]
    is_common = any(not passage.chunk.api_url for passage in definitions)
    longer = [passage for passage in definitions if _is_much_longer(passage, first)]
    others = [each for each in definitions if not (is_common and each.chunk.api_url)]
    for passage in (*sorted(longer, key=lambda each: -len(each.text))[:1], *others):
        if len(chosen) < MAX_QUOTED_DEFINITIONS and not any(
            _repeats(passage, each) for each in chosen
        ):
            chosen.append(passage)
    return [*_mentions_of_status(first, ranked), *chosen]


def _mentions_of_status(
    definition: RankedPassage, ranked: Iterable[RankedPassage]
) -> list[RankedPassage]:
    """Return the best passage that mentions the status of `definition` and is about the same API.

    The result is empty if there is no such passage, or if `definition` does not define an HTTP status of an
    API.
    """
    chunk, codes = definition.chunk, sorted(definition.codes)
    if not chunk.api_url or not all(map(is_http_status, codes)):
        return []
    code = re.compile(rf"(?<!\d)(?:{'|'.join(codes)})(?!\d)")
    return [
        passage
        for passage in ranked
        if passage.chunk.document_key == chunk.document_key
        and passage.chunk.kind in ("request_url", "prose")
        and not passage.codes
        and code.search(passage.text)
    ][:1]


def _is_much_longer(passage: RankedPassage, earlier: RankedPassage) -> bool:
    return len(passage.text) >= MUCH_LONGER * len(earlier.text)


def _repeats(passage: RankedPassage, earlier: RankedPassage) -> bool:
    """Return whether `passage` says little that `earlier` does not say."""
    is_similar = fuzz.ratio(passage.text, earlier.text) >= SIMILAR_TEXT
    return is_similar and not _is_much_longer(passage, earlier)


def _other_sides(
    best: RankedPassage, others: Sequence[RankedPassage], compared: Set[tuple[str, str]]
) -> list[RankedPassage]:
    """Return the best passage about each other side of a comparison.

    If the question compares APIs, whose documents are `compared`, each other API is a side. Otherwise, the
    headings of a passage about the other side contain a word or an identifier of the question that the
    headings of `best` do not contain. A passage from the same kind of section as `best` is preferred.
    """
    alike_first = sorted(others, key=lambda passage: passage.chunk.kind != best.chunk.kind)
    if not compared:
        return [passage for passage in alike_first if passage.named - best.named][:1]
    sides = dict[str, RankedPassage]()
    for passage in alike_first:
        if passage.chunk.document_key in compared and passage.chunk.api_name != best.chunk.api_name:
            sides.setdefault(passage.chunk.api_name, passage)
    return list(sides.values())


def without_repeats(passages: Iterable[RankedPassage]) -> Iterator[RankedPassage]:
    """Yield `passages` without segments that an earlier passage quotes, and without empty labels.

    A paragraph is also left out if an earlier passage quotes the same text from another section of its
    document. See `_is_empty_label`.
    """
    quoted = set[tuple[object, object]]()
    for passage in passages:
        contents = {segment: _content(passage.chunk, segment) for segment in passage.segments}
        new = {segment for segment in passage.segments if contents[segment] not in quoted}
        segments = [
            segment
            for index, segment in enumerate(passage.segments)
            if segment in new and not _is_empty_label(passage.segments[index:], new)
        ]
        if segments:
            quoted.update(contents[segment] for segment in segments)
            yield replace(passage, segments=segments)


def _is_empty_label(segments: Sequence[Segment], quoted: Set[Segment]) -> bool:
    """Return whether the first segment only announces the second one, which is not quoted or another label.

    The second segment is another label only if it announces code, rows or items, unlike the value in
    `**Default:** **none**`. A label without a colon, such as "Python" before "Request", may belong to it.
    """
    segment, following = segments[0], segments[1:3]
    if not following or not (segment.is_label or segment.is_bare_announcement):
        return False
    is_before_label = (
        segment.is_bare_announcement
        and segment.is_label
        and following[0].is_label
        and following[-1].kind != "paragraph"
    )
    return following[0] not in quoted or is_before_label


def _content(chunk: Chunk, segment: Segment) -> tuple[object, object]:
    """Return a key that is equal for equal segments of a chunk, and for equal paragraphs of a document."""
    if segment.kind == "paragraph":
        return chunk.document_key, plain_text(segment.text)
    return chunk.id, segment
