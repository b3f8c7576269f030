"""Finds headings, lists and code that authors of pages express without the usual Markdown syntax for them.

Many Chinese documents mark sections only by numbers, FAQ pages set questions in bold, some dialects of
Markdown have definition lists, some authors put the labels of tables into lists, and old pages indent code.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import groupby, pairwise, zip_longest

from ingestion.text.markdown_blocks import (
    MAX_HEADING_CHARS,
    MarkdownBlock,
    parse_blocks,
    plain_text,
)

# --- Chinese numbers ------------------------------------------------------------------------------

MIN_HEADINGS = 2
"""Minimum number of numbered headings of one level. A single one may be part of the text around it."""

MAX_NUMBERED_CHARS = 40
"""Maximum length of a heading with its number. A longer line is an item of a list."""

_DIGITS = "一二三四五六七八九"
_NUMBER = rf"([{_DIGITS}]?十[{_DIGITS}]?|[{_DIGITS}])"
_SPACE = r"[ \t\u3000]*"
_STYLES = (
    (2, re.compile(rf"{_SPACE}{_NUMBER}{_SPACE}、{_SPACE}\S")),
    (3, re.compile(rf"{_SPACE}[(（]{_NUMBER}[)）]{_SPACE}、?{_SPACE}\S")),
)
"""Levels of headings, with the start of their lines: 2 for `一、概述`, and 3 for `（一）范围`."""
_FIRST = re.compile(r"一[ \t\u3000]*、|[(（]一[)）]")
_SENTENCE = re.compile(r"[。；，]|[;,.!！]\s*\Z")
"""Matches a line that is a sentence or a part of one."""

_FIRST_CHAPTER = re.compile(
    rf"(?:第?[1{_DIGITS}](?:章|部分|[.、])?\s*)?"
    r"(?:概\s*述|引\s*言|前\s*言|序\s*言|绪\s*论|总\s*则|简\s*介|overview|introduction|preface|general)",
    re.IGNORECASE,
)


def is_first_chapter_title(title: str) -> bool:
    """Return whether `title` is a common title of a first chapter, such as "1 概述" or "Introduction"."""
    return _FIRST_CHAPTER.fullmatch(title.strip()) is not None


@dataclass(frozen=True)
class _Line:
    """A line of a paragraph, or a whole block that is not a paragraph."""

    block: int
    """Index of the block on the page."""
    index: int
    """Index of the line in its block."""
    title: str = ""
    level: int = 0
    """The level of the heading that the line may be, else 0."""
    number: int = 0
    """The value of the line's Chinese number, else 0."""


