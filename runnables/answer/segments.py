"""Splits chunks into segments to quote: paragraphs, sentences, code, table rows and list items."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ingestion.sources.api_pages.required import is_required_text
from ingestion.text.html_tags import HTML_TAGS
from ingestion.text.markdown_blocks import (
    MarkdownBlock,
    parse_blocks,
    plain_text,
    row_cells,
    split_code,
    split_list_items,
)
from ingestion.text.sentences import split_sentences
from prompts.chat_prompts import load_quote_texts
from prompts.user_text import user_text
from runnables.question.extract_details import command_flags
from runnables.retrieval.table_rows import named_codes, row_name
from schemas.choices import Language
from schemas.document import Chunk, SectionKind

MAX_SEGMENT_CHARS = 600
"""Maximum length of a paragraph in characters; a longer one is split into sentences."""

MAX_CODE_CHARS = 900
"""Maximum length of code in characters; longer code is split into parts (see `_code_parts`)."""

PARAMETER_KINDS: tuple[SectionKind, ...] = (
    "request_parameters",
    "response_parameters",
    "public_parameters",
    "request_headers",
)

_LINK = re.compile(r"(?P<image>!?)\[(?P<label>[^\]]*)\]\((?P<address>[^)\s]*)(?:\s[^)]*)?\)")
_TAG = re.compile(
    r"(?P<before>(?<![A-Za-z0-9_])[A-Za-z0-9_]{1,40})?(?P<tag></?[A-Za-z][^>`]*>)|\{#[^}]*\}"
)
"""An HTML tag with the word directly before it, or the id of a heading, such as `{#setup}`."""
_PLACEHOLDER = re.compile(r"<([A-Za-z][\w.-]*(?: [\w.-]+){0,3})>")

_FIRST_NUMBER = re.compile(r"\s*(\d{1,9})")
_CODE = re.compile(r"(``[^\n]{1,200}?``|`[^`\n]*`)")
_ITEM_NAME = re.compile(
    r"(?:\*\*)?(?:`(?P<span>[^`\s]{1,60})`|(?P<code>-?\d{3,9}))(?:\*\*)?\s*(?:[:：（(]|[-–—]{1,2}\s)"
)
_TERM = re.compile(r"\*\*(?P<term>[^*\n]{1,40})\*\*\s*[:：]|\*\*(?P<label>[^*\n]{1,40})[:：]\*\*")
_PART_START = re.compile(r"\n(?:[ \t]*\n)+(?=[^\s)\]}])")
"""The blank lines in code before a line that is not indented, such as a setting or a function."""
_LABEL = re.compile(r"\*\*[^*\n]{1,40}\*\*")
_QUOTES = "\"'“”‘’"


@dataclass(frozen=True)
class Segment:
    """A part of a chunk that is quoted as a whole."""

    block: int
    """Index of the block in the chunk. All items of a list, or all rows of a table, share one index."""
    kind: str
    """`paragraph`, `bullet`, `item` (of a numbered list), `row` or `code`."""
    text: str
    """Markdown."""
    name: str = ""
    """The name of a table row (see `row_name`) or of a bullet (see `_name_of_item`); may be empty."""
    is_required: bool = False
    """Whether the segment is the row of a parameter that every call needs."""
    cells: tuple[tuple[str, str], ...] = ()
    """The cells of a table row, each as a pair of its column's title and its Markdown."""
    number: int = 0
    """Number of an item in a numbered list, or position of a bullet, from 1; 0 for other segments."""
    list_size: int = 0
    """Number of items of the segment's list; 0 for other segments."""
    is_parameter: bool = False
    table_names: tuple[str, ...] = ()
    """Names of all rows of the segment's table; empty for rows of error codes and for other segments.

    If fewer rows are quoted, the quote shows that rows are left out. This is not needed for error codes,
    because each is complete without the other rows.
    """

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The names that the segment may define, in lower case, each with its column's title.

        The first is `name` without its quotation marks. Further ones are `name` without `[]`, the last part
        of a nested parameter (`id` for `items[].id`), the flags in `name`, such as `-f`, and the codes in a
        table row (see `named_codes`).
        """
        titles = [title for title, _ in self.cells] or [""]
        codes = named_codes(titles, [plain_text(cell) for _, cell in self.cells])
        name = self.name.strip(_QUOTES).lower()
        last = name.removesuffix("[]").rpartition(".")[2] if self.is_parameter else name
        flags = dict.fromkeys(command_flags(name), titles[0])
        forms = dict.fromkeys([name, name.replace("[]", ""), last], titles[0])
        names = {**forms, **flags, **codes}
        return {name: title for name, title in names.items() if name}

    @property
    def is_alternative(self) -> bool:
        """Whether the segment is the row of an alternative schema, such as `owner (User)`."""
        return self.is_parameter and self.name.endswith(")")

    @property
    def depth(self) -> int:
        """Number of parents of a parameter; 0 for other segments."""
        return self.name.count(".") if self.is_parameter else 0

    @cached_property
    def is_introduction(self) -> bool:
        """Whether the segment announces the next one.

        An introduction is a paragraph that ends in a colon, or a label such as `**Note**`.
        """
        return self.is_label or self._ends_in_colon

    @property
    def is_bare_announcement(self) -> bool:
        """Whether the segment says nothing without what it announces.

        It ends in a colon, and contains neither code nor a number, such as "The fields are as follows:".
        """
        return self._ends_in_colon and not re.search(r"[`\d]", self.text)

    @property
    def _ends_in_colon(self) -> bool:
        return self.kind == "paragraph" and self.text.rstrip("* ").endswith((":", "："))

    @property
    def is_label(self) -> bool:
        """Whether the segment is a label such as `**Note**`."""
        return self.kind == "paragraph" and _LABEL.fullmatch(self.text) is not None


def split_chunk(chunk: Chunk, language: Language) -> Sequence[Segment]:
    """Return the segments of `chunk` in document order. Labels such as "required" are in `language`."""
    return _split_section(chunk.body, chunk.kind, chunk.language, language)


@lru_cache(maxsize=1_000)
def _split_section(
    body: str, kind: SectionKind, language: Language, label_language: Language
) -> tuple[Segment, ...]:
    """Return the segments of a section. Cached, because many questions retrieve the same chunks."""
    templates = load_quote_texts(label_language)
    context = _RowContext(kind, language, label_language, templates)
    return tuple(
        segment
        for index, block in enumerate(parse_blocks(body))
        for segment in _split_block(context, index, block)
    )


class _RowContext(NamedTuple):
    """The section kind, languages and templates that determine the text of a table row."""

    kind: SectionKind
    language: Language
    """The language of the chunk."""
    label_language: Language
    """The language of added labels, which is that of the answer."""
    templates: Any


def _split_block(context: _RowContext, index: int, block: MarkdownBlock) -> Iterator[Segment]:
    def segment(kind: str, text: str, **fields: Any) -> Segment:
        return Segment(index, kind, text, **fields)

    if block.kind == "table":
        header, rows = _table_cells(block.text)
        rows = _with_locations(context, header, [row for row in rows if any(row)])
        required = _required_names(context, header, rows)
        names = tuple(row_name(header, list(map(plain_text, row))) for row in rows)
        for row, name in zip(rows, names, strict=True):
            cells = [quotable_markdown(cell) for cell in row]
            text, shown = _quoted_row(context, header, cells)
            yield segment(
                "row",
                text,
                name=name,
                is_required=name in required,
                cells=shown,
                is_parameter=context.kind in PARAMETER_KINDS,
                table_names=() if context.kind == "error_codes" else names,
            )
    elif block.kind == "fence" and block.text.lstrip().startswith(("```", "~~~")):
        yield from (segment("code", part) for part in _code_parts(textwrap.dedent(block.text)))
    elif block.kind == "list":
        yield from _list_items(index, block.text)
    else:
        text = quotable_markdown(textwrap.dedent(block.title or block.text))
        if any(map(str.isalnum, text)):
            sentences = split_sentences(text) if len(text) > MAX_SEGMENT_CHARS else [text]
            yield from (segment("paragraph", sentence.strip()) for sentence in sentences)


def _list_items(index: int, text: str) -> Iterator[Segment]:
    """Yield the items of the list `text`, whose block has this index in its chunk."""
    items = list(filter(None, map(quotable_markdown, split_list_items(text))))
    if first := _FIRST_NUMBER.match(text):
        for number, item in enumerate(items, int(first[1])):
            yield Segment(index, "item", item, number=number, list_size=len(items))
        return
    for number, item in enumerate(items, 1):
        bullet, name = list_item("-", item), _name_of_item(item)
        yield Segment(index, "bullet", bullet, name=name, number=number, list_size=len(items))


def _code_parts(code: str) -> list[str]:
    """Return a code block or, if it is long, its parts, such as the settings of a configuration file.

    A sample of all settings contains many words, but only the lines about one setting answer a question.
    """
    if len(code) <= MAX_CODE_CHARS:
        return [code]
    opening, *lines, closing = code.split("\n")
    parts = _PART_START.split("\n".join(lines).strip("\n"))
    return [f"{opening}\n{part}\n{closing}" for part in parts]


def _name_of_item(item: str) -> str:
    """Return the name that an item such as "`433`: resource expired" describes; empty if there is none.

    The name is at the start of the item. It is a code span or a number before a colon, an opening bracket
    or a dash, or a bold term before a colon.
    """
    if match := _ITEM_NAME.match(item):
        return match["span"] or match["code"]
    match = _TERM.match(item)
    return plain_text(match["term"] or match["label"]).strip() if match else ""


def _table_cells(table: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a Markdown table.

    The lines are split by a regular expression, because a Markdown parser would take far longer.
    """
    header, _, *rows = (
        [cell.strip().replace("\\|", "|") for cell in row_cells(line)] for line in table.split("\n")
    )
    return header, rows


