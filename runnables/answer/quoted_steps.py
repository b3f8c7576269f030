"""Turns quoted passages into the steps of an answer, and adds the parameters and permissions of an API."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any

from ingestion.sources.api_docs import api_method
from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import markdown_table, plain_text, split_code
from ingestion.text.sentences import split_sentences
from prompts.chat_prompts import load_quote_texts
from runnables.answer.confidence import Quotes
from runnables.answer.passages import (
    MAX_LABEL_CHARS,
    MAX_QUOTED_CHARS,
    SMALL_TABLE_CHARS,
    RankedPassage,
)
from runnables.answer.segments import Segment, list_item, split_chunk
from runnables.page_versions import PageVersions, is_deprecated
from runnables.question.needs import CALL_NEEDS, Need, needs_of
from runnables.state import PipelineState
from schemas.choices import Language
from schemas.document import Chunk, SectionKind

_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})")
"""The fence of code, with the spaces and quote marks before it."""
_ITEM_FENCE = re.compile(
    r"^(?P<marker>[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+)(?P<fence>`{3,}|~{3,})[^`\n]*$", re.MULTILINE
)
"""The opening line of code that begins a list item."""

_BLANK_END = re.compile(r"(?:\n[ \t>]*)+\Z")

MIN_LISTED_ROWS = 3
"""Minimum number of quoted parameters at which a question probably asks for all parameters."""

QuotedStep = tuple[str, Chunk]
"""The text of a step and the chunk that it quotes."""


def quoted_steps(state: PipelineState, quotes: Quotes, collection: Collection) -> list[QuotedStep]:
    """Return the steps that quote the passages. This function blocks: call it in a worker thread."""
    question = state["question"]
    needs = needs_of(question.text, state["classification"].structured)
    quoter = _Quoter(collection, question.language, needs, state["versions"])
    best = {ranked[0].chunk.document_key for ranked in quotes.ranked if ranked}
    by_document: defaultdict[tuple[str, str], list[RankedPassage]] = defaultdict(list)
    for passage in quotes.passages:
        by_document[passage.chunk.document_key].append(passage)
    return [
        step
        for document, quoted in by_document.items()
        for step in (
            quoter.quote_api(quoted, is_best=document in best)
            if quoted[0].chunk.api_url
            else quoter.quote_page(quoted)
        )
    ]


class _Quoter:
    """Turns passages into steps."""

    def __init__(
        self,
        collection: Collection,
        language: Language,
        needs: frozenset[Need],
        versions: PageVersions,
    ) -> None:
        self._collection = collection
        self._versions = versions
        self._language = language
        self._needs = needs
        self._templates: Any = load_quote_texts(language)

    def quote_page(self, passages: Sequence[RankedPassage]) -> Iterator[QuotedStep]:
        """Yield the steps that quote `passages` of one page.

        Each passage begins with the title of its page and the headings of its section.
        """
        for passage in passages:
            chunk = passage.chunk
            first, *others = _block_texts(passage.segments, MAX_QUOTED_CHARS)
            heading = self._templates.heading(chunk.title, chunk.section, *self._marks(chunk))
            yield from ((text, chunk) for text in (f"{heading}\n\n{first}", *others))

    def quote_api(self, passages: Sequence[RankedPassage], *, is_best: bool) -> list[QuotedStep]:
        """Return the steps that quote `passages` of the document of one API.

        The first step begins with the API's name, method and address. `is_best` says whether the best
        passage for the question, or for one of its parts, is in this document. If it is, and if a passage
        is from the section `request_url`, the steps of `_steps_for_call` follow.
        """
        passages = sorted(passages, key=lambda passage: passage.chunk.kind != "request_url")
        first = passages[0].chunk
        lists_rest = "parameter" in self._needs
        steps = [
            (text, each.chunk) for each in passages for text in _section_texts(each, lists_rest)
        ]
        steps = _without_repeated_description(steps)
        document = self._collection.chunks_of_document(first.document_id, first.source)
        sections = {chunk.kind: chunk for chunk in reversed(document)}  # the first of each kind
        if first.kind == "request_url":
            steps.insert(0, (self._api_line(first), first))
            if is_best:
                quoted = {passage.chunk.kind for passage in passages}
                steps += self._steps_for_call(
                    {kind: chunk for kind, chunk in sections.items() if kind not in quoted}
                )
            return steps
        line = self._api_line(sections.get("request_url", first))
        return [(f"{line}\n\n{steps[0][0]}", first), *steps[1:]]

    def _api_line(self, chunk: Chunk) -> str:
        name = chunk.api_name or chunk.title
        marks = self._marks(chunk)
        return str(self._templates.interface(name, api_method(chunk), chunk.api_url, *marks))

    def _marks(self, chunk: Chunk) -> tuple[str, bool]:
        """Return the version to name after the title of a page, and whether the page is deprecated."""
        return self._versions.name_of(chunk), is_deprecated(chunk)

    def _steps_for_call(self, sections: dict[SectionKind, Chunk]) -> Iterator[QuotedStep]:
        """Yield the required parameters and the permissions of a call, if the question may need them.

        A small table of parameters is quoted as a whole, if any of them is required.
        """
        needs_call = not self._needs or self._needs & CALL_NEEDS
        if needs_call and (chunk := sections.get("request_parameters")):
            table = [s for s in split_chunk(chunk, self._language) if s.kind == "row"]
            rows = [row for row in table if row.is_required]
            if rows and sum(len(row.text) for row in table) <= SMALL_TABLE_CHARS:
                rows = table
            if texts := _block_texts(rows, MAX_QUOTED_CHARS // 2):
                yield texts[0], chunk
        needs_permission = needs_call or "permission" in self._needs
        if needs_permission and (chunk := sections.get("permission_package")):
            names = [s.name for s in split_chunk(chunk, self._language) if s.name]
            if names:
                yield str(self._templates.permission(names)), chunk


def _without_repeated_description(steps: list[QuotedStep]) -> list[QuotedStep]:
    """Return `steps` without a description of the API that is its name or is contained in quoted prose."""
    prose = "\n".join(_as_line(text) for text, chunk in steps if chunk.kind == "prose")

    def is_repeated(text: str, chunk: Chunk) -> bool:
        return text == chunk.api_name or _as_line(text).removesuffix(" …") in prose

    return [step for step in steps if step[1].kind != "request_url" or not is_repeated(*step)]


def _as_line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _section_texts(passage: RankedPassage, lists_rest: bool) -> list[str]:
    """Return the texts of a passage of an API; prose begins with its heading, such as "Notes".

    With `lists_rest`, a table is followed by the names of its other parameters (see `_names_of_rest`).
    """
    chunk = passage.chunk
    texts = _block_texts(passage.segments, MAX_QUOTED_CHARS, lists_rest=lists_rest)
    if chunk.kind == "prose" and chunk.section not in ("", chunk.api_name):
        texts[:1] = [f"**{chunk.section}**\n\n{text}" for text in texts[:1]]
    return texts


def _block_texts(
    segments: Sequence[Segment], max_chars: int, *, lists_rest: bool = False
) -> list[str]:
    """Return the texts of the blocks of `segments`, as many as fit into `max_chars` characters.

    A block is a paragraph, a table, a list or code. Its text begins with the paragraph that introduces it,
    such as "Example:". An introduction at the end is included only if there is no other text, or if it is
    neither a label nor a bare announcement. Each item of a numbered list is a separate text. Added markup,
    such as the borders of tables, does not count towards `max_chars`.
    """
    texts: list[str] = []
    introduction = ""
    for (_, kind), parts in groupby(segments, key=lambda s: (s.block, s.kind)):
        group = list(parts)
        if kind == "item":
            blocks = [list_item(f"{s.number}.", s.text) for s in group]
        elif kind == "row":
            blocks = [_table(group) + (_names_of_rest(group) if lists_rest else "")]
        elif kind == "bullet":
            blocks = [_list(group)]
        else:
            blocks = [("\n\n" if kind == "code" else " ").join(s.text for s in group)]
        blocks[0] = f"{introduction}\n\n{blocks[0]}".strip()
        introduction = ""
        if group[-1].is_introduction:
            introduction = blocks.pop()
        texts += blocks
    is_sentence = len(list(split_sentences(introduction))) == 1
    is_bare = is_sentence and segments[-1].is_bare_announcement
    if introduction and (not texts or not (is_bare or len(introduction) <= MAX_LABEL_CHARS)):
        texts.append(introduction)
    markup = sum(map(len, texts)) - sum(len(segment.text) for segment in segments)
    return _fit_texts(texts, max_chars + max(0, markup))


def _list(items: Sequence[Segment]) -> str:
    """Return the bullets `items`, with an ellipsis wherever other items of their list are left out.

    A single item gets no ellipsis, because it is clearly an excerpt.
    """
    if len(items) == 1:
        return items[0].text
    numbers = [*(item.number for item in items), items[0].list_size + 1]
    lines = ["- …"] if numbers[0] > 1 else []
    for item, following in zip(items, numbers[1:], strict=True):
        lines += [item.text, "- …"] if following > item.number + 1 else [item.text]
    return "\n".join(lines)


def _table(rows: Sequence[Segment]) -> str:
    """Return `rows` as a Markdown table, without the columns that are empty in all rows.

    If rows of the original table are left out, a row with an ellipsis is added at the end. A single row
    gets no ellipsis, because it is clearly an excerpt, unless it is the row of a parameter.
    """
    all_columns = zip_longest(*(row.cells for row in rows), fillvalue=("", ""))
    columns = [column for column in all_columns if any(cell for _, cell in column)]
    titles = [max(title for title, _ in column) for column in columns]
    cells = zip(*([cell.replace("|", "\\|") for _, cell in c] for c in columns), strict=True)
    lines = [titles, *cells]
    if len(rows[0].table_names) > len(rows) > (0 if rows[0].is_parameter else 1):
        lines.append(["…"] + [""] * (len(titles) - 1))
    return markdown_table(lines)


def _names_of_rest(rows: Sequence[Segment]) -> str:
    """Return a line with the names of the parameters that are in the table of `rows`, but not in `rows`.

    Parameters inside objects are not listed. The result is empty if there are no others, or if `rows` has
    fewer than `MIN_LISTED_ROWS`, which are probably the parameters that the question names.
    """
    quoted = {row.name for row in rows}
    rest = [f"`{name}`" for name in rows[0].table_names if name not in quoted and "." not in name]
    is_list = rows[0].is_parameter and len(rows) >= MIN_LISTED_ROWS
    return f"\n\n… {', '.join(rest)}" if rest and is_list else ""


def _fit_texts(texts: Sequence[str], max_chars: int) -> list[str]:
    """Return the texts that fit into `max_chars` characters; the first one is cut if it is longer."""
    kept: list[str] = []
    for text in texts:
        if kept and sum(map(len, kept)) + len(text) > max_chars:
            break
        kept.append(cut_text(text, max_chars))
    return kept


def cut_text(text: str, max_chars: int) -> str:
    """Cut `text` to about `max_chars` characters, at the end of a line, word or sentence if possible.

    An ellipsis marks the cut. Code is cut between lines if possible (see `_cut_code`), and a table at the
    end of a row if at least one whole row fits.
    """
    if len(text) <= max_chars:
        return text
    cut = text[:max_chars]
    if item_code := _close_code_in_item(cut):
        return item_code
    *_, (is_code, code) = split_code(cut)
    if is_code:
        before = cut[: len(cut) - len(code)]
        return before + _cut_code(code) if "\n" in code else f"{before}…"
    if _ends_in_table(cut):
        rows, _, _ = cut.rpartition("\n")
        has_row = rows.rpartition("\n\n")[2].count("\n|") > 1  # besides header and delimiter
        return f"{rows}\n| … |" if has_row else f"{_without_part_of_word(cut).rstrip(' |')} … |"
    kept = _without_part_of_word(cut)
    return f"{kept}\n\n…" if kept.endswith(("```", "~~~")) else f"{kept} …"


def _close_code_in_item(cut: str) -> str:
    """Return `cut` with an ellipsis and a closing fence if it ends in code that begins a list item.

    Such code begins on the line of the item's marker: "1. ```sh". For any other text, the result is empty.
    """
    *_, opening = [None, *_ITEM_FENCE.finditer(cut)]
    if opening is None or "\n" not in cut[opening.end() :]:
        return ""
    fence, indent = opening["fence"], " " * len(opening["marker"])
    if re.search(rf"\n[ \t]*{fence}[ \t]*(?:\n|\Z)", cut[opening.end() :]):
        return ""
    complete_lines = cut.rpartition("\n")[0]
    return f"{complete_lines}\n{indent}…\n{indent}{fence}"


def _cut_code(code: str) -> str:
    """Return the start of a code block, at least one line of code, with an ellipsis and a closing fence.

    The last line is left out, because it may be incomplete. Up to a quarter of the lines are left out, so
    that the cut is before a blank line or the line that is indented least, where a statement or a block
    probably ends. If there is only one line of code, this line is cut.
    """
    fence = _FENCE.match(code)[0]  # type: ignore[index]
    opening, *lines = code.split("\n")
    if len(lines) == 1:
        return f"{opening}\n{_without_part_of_word(lines[0])} …\n{fence}"
    last = len(lines) - 1
    end = min(range(last, max(0, last * 3 // 4 - 1), -1), key=lambda i: _indentation(lines[i]))
    shown = _BLANK_END.sub("", "\n".join([opening, *lines[:end]]))
    return f"{shown}\n{fence.rstrip('`~')}…\n{fence}"


def _indentation(line: str) -> int:
    """Return the number of characters before the text of a line of code; -1 for a blank line."""
    text = line.lstrip(" \t>")
    return len(line) - len(text) if text else -1


def _without_part_of_word(text: str) -> str:
    """Return `text` up to the last end of a line, word or sentence in its second half, if there is one."""
    end = max(text.rfind(mark) for mark in ("\n", " ", "。"))
    return text[: end if end > len(text) // 2 else len(text)].rstrip()


def cite(text: str, number: int) -> str:
    """Return `text` with a citation at its end, or below it if it ends with code or a table."""
    needs_own_line = text.endswith(("```", "~~~")) or _ends_in_table(text)
    return f"{text}\n\n[{number}]" if needs_own_line else f"{text} [{number}]"


def _ends_in_table(text: str) -> bool:
    return text.rpartition("\n")[2].startswith("|")