def with_numbered_headings(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page with lines that begin with Chinese numbers turned into headings.

    `一、` begins a section and `（一）` a subsection. The numbers must begin at one and be consecutive, and
    text or a subsection must follow each line. Otherwise, the lines are a list or a table of contents. The
    blocks are unchanged if the page has a heading below its title.
    """
    may_have_headings = any(
        block.kind == "paragraph" and _FIRST.search(block.text) for block in blocks
    )
    if not may_have_headings or any(block.kind == "heading" for block in blocks[1:]):
        return list(blocks)
    headings = {(line.block, line.index): line for line in _headings(list(_lines(blocks)))}
    anchor = blocks[0].anchor
    return [
        part
        for i, block in enumerate(blocks)
        for part in _split_at_headings(block, i, headings, anchor)
    ]


def _lines(blocks: Sequence[MarkdownBlock]) -> Iterator[_Line]:
    for i, block in enumerate(blocks):
        if block.kind != "paragraph":
            yield _Line(i, 0)
            continue
        for j, line in enumerate(block.text.split("\n")):
            yield _read_line(line, i, j)


def _read_line(text: str, block: int, index: int) -> _Line:
    if len(text) <= MAX_NUMBERED_CHARS:
        title = " ".join(plain_text(text).split())
        for level, pattern in _STYLES:
            match = pattern.match(title)
            if match and not _SENTENCE.search(title):
                return _Line(block, index, title.rstrip(":： "), level, _number(match[1]))
    return _Line(block, index)


def _number(text: str) -> int:
    """Return the value of a Chinese number from 一 to 九十九."""
    tens, ten, units = text.rpartition("十")
    value = 10 * (_DIGITS.find(tens or "一") + 1) if ten else 0
    return value + _DIGITS.find(units or " ") + 1


def _headings(lines: list[_Line]) -> list[_Line]:
    """Return the lines that are headings, judged by their numbers and by the lines after them."""
    followed = [
        line
        for line, following in pairwise(lines)
        if line.level and (following.level == 0 or following.level > line.level)
    ]
    upper = [line for line in followed if line.level == 2]
    upper = upper if _is_sequence(upper) else []

    def sections_before(line: _Line) -> int:
        return sum((heading.block, heading.index) < (line.block, line.index) for heading in upper)

    lower = (line for line in followed if line.level == 3)
    groups = (list(group) for _, group in groupby(lower, sections_before))
    return [*upper, *(line for group in groups if _is_sequence(group) for line in group)]


def _is_sequence(lines: Sequence[_Line]) -> bool:
    numbers = [line.number for line in lines]
    return len(numbers) >= MIN_HEADINGS and numbers == list(range(1, len(numbers) + 1))


def _split_at_headings(
    block: MarkdownBlock, block_index: int, headings: dict[tuple[int, int], _Line], anchor: str
) -> Iterator[MarkdownBlock]:
    """Yield the headings in a block, and the text between them, as blocks.

    `headings` contains the headings of the page by the index of their block and of their line.
    """
    lines = block.text.split("\n")
    found = [i for i in range(len(lines)) if (block_index, i) in headings]
    if not found:
        yield block
        return
    for start, end in pairwise([0, *(found if found[0] else found[1:]), len(lines)]):
        heading = headings.get((block_index, start))
        if heading:
            yield MarkdownBlock("heading", lines[start], heading.level, heading.title, anchor)
            start += 1
        if text := "\n".join(lines[start:end]).strip("\n"):
            yield MarkdownBlock("paragraph", text)


# --- questions ------------------------------------------------------------------------------------

QUESTION_LEVEL = 7
"""Level of the headings of questions. It is deeper than 6, so that any Markdown heading ends an answer."""

MIN_QUESTIONS = 2
"""Minimum number of answered questions on a page. A single one may be part of the text around it."""

_BOLD = re.compile(
    r" {0,3}(?P<mark>\*\*|__)(?=\S)(?P<text>(?:(?!(?P=mark)).)+)(?P=mark)(?P<end>[?？]?)[:：]?"
    r"(?:[ \t]*(?:\\|<br\s*/?>))?[ \t]*"
)
"""A line that is entirely bold, possibly with a line break at its end."""
_QUESTION_LABEL = re.compile(
    r"(?:Q(?:uestion)?[ \t]*\d*|问题?[ \t]*\d*)[ \t]*[:：.．、][ \t]*(?=\S)", re.IGNORECASE
)
"""The start of a question, such as "Q:", "Q1." or 问："""
_ANSWER = r"(?:A(?:nswer)?[ \t]*\d*|答案?|回答)[ \t]*"
_ANSWER_LABEL = re.compile(
    rf"\s*(?:(?P<bold>\*\*|__){_ANSWER}(?:[:：](?P=bold)|(?P=bold)[:：])"
    rf"|(?P<open>(?:\*\*|__)?){_ANSWER}[:：])[ \t]*(?=\S)(?!\*\*|__)",
    re.IGNORECASE,
)
"""The start of an answer, such as "A:", `**A:**` or 答：; an answer in bold may begin with `**A:`."""
_OPTIONS = re.compile(r"\s*A[:：].*\bB[:：]", re.DOTALL)
"""The start of a list of options: "A: Basic. B: Pro." """


def with_question_headings(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page with its questions turned into headings.

    A question is a line in bold that ends with a question mark or begins with a label such as "Q:". Its
    answer must follow. The new heading has `QUESTION_LEVEL` and the anchor of the heading above it. A label
    before the answer, such as "A:", is removed. Such lines are unchanged if the page has fewer than
    `MIN_QUESTIONS` of them.

    If a heading has such a label and ends with a question mark, the label is removed. The label of the
    answer below the heading is removed as well.
    """
    blocks = list(_without_question_labels(blocks))
    parts = [part for block in blocks for part in _split_questions(block)]
    answered = {
        index
        for index, (part, following) in enumerate(pairwise(parts))
        if question_of(part) and following.kind != "heading" and not question_of(following)
    }
    if len(answered) < MIN_QUESTIONS:
        return blocks
    anchor = ""
    found: list[MarkdownBlock] = []
    for index, part in enumerate(parts):
        if part.kind == "heading":
            anchor = part.anchor
        elif index in answered:
            title = question_of(part)
            part = MarkdownBlock("heading", part.text, QUESTION_LEVEL, title, anchor)
        elif index - 1 in answered and part.kind == "paragraph":
            part = MarkdownBlock("paragraph", _without_answer_label(part.text))
        found.append(part)
    return found


def _without_question_labels(blocks: Iterable[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks without labels such as "Q:" in headings and "A:" in the answers below them."""
    is_answer = False
    for block in blocks:
        if is_answer and block.kind == "paragraph":
            block = replace(block, text=_without_answer_label(block.text))
        label = _QUESTION_LABEL.match(block.title)
        is_answer = label is not None and block.title.endswith(("?", "？"))
        yield replace(block, title=block.title[label.end() :]) if label and is_answer else block


def question_of(block: MarkdownBlock) -> str:
    """Return the question of a block that is only a question, without its label; empty for other blocks."""
    line = _BOLD.fullmatch(block.text) if block.kind == "paragraph" else None
    if line is None or len(line["text"]) > MAX_HEADING_CHARS:
        return ""
    text = " ".join(unescape(plain_text(line["text"] + line["end"])).split())
    label = _QUESTION_LABEL.match(text)
    is_question = label is not None or text.endswith(("?", "？"))
    return text[label.end() if label else 0 :] if is_question else ""


def _without_answer_label(answer: str) -> str:
    label = None if _OPTIONS.match(answer) else _ANSWER_LABEL.match(answer)
    return (label["open"] or "") + answer[label.end() :] if label else answer


def _split_questions(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    """Yield the questions in a paragraph, and the text between them, as blocks."""
    lines = block.text.split("\n") if block.kind == "paragraph" else []
    if len(lines) < 2 or not any(map(_BOLD.fullmatch, lines)):
        yield block
        return
    text: list[str] = []
    for line in lines:
        paragraph = MarkdownBlock("paragraph", line)
        if question_of(paragraph):
            yield from _paragraph(text)
            yield paragraph
            text = []
        else:
            text.append(line)
    yield from _paragraph(text)


def _paragraph(lines: Iterable[str]) -> Iterator[MarkdownBlock]:
    text = "\n".join(lines)
    if text.strip():
        yield MarkdownBlock("paragraph", text)


# --- definition lists -----------------------------------------------------------------------------

MIN_TERMS = 2
"""Minimum number of terms of a definition list. A single line that begins with a colon may be anything."""

MAX_DEPTH = 5
"""Maximum depth of nested definition lists. Deeper lists stay as they are."""

_DEFINITION = re.compile(r"^ {0,3}:[ \t]+(?=\S)", re.MULTILINE)
_PANDOC_DEFINITION = re.compile(r"^:   \S", re.MULTILINE)
"""A definition as Pandoc writes it. A list of such definitions may have a single term."""
_INDENTED = re.compile(r"^(?: {4}|\t)", re.MULTILINE)
_INDENT = re.compile(r"^(?: {1,4}|\t)")


@dataclass
class _Entry:
    label: str
    """The term in bold, with a colon."""
    definition: str
    """The Markdown of the definition, without its indentation."""


def with_definition_lists(blocks: Sequence[MarkdownBlock], depth: int = 0) -> list[MarkdownBlock]:
    """Return the blocks of a page with each definition list replaced by a list with one item per term.

    The syntax is that of PHP Markdown Extra, MkDocs and Pandoc. A definition is a line that begins with a
    colon, below the line with its term. A blank line may separate the two lines. If a definition has
    several paragraphs, all but its first are indented. If any definition contains a list, the result is not
    a list: each term becomes a label in bold before its definition.

    Definition lists with fewer than `MIN_TERMS` terms do not change, unless Pandoc wrote them. `depth` is
    the number of definitions that contain the blocks.
    """
    may_have_lists = any(b.kind == "paragraph" and _DEFINITION.search(b.text) for b in blocks)
    if not may_have_lists or depth > MAX_DEPTH:
        return list(blocks)
    found: list[MarkdownBlock] = []
    start = 0
    while start < len(blocks):
        end, entries = _read_list(blocks, start)
        is_from_pandoc = any(_PANDOC_DEFINITION.search(block.text) for block in blocks[start:end])
        if len(entries) >= MIN_TERMS or (entries and is_from_pandoc):
            found += _blocks_of_list(entries, depth)
        else:
            end = start + 1
            found.append(blocks[start])
        start = end
    return found


def _blocks_of_list(entries: Sequence[_Entry], depth: int) -> Iterator[MarkdownBlock]:
    """Yield a list with an item per entry, or labels and definitions if a definition contains a list."""
    definitions = [
        with_definition_lists(parse_blocks(entry.definition), depth + 1) for entry in entries
    ]
    if not any(block.kind == "list" for blocks in definitions for block in blocks):
        items = (f"{entry.label} {entry.definition}" for entry in entries)
        text = "\n".join(f"- {textwrap.indent(item, '  ').strip()}" for item in items)
        yield MarkdownBlock("list", text)
        return
    for entry, blocks in zip(entries, definitions, strict=True):
        first = f" {blocks.pop(0).text}" if blocks[0].kind == "paragraph" else ""
        yield MarkdownBlock("paragraph", entry.label + first)
        yield from blocks


def _read_list(blocks: Sequence[MarkdownBlock], start: int) -> tuple[int, list[_Entry]]:
    """Return the end of the definition list that begins at `start`, and its entries."""
    entries: list[_Entry] = []
    while start < len(blocks):
        block = blocks[start]
        following = blocks[start + 1] if start + 1 < len(blocks) else None
        if entries and block.kind == "fence" and _INDENTED.match(block.text):
            entries[-1].definition += f"\n\n{_INDENTED.sub('', block.text)}"
            start += 1
        elif entries and block.kind == "paragraph" and _DEFINITION.match(block.text):
            # The term is in an earlier block. `x` takes its place in the paragraph that `_entries` reads.
            more, *others = _entries(MarkdownBlock("paragraph", f"x\n{block.text}"))
            entries[-1].definition += f"\n{more.definition}"
            entries += others
            start += 1
        elif found := list(_entries(block)):
            entries += found
            start += 1
        elif following and _is_term(block) and _DEFINITION.match(following.text):
            entries += _entries(MarkdownBlock("paragraph", f"{block.text}\n{following.text}"))
            start += 2
        else:
            break
    return start, entries


def _is_term(block: MarkdownBlock) -> bool:
    return block.kind == "paragraph" and "\n" not in block.text


def _entries(block: MarkdownBlock) -> Iterator[_Entry]:
    """Yield the terms of a paragraph with their definitions; nothing if it does not begin with a term."""
    lines = block.text.split("\n") if block.kind == "paragraph" else []
    definition_flags = [bool(_DEFINITION.match(line)) for line in lines]
    if definition_flags[:2] != [False, True]:
        return
    label, definition = "", list[str]()
    for line, defines, precedes_definition in zip(
        lines, definition_flags, [*definition_flags[1:], False], strict=True
    ):
        if precedes_definition and not defines:
            if definition:
                yield _Entry(label, "\n".join(definition))
            term = line.strip()
            label, definition = f"{term if '**' in term else f'**{term}**'}:", []
        else:
            mark = _DEFINITION if defines else _INDENT
            definition.append(mark.sub("", line, count=1).rstrip())
    yield _Entry(label, "\n".join(definition))


# --- labels in lists ------------------------------------------------------------------------------

_LABEL_AT_END = re.compile(r"(?:^|\n)[-*+][ \t]+(\*\*[^*\n]{1,40}\*\*[:：]?)\s*\Z")
"""The last item of a list, if the item is on the first level and contains only bold text."""
_BOLD_ITEM = re.compile(r"^[-*+][ \t]+\*\*[^*\n]+\*\*[:：]?[ \t]*$", re.MULTILINE)


def with_list_labels(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Turn each list item that labels the next block into a paragraph; return all blocks of the page.

    Such an item is the last of its list, and the only one that contains only bold text. A table or code
    follows the list. If the list has no other item, any block may follow. Below a paragraph that ends with
    a colon, and thus announces the list, an item is a label only before a table.
    """
    found: list[MarkdownBlock] = []
    for block, following in zip_longest(blocks, blocks[1:]):
        label = _LABEL_AT_END.search(block.text) if block.kind == "list" else None
        if label is None or not _labels_block(block, label.start(), found, following):
            found.append(block)
            continue
        items = block.text[: label.start()]
        found += [MarkdownBlock("list", items)] if items else []
        found.append(MarkdownBlock("paragraph", label[1]))
    return found


def _labels_block(
    block: MarkdownBlock,
    start: int,
    before: Sequence[MarkdownBlock],
    following: MarkdownBlock | None,
) -> bool:
    """Return whether the last item of a list labels the block `following` (see `with_list_labels`).

    `start` is the position of the item in the text of the list, and `before` contains the blocks above.
    """
    if len(_BOLD_ITEM.findall(block.text)) > 1:
        return False
    kind = following.kind if following else ""
    is_announced = bool(before) and _announces_block(before[-1])
    return kind == "table" or (not is_announced and (start == 0 or kind == "fence"))


def _announces_block(block: MarkdownBlock) -> bool:
    """Return whether a block is a paragraph that ends with a colon."""
    return block.kind == "paragraph" and block.text.rstrip("* \t").endswith((":", "："))


# --- indented code --------------------------------------------------------------------------------

_MARKDOWN_LINE = re.compile(r"^[ \t]*(?:`{3}|~{3}|[-*+>|][ \t]|\d+[.)][ \t])", re.MULTILINE)
"""A line of Markdown, such as a list item or a fence."""


def with_fenced_code(blocks: Iterable[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a page, with fences around indented code that a paragraph announces.

    The paragraph ends with a colon. Other indented text stays as it is, because it is often prose: the text
    of an MDX component, or of a list item with too much indentation. Indented Markdown stays as well.
    """
    is_announced = False
    for block in blocks:
        is_indented = block.kind == "fence" and _INDENTED.match(block.text) is not None
        if is_indented and is_announced and not _MARKDOWN_LINE.search(block.text):
            code = textwrap.dedent(block.text.expandtabs(4)).strip("\n")
            block = replace(block, text=f"```\n{code}\n```")
        is_announced = _announces_block(block)
        yield block
