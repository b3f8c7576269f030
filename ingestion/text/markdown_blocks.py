"""Parses Markdown into blocks, tables and list items, and writes tables, fences and heading anchors.

The anchors are those that documentation generators derive from the text of a heading.
"""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["heading", "paragraph", "list", "table", "fence", "other"]
"""`fence` is fenced or indented code. `other` includes quotations, HTML and link definitions."""

MAX_HEADING_CHARS = 200
"""Maximum length of a heading in characters.

A longer one is usually a paragraph that Markdown reads as a heading because of a line of dashes below it.
"""

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "fence",
    "code_block": "fence",
}

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_HIDDEN = 0xE000
"""Start of the private-use characters that hide escaped characters and code while markup is removed."""
_BACKTICKS = re.compile("`+")
_CODE_TEXT = re.compile(r"(?<!`)(`++)[^`]++\1")
_MARKUP = re.compile(r"[*_<{\[]")
"""Characters that are markup outside code, but text in code."""
_HIDDEN_CHARACTER = re.compile("[\ue021-\ue07e]")
_FENCE_LINE = re.compile(r"^[ \t>]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_OUTER_BORDER = re.compile(r"^\||(?<!\\)\|$")
"""The borders at the start and the end of a row of a table."""
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_ITEM_START = re.compile(r"\n([ \t]*)[-*+•][ \t]+(?=\S)")
_CODE_SPAN = (
    r"(?P<code>(?P<ticks>`++)"
    r"(?:(?:[^`\n]++|\n(?![ \t]*\n)|(?!(?P=ticks)(?!`))`++)*+(?P=ticks))?)"
)
"""Either a code span, which contains no blank line, or backticks that do not open a code span."""

_SPAN = re.compile(_CODE_SPAN)


@dataclass(frozen=True)
class MarkdownBlock:
    """A top-level block of Markdown."""

    kind: BlockKind
    text: str
    level: int = 0
    """1 to 6 for a heading, 7 for a question that becomes a heading (see `QUESTION_LEVEL`), else 0."""
    title: str = ""
    """Text of a heading without markup and with decoded entities, else empty."""
    anchor: str = ""
    """The fragment of a heading in the page's URL; empty if it is unknown."""


@lru_cache
def _parser(has_tables: bool) -> MarkdownIt:
    """Return a parser of blocks; inline markup is not parsed.

    A parser without tables is faster, because it does not look for a table at each line.
    """
    parser = MarkdownIt("commonmark").disable(["inline", "text_join"])
    return parser.enable("table") if has_tables else parser


def _parse(markdown: str) -> list[Token]:
    return _parser("|" in markdown).parse(markdown)


def parse_blocks(markdown: str) -> list[MarkdownBlock]:
    """Return the top-level blocks of `markdown` in order. Only blank lines are left out."""
    lines = _lines(markdown)
    tokens = _parse(markdown)
    blocks: list[MarkdownBlock] = []
    parsed_lines = 0
    for i, token in enumerate(tokens):
        if token.level == 0 and token.map and token.nesting >= 0:
            blocks += _unparsed_block(lines[parsed_lines : token.map[0]])
            blocks.append(_block(token, tokens[i + 1] if i + 1 < len(tokens) else None, lines))
            parsed_lines = token.map[1]
    return blocks + _unparsed_block(lines[parsed_lines:])


def _unparsed_block(lines: list[str]) -> list[MarkdownBlock]:
    """Return lines without a token, such as link definitions, as a block; empty if all are blank."""
    text = "\n".join(lines).strip("\n")
    return [MarkdownBlock("other", text)] if text.strip() else []


def _lines(markdown: str) -> list[str]:
    """Split `markdown` into lines as the parser does. `splitlines` also splits at form feed and U+2028."""
    return re.sub(r"\r\n?", "\n", markdown).split("\n")


def _block(token: Token, following: Token | None, lines: list[str]) -> MarkdownBlock:
    assert token.map is not None
    kind = _KINDS.get(token.type, "other")
    text = "\n".join(lines[slice(*token.map)]).strip("\n")
    if kind == "table":
        return MarkdownBlock(kind, _with_borders(text))
    if kind != "heading" or following is None:
        return MarkdownBlock(kind, text)
    if len(text) > MAX_HEADING_CHARS:
        return MarkdownBlock("paragraph", text)
    title = " ".join(unescape(plain_text(following.content)).split())
    return MarkdownBlock(kind, text, int(token.tag[1]), title)


def _with_borders(table: str) -> str:
    """Add the optional outer `|` to a table whose first line does not begin with one."""
    if table.lstrip().startswith("|"):
        return table
    lines = (_OUTER_BORDER.sub("", line.strip()) for line in table.split("\n"))
    return "\n".join(f"| {line.strip()} |" for line in lines)


def parse_table(markdown: str) -> list[list[str]]:
    """Return the rows of the first table in `markdown`, header first; empty if there is no table."""
    return [list(row) for row in _parse_table(markdown)] if "|" in markdown else []


@lru_cache(maxsize=512)
def _parse_table(markdown: str) -> tuple[tuple[str, ...], ...]:
    # Cached because answering a question parses the same tables several times.
    rows: list[list[str]] = []
    for token in _parse(markdown):
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(token.content.strip())
    return tuple(map(tuple, rows))


def parse_list_items(markdown: str) -> list[str]:
    """Return each top-level list item in `markdown` as a line of Markdown without its bullet or number."""
    return [" ".join(map(str.strip, item.split("\n"))) for item in split_list_items(markdown)]


def split_list_items(markdown: str) -> list[str]:
    """Return each top-level list item in `markdown` as Markdown without its bullet or number."""
    items: list[str] = []
    lines = _lines(markdown)
    for token in _parse(markdown):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            first, *rest = lines[slice(*token.map)]
            first = re.sub(r"^([-*+]|\d+[.)])\s+", "", first.lstrip())
            items.append("\n".join([first, *_dedent(rest)]).strip())
    return items


def _dedent(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).split("\n") if lines else []


def row_cells(line: str) -> list[str]:
    """Return the Markdown of each cell in a line of a table."""
    return _CELL_BORDER.split(_OUTER_BORDER.sub("", line.strip()))


def cell_text(markdown: str) -> str:
    """Return `markdown` as one line for a table cell; a line break before a list item becomes `<br>`."""
    if _ITEM_START.search(markdown):
        markdown = _ITEM_START.sub(lambda item: f"<br>{'&nbsp;' * len(item[1])}- ", markdown)
    return " ".join(markdown.split())


def escape_borders(cell: str) -> str:
    """Return the text of a table cell with each `|` escaped."""
    return _CELL_BORDER.sub(r"\\|", cell)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first row as its header; empty without rows. Borders are not escaped."""
    if not rows:
        return ""
    header, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([header, "|" + " --- |" * len(rows[0]), *others])


def code_fence(code: str, language: str = "") -> str:
    """Return `code` as a fenced block. Its fence is longer than each run of backticks in `code`."""
    longest = max(map(len, _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def nesting_indent(depth: int) -> str:
    """Return the text that indents the first cell of a table row by `depth` levels; empty for depth 0."""
    return "&nbsp;" * 2 * depth + "└ " * bool(depth)


def plain_text(inline: str) -> str:
    """Return the text of inline Markdown without its markup, such as emphasis, tags and link targets."""
    text = _ESCAPE.sub(lambda match: _hidden(match[1]), inline)
    if "`" in text:
        text = _CODE_TEXT.sub(
            lambda code: _MARKUP.sub(lambda mark: _hidden(mark[0]), code[0]), text
        )
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    # Tags and anchors are removed; `List<Item>` stays.
    text = re.sub(r"<(?![A-Z]\w*>)[^>]*>|(?<!\w)<[A-Z]\w*>|\{#[^}]*\}", "", text)
    text = re.sub("[*`]", "", text)
    text = (_without_underscore_emphasis(text) if "_" in text else text).strip()
    return _HIDDEN_CHARACTER.sub(lambda match: chr(ord(match[0]) - _HIDDEN), text)


def _without_underscore_emphasis(text: str) -> str:
    """Return `text` without the pairs of underscores that are emphasis by the rules of CommonMark.

    Other underscores stay: `snake_case`, `_id`, `recall(_:)`.
    """
    parts = re.split("(_+)", text)
    open_runs: list[int] = []
    for i in range(1, len(parts), 2):
        can_open, can_close = _emphasis_sides(parts[i - 1][-1:], parts[i + 1][:1])
        if can_close and open_runs and parts[open_runs[-1]] == parts[i]:
            parts[open_runs.pop()] = parts[i] = ""
        elif can_open:
            open_runs.append(i)
    return "".join(parts)


def _emphasis_sides(before: str, after: str) -> tuple[bool, bool]:
    """Return whether underscores between two characters can open emphasis, and whether they can end it."""
    is_spaced_before, is_spaced_after = not before.strip(), not after.strip()
    is_punctuation_before = not is_spaced_before and not before.isalnum()
    is_punctuation_after = not is_spaced_after and not after.isalnum()
    is_left = not is_spaced_after and (
        not is_punctuation_after or is_spaced_before or is_punctuation_before
    )
    is_right = not is_spaced_before and (
        not is_punctuation_before or is_spaced_after or is_punctuation_after
    )
    return is_left and (not is_right or is_punctuation_before), is_right and (
        not is_left or is_punctuation_after
    )


def _hidden(character: str) -> str:
    return chr(_HIDDEN + ord(character))


def split_code(text: str) -> Iterator[tuple[bool, str]]:
    """Yield pairs of a flag and a part of `text`. The flag says whether the part is a fenced block."""
    done, fence = 0, ""
    for match in _FENCE_LINE.finditer(text):
        if not fence:
            yield False, text[done : match.start()]
            done, fence = match.start(), match[1]
        elif match[1].startswith(fence) and not match[2].strip(f"{fence[0]} \t>"):
            yield True, text[done : match.end()]
            done, fence = match.end(), ""
    yield bool(fence), text[done:]


def outside_code(pattern: str) -> re.Pattern[str]:
    """Return a case-insensitive pattern that matches code spans and, outside them, `pattern`.

    If a code span and a match of `pattern` overlap, only the one that starts first is matched, as in
    Markdown. All capturing groups of `pattern` must be named.
    """
    return re.compile(f"{_CODE_SPAN}|{pattern}", re.DOTALL | re.IGNORECASE)


def replace_outside_code(
    pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str
) -> str:
    """Replace the matches of a pattern from `outside_code` in `text`; code spans stay."""
    return pattern.sub(lambda match: match[0] if match["code"] else replace(match), text)


def change_outside_code(change: Callable[[str], str], text: str) -> str:
    """Return `text` with `change` applied to each part outside code spans."""
    if "`" not in text:
        return change(text)
    parts: list[str] = []
    done = 0
    for match in _SPAN.finditer(text):
        parts += [change(text[done : match.start()]), match[0]]
        done = match.end()
    return "".join([*parts, change(text[done:])])


# --- anchors --------------------------------------------------------------------------------------

AnchorRule = Literal["github", "docusaurus", "vitepress", "mkdocs"]

_CUSTOM_ID = re.compile(r"\{\s*#([\w:.-]+)[^}]*\}\s*#*\s*$")
_ANCHOR = re.compile(r"#[^/?=!&#]*$")


def add_anchors(blocks: Iterable[MarkdownBlock], rule: AnchorRule) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a page, each heading with the anchor that `rule` derives from its title.

    If a heading has an id, such as `{#setup}`, the id is its anchor. GitHub does not support such ids.
    Anchors that are derived from titles are unique in the page.
    """
    used: set[str] = set()
    for block in blocks:
        if block.kind == "heading":
            custom = _CUSTOM_ID.search(block.text) if rule != "github" else None
            anchor = custom[1] if custom else _RULES[rule](block.title, used)
            used.add(anchor)
            yield replace(block, anchor=anchor)
        else:
            yield block


def strip_anchor(url: str) -> str:
    """Return `url` without the anchor of a section.

    A fragment that is a route (`#/users`) or has a value (`#id=1`) stays.
    """
    return _ANCHOR.sub("", url)


def _github(title: str, used: Set[str]) -> str:
    """Return the anchor by the rule of GitHub, as github-slugger implements it for Docusaurus."""
    kept = (c for c in title.lower() if c in "-_ " or unicodedata.category(c)[0] in "LNM")
    return _numbered("".join(kept).replace(" ", "-"), used)


def _vitepress(title: str, used: Set[str]) -> str:
    """Return the anchor by the rule of VitePress, which @mdit-vue/shared implements."""
    text = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", title))
    text = re.sub(r"[\u0000-\u001f]", "", text)
    text = re.sub(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+", "-", text).strip("-")
    return _numbered(re.sub(r"^(\d)", r"_\1", text).lower(), used)


def _mkdocs(title: str, used: Set[str]) -> str:
    """Return the anchor by the rule of Python-Markdown's extension `toc`.

    Characters without an ASCII form, such as Chinese characters, are removed. A repeated slug gets a
    number: `errors_1`.
    """
    text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    text = re.sub(r"[^\w\s-]", "", text).strip().lower()
    slug = re.sub(r"[-\s]+", "-", text)
    while not slug or slug in used:
        numbered = re.fullmatch(r"(.*)_(\d+)", slug)
        slug = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{slug}_1"
    return slug


def _numbered(slug: str, used: Set[str]) -> str:
    """Return `slug`, or `slug` with the first number that makes it unique and not empty."""
    anchor, number = slug, 0
    while not anchor or anchor in used:
        number += 1
        anchor = f"{slug}-{number}"
    return anchor


_RULES: dict[AnchorRule, Callable[[str, Set[str]], str]] = {
    "github": _github,
    "docusaurus": _github,
    "vitepress": _vitepress,
    "mkdocs": _mkdocs,
}
