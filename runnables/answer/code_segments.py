"""Finds code that a question does not ask for, and the words of a question in code.

Some documents show an example in several languages: a label such as `**Python**` with code, then a label
such as `**Java**` with code, and so on. Each label with its code is called a tab here.
"""

import re
from collections.abc import Iterator, Sequence, Set

from rapidfuzz import fuzz

from ingestion.text.markdown_blocks import plain_text
from ingestion.text.words import split_words, stem
from runnables.answer.segments import Segment
from runnables.retrieval.query_terms import QueryTerms

MIN_TABS = 2
"""Minimum number of consecutive labels, each followed by code, that count as tabs."""

MIN_COMMAND_SIMILARITY = 95
"""Minimum similarity, 0 to 100, at which a question contains a command of the documents."""

_LINE_BREAK = re.compile(r"[\s\\]+")
"""Spaces and line breaks in a command, which may have a backslash before them."""

_NOT_WORDS = re.compile(
    r"^[ \t]*(?:from[ \t]+\S+[ \t]+)?(?:import|export|require|using|package)\b"
    r"|(?<=\S)[ \t]+(?:#|//)[ \t].*$",
    re.MULTILINE,
)
"""Matches the parts of code in which words of the question do not count.

These are keywords such as `import` at the start of a line, and comments after code. Of `from x import y`,
it matches `from x import`.
"""


def words_in_segment(terms: QueryTerms, segment: Segment) -> frozenset[str]:
    """Return the words of the question in the segment.

    In code, keywords such as `import` do not count, nor do comments at the end of a line.
    """
    is_code = segment.kind == "code"
    return terms.found_in(_NOT_WORDS.sub("", segment.text) if is_code else segment.text)


def without_other_tabs(segments: Sequence[Segment], terms: QueryTerms) -> list[Segment]:
    """Return `segments` without the tabs that the question does not ask for.

    If the question contains the label of a tab, such as "Java", the other tabs of its group are left out.
    """
    others = set[int]()
    for tabs in _tab_groups(segments):
        named = [tab for tab in tabs if _is_label_named(segments[tab[0]], terms)]
        if named:
            others.update(index for tab in tabs if tab not in named for index in tab)
    return [segment for index, segment in enumerate(segments) if index not in others]


def without_pasted_commands(segments: Sequence[Segment], question: str) -> list[Segment]:
    """Return `segments` without the curl commands that `question` contains: the asker knows them.

    A command may be broken into lines in another way, and have slightly different values.
    """
    pasted = _as_line(question)
    if "curl " not in pasted:
        return list(segments)
    return [each for each in segments if each.kind != "code" or not _is_pasted(each.text, pasted)]


def _is_pasted(code: str, question: str) -> bool:
    command = _as_line("\n".join(code.splitlines()[1:-1]))  # without the fence
    may_be_pasted = command.startswith("curl ") and len(command) <= len(question)
    return may_be_pasted and fuzz.partial_ratio(command, question) >= MIN_COMMAND_SIMILARITY


def _as_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text).strip("$> ")


def unasked_code(
    segments: Sequence[Segment], terms: QueryTerms, heading_words: Set[str]
) -> set[int]:
    """Return the indices of the segments that must not be quoted as the context of another segment.

    If a request or response is pasted into the question, these are the code segments with their labels,
    because the asker already has code. Code within a text stays, because the text is unclear without it
    (see `_is_within_text`). If nothing is pasted, the result is empty if the question asks how something is
    done. In all other cases, these are the labels and code of each group of tabs that contains no word of
    the question except those in `heading_words`.
    """
    if terms.has_pasted_call:
        code = {
            index
            for index, segment in enumerate(segments)
            if segment.kind == "code" and not _is_within_text(segments, index)
        }
        return code | {index - 1 for index in code if index and segments[index - 1].is_label}
    if "steps" in terms.needs:
        return set()
    groups = ([index for tab in tabs for index in tab] for tabs in _tab_groups(segments))
    return {
        index
        for group in groups
        if all(words_in_segment(terms, segments[each]) <= heading_words for each in group)
        for index in group
    }


def _is_within_text(segments: Sequence[Segment], index: int) -> bool:
    """Return whether a paragraph announces the code at `index`, and another one follows that says more.

    The second paragraph is neither a label nor a bare announcement, which begin another example.
    """
    before, after = segments[max(0, index - 1)], segments[index + 1 : index + 2]
    is_announced = before.is_introduction and not before.is_label
    return is_announced and any(
        each.kind == "paragraph" and not (each.is_label or each.is_bare_announcement)
        for each in after
    )


def _tab_groups(segments: Sequence[Segment]) -> Iterator[list[range]]:
    """Yield each group of tabs that follow each other; a tab is the indices of its label and its code."""
    group: list[range] = []
    index = 0
    while index < len(segments):
        end = index + 1
        while end < len(segments) and segments[end].kind == "code":
            end += 1
        if segments[index].is_label and end > index + 1:
            group.append(range(index, end))
        else:
            if len(group) >= MIN_TABS:
                yield group
            group = []
        index = end
    if len(group) >= MIN_TABS:
        yield group


def _is_label_named(label: Segment, terms: QueryTerms) -> bool:
    stems = list(map(stem, split_words(plain_text(label.text))))
    is_common = len(stems) == 1 and stems[0] not in terms.weights  # such as the verb "go"
    return bool(stems) and not is_common and terms.contains_phrase(stems)