def _quoted_row(
    context: _RowContext, header: list[str], cells: list[str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a table row as the text of a list item, and as pairs of column titles and quoted cells.

    The column titles of parameters and error codes are in the language of the answer.
    """
    templates, labels = context.templates, user_text(context.label_language).api_document
    if context.kind == "error_codes" and len(cells) >= 4:
        code, *rest = cells
        shown = zip(labels.error_columns, (f"`{code}`", *rest), strict=False)
        return str(templates.error(*cells[:4])), tuple(shown)
    if parameter := _parameter_cells(context, header, cells):
        name, type_, required, description, example = parameter
        name = name.replace("`", "")  # around a placeholder; here, the whole name is code
        original = user_text(context.language).api_document
        is_required = {original.yes: True, original.no: False}.get(required)
        requirement = {True: labels.yes, False: labels.no, None: required}[is_required]
        whole = f"{description} {templates.sample(example)}".strip() if example else description
        stated = required if is_required is None else is_required
        text = str(templates.parameter(name, type_, stated, description, example))
        values = (f"`{name}`", type_, requirement, whole)
        return text, tuple(zip(labels.parameter_columns, values, strict=False))
    pairs = tuple(zip(header, cells, strict=False))
    others = [(title, cell) for title, cell in pairs[1:] if cell]
    texts = [templates.pair(title, cell) if len(cells) > 2 else cell for title, cell in others]
    return str(templates.row(cells[0], texts)), pairs


def _with_locations(
    context: _RowContext, header: list[str], rows: list[list[str]]
) -> list[list[str]]:
    """Return `rows`, with the location added to the description of each parameter with an ambiguous name.

    For example, a request may have a `name` in its path and another `name` in its body.
    """
    labels = user_text(context.language).api_document
    about, location = labels.parameter_columns[3], labels.location_column
    if context.kind not in PARAMETER_KINDS or not {about, location} <= set(header):
        return rows
    counts = Counter(row[0] for row in rows)
    column, place = header.index(about), header.index(location)
    return [
        [*row[:column], f"{row[column]} ({location}: {row[place]})".strip(), *row[column + 1 :]]
        if counts[row[0]] > 1 and len(row) == len(header) and row[place]
        else row
        for row in rows
    ]


def _parameter_cells(
    context: _RowContext, header: list[str], cells: list[str]
) -> tuple[str, str, str, str, str] | None:
    """Return the name, type, requirement, description and example in a row of parameters.

    A text is empty if the table has no such column. The result is None if the table does not list
    parameters.
    """
    titles = user_text(context.language).api_document.parameter_columns
    if context.kind not in PARAMETER_KINDS or tuple(header[:2]) != titles[:2]:
        return None
    named = dict(zip(header, cells, strict=False))
    name, type_, required, description, example = (named.get(title, "") for title in titles)
    return name, type_, required, description, example


def _required_names(context: _RowContext, header: list[str], rows: list[list[str]]) -> set[str]:
    """Return the names of the parameters that every call needs.

    A required parameter inside an optional object is not one of them.
    """
    yes = user_text(context.language).api_document.yes
    found = filter(None, (_parameter_cells(context, header, row) for row in rows))
    marked = {
        plain_text(n)
        for n, _, required, *_ in found
        if required == yes or is_required_text(required)
    }

    def is_needed(name: str) -> bool:
        parent = name.rpartition(".")[0].removesuffix("[]")
        return name in marked and (not parent or is_needed(parent))

    return {name for name in marked if is_needed(name)}


def quotable_markdown(text: str) -> str:
    """Return `text` without images, HTML tags, blank lines, and links that are not `http(s)://` URLs.

    Code, emphasis and the labels of removed links are kept. A placeholder such as `<token>` becomes a code
    span, because a browser would hide it like a tag.
    """
    parts = (
        part
        for is_fence, text_or_code in split_code(text)
        for part in (
            [text_or_code] if is_fence else map(_without_markup, _CODE.split(text_or_code))
        )
    )
    lines = "".join(parts).splitlines()
    # Two spaces at the end of a line are a line break.
    lines = [line.rstrip() + "  " * line.endswith("  ") for line in lines if line.strip(" >")]
    return "\n".join(lines).strip()


def _without_markup(text: str) -> str:
    """Return a code span unchanged, and other text without images, tags and relative links."""
    if text.startswith("`"):
        return text
    quoted = _TAG.sub(_quoted_tag, _LINK.sub(_quoted_link, text))
    return quoted.replace(">``<", "><")  # adjacent placeholders become one code span


def _quoted_tag(match: re.Match[str]) -> str:
    """Return the word before a tag or, if the tag is a placeholder, a code span with the word and the tag.

    A placeholder such as `<token>`, or `<string>` in `array<string>`, is not HTML, has no attributes and is
    not closed. In the address of a link, it is unchanged.
    """
    before, tag = match["before"] or "", match["tag"] or ""
    name = _PLACEHOLDER.fullmatch(tag)
    if name is None:
        return before
    if _is_in_link(match):
        return match[0]
    is_html = name[1].split()[0].lower() in HTML_TAGS or f"</{name[1]}>" in match.string
    return before if is_html else f"`{match[0]}`"


def _is_in_link(match: re.Match[str]) -> bool:
    """Return whether a match is in the address of a Markdown link."""
    start = match.string.rfind("](", 0, match.start())
    return start >= 0 and ")" not in match.string[start : match.start()]


def _quoted_link(link: re.Match[str]) -> str:
    if link["image"]:
        return ""
    return link[0] if link["address"].startswith(("https://", "http://")) else link["label"]


def list_item(marker: str, text: str) -> str:
    """Return `text` as an item of a Markdown list, with its further lines indented."""
    indent = " " * (len(marker) + 1)
    return f"{marker} {text}".replace("\n", f"\n{indent}")
