"""Turns the directives, roles, targets and comments of MyST into Markdown.

MyST is the Markdown of Sphinx and Jupyter Book. A directive is a fence with a name in braces, such as
```` ```{note} ````. Other readers of Markdown take the prose in it for code.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ingestion.text.markdown_blocks import outside_code, replace_outside_code, split_code

_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}|:{3,})"
    r"(?:\{(?P<name>[a-z][\w:+-]*)\}(?P<argument>.*)|(?P<info>.*))$",
    re.IGNORECASE | re.MULTILINE,
)
"""The first or last line of a code block, container or directive: ```` ```{admonition} Title ````."""
_DIRECTIVE_STARTS = ("```{", "~~~{", ":::{")
_OPTION = re.compile(r"[ \t]*:[\w-]+:(?:[ \t].*)?")

_NOTE = re.compile(
    r"note|tip|hint|important|warning|caution|attention|danger|error|seealso|todo"
    r"|version(?:added|changed|removed)|deprecated",
    re.IGNORECASE,
)
"""Directives with prose, whose argument is the beginning of the prose."""
_TITLED = re.compile(
    r"admonition|dropdown|details|topic|sidebar|rubric|tab|tab-item|group-tab|card|grid-item-card",
    re.IGNORECASE,
)
"""Directives with prose, whose argument is a title."""
_GROUP = re.compile(
    r"tabs|tab-set|grid|grid-item|card-(?:carousel|body)|margin|aside|container|div|epigraph|glossary"
    r"|figure",
    re.IGNORECASE,
)
"""Directives with prose, whose argument is not text. The prose of a figure is its caption."""
_OMITTED = re.compile(
    r"toctree|contents|tableofcontents|literalinclude|include|image|eval-rst|raw|index",
    re.IGNORECASE,
)
"""Directives without prose: links, files, pictures, and markup for other parsers."""
_CODE = re.compile(r"code|code-block|code-cell|sourcecode|parsed-literal", re.IGNORECASE)

_ROLE = outside_code(
    r"(?<![\w/}])\{(?P<role>[a-z]+(?::[a-z]+)*)\}"
    r"`(?P<text>[^`<\n]*[^`<\s])(?P<target>\s*<[^`>\n]*>)?`(?!`)"
)
"""A role: `` {ref}`Paging <paging>` ``."""
_REFERENCE_ROLE = re.compile(r"(?:std:)?(?:ref|numref|doc|any|term|download)", re.IGNORECASE)
"""Roles whose text is prose if a target follows it."""
_TARGET = re.compile(r"^[ \t]*\([^()\s][^()\n]*\)=[ \t]*$\n?", re.MULTILINE)
"""A line with the name of the heading below it: `(paging)=`."""
_HEADING = re.compile(
    r"^(?P<targets>(?:[ \t]*\([^()\s][^()\n]{0,200}\)=[ \t]*\n\s{0,9}){0,5})#{1,6}[ \t]+(?P<title>[^\n]+)$",
    re.MULTILINE,
)
"""A heading with the targets above it."""
_TARGET_NAME = re.compile(r"\((?P<name>[^()\n]+)\)=")
_LINK_WITHOUT_TEXT = outside_code(
    r"(?<![!\]])\[\](?:\(#(?P<anchor>[^()\s]+)\)|\[(?P<label>[^\[\]\n]+)\])"
    r"(?![ \t]*\n\s{0,3}#)"
)
"""A link without text, which Sphinx shows as the title of the target: `[](#paging)` or `[][paging]`.

A link directly above a heading does not match, because it is only an anchor.
"""
_COMMENT = re.compile(r"(?<=\n\n)(?:%[ \t][^\n]*(?:\n|\Z))+")
"""A paragraph whose lines begin with `%`."""


@dataclass
class _Block:
    """A directive or code block that is open."""

    kind: Literal["prose", "code", "omitted"]
    fence: str
    """The backticks, tildes or colons that open the block."""
    start: tuple[str, ...]
    """The lines to write in place of its first line."""
    end: tuple[str, ...]
    """The lines to write in place of its last line."""
    has_options: bool
    """Whether the next line may be an option."""


def replace_myst(text: str) -> str:
    """Return a page with Markdown in place of its MyST directives and roles.

    A directive with prose becomes a container with the same name (`:::note`), a title in bold, or its prose
    only. A directive with code becomes a code block. Targets, options, and directives without prose such as
    `toctree` are removed. If the page has directives, comments are removed as well. An unknown directive
    keeps only its prose if its fence is of colons. With any other fence, it stays unchanged, like code.
    """
    has_directives = any(start in text for start in _DIRECTIVE_STARTS)
    if has_directives:
        text = "\n".join(_replace_directives(text.split("\n")))
    if not (has_directives or ")=" in text or "}`" in text or "[](#" in text or "[][" in text):
        return text
    parts = list(split_code(text))
    titles = _titles_of_targets(part for is_code, part in parts if not is_code)
    return "".join(
        part if is_code else _convert(part, has_directives, titles) for is_code, part in parts
    )


def _titles_of_targets(parts: Iterable[str]) -> dict[str, str]:
    """Return the title of each heading in `parts`, by the key of the title and of each of its targets."""
    titles: dict[str, str] = {}
    for heading in (match for part in parts for match in _HEADING.finditer(part)):
        title = heading["title"].strip("# \t")
        for name in (*_TARGET_NAME.findall(heading["targets"]), title):
            titles.setdefault(_target_key(name), title)
    return titles


def _target_key(name: str) -> str:
    """Return the name of a target or the title of a heading as a key: `api-keys` for `API keys`."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")


def _convert(text: str, may_have_comments: bool, titles: Mapping[str, str]) -> str:
    """Return `text`, which contains no code block, with roles replaced, and targets and comments removed.

    A reference without text gets the title of the heading that it refers to, if `titles` contains it.
    """

    def link(match: re.Match[str]) -> str:
        title = titles.get(_target_key(match["anchor"] or match["label"]))
        if title is None:
            return match[0]
        return f"[{title}](#{match['anchor']})" if match["anchor"] else title

    text = _TARGET.sub("", text)
    if may_have_comments:
        text = _COMMENT.sub("", text)
    text = replace_outside_code(_LINK_WITHOUT_TEXT, link, text)
    return replace_outside_code(_ROLE, partial(_role_text, titles), text)


def _replace_directives(lines: Iterable[str]) -> Iterator[str]:
    blocks: list[_Block] = []
    for line in lines:
        block = blocks[-1] if blocks else None
        if block and block.has_options and _OPTION.fullmatch(line):
            continue
        if block:
            block.has_options = False
        fence = _FENCE.match(line)
        if block and fence and _is_end(fence, block):
            blocks.pop()
            yield from block.end
        elif block and block.kind != "prose":
            if block.kind == "code":
                yield line
        elif fence and (opened := _open_block(fence)):
            blocks.append(opened)
            yield from opened.start
        else:
            yield line


def _is_end(fence: re.Match[str], block: _Block) -> bool:
    return (
        fence["fence"].startswith(block.fence)
        and fence["info"] is not None
        and not fence["info"].strip()
    )


def _open_block(fence: re.Match[str]) -> _Block | None:
    """Return the directive or code block that a line opens; None for a container such as `:::note`."""
    indent, marks = fence[0][: fence.start("fence")], fence["fence"]
    name, argument = fence["name"] or "", (fence["argument"] or "").strip()
    if _OMITTED.fullmatch(name):
        return _Block("omitted", marks, (), (), True)
    if _CODE.fullmatch(name):
        ticks = indent + marks.replace(":", "`")
        language = "" if name == "parsed-literal" else argument
        return _Block("code", marks, (ticks + language,), (ticks,), True)
    start = _start_of_prose(name, argument, indent)
    if start or (name and marks[0] == ":"):
        return _Block("prose", marks, start or (f"{indent}:::",), (f"{indent}:::",), True)
    return _Block("code", marks, (fence[0],), (indent + marks,), False) if marks[0] != ":" else None


def _start_of_prose(name: str, argument: str, indent: str) -> tuple[str, ...]:
    """Return the lines that begin a directive with prose; empty if the directive is not known."""
    if _NOTE.fullmatch(name):
        return (f"{indent}:::{name}", *([indent + argument] if argument else []))
    if _TITLED.fullmatch(name):
        title = argument.strip("* ")
        return ("", f"{indent}**{title}**", "") if title else (f"{indent}:::{name}",)
    return (f"{indent}:::",) if _GROUP.fullmatch(name) else ()


def _role_text(titles: Mapping[str, str], match: re.Match[str]) -> str:
    """Return the title of the heading that a role refers to, or else the text of the role.

    This text becomes a code span, unless the role is a reference with a target.
    """
    is_reference = _REFERENCE_ROLE.fullmatch(match["role"])
    title = titles.get(_target_key(match["text"])) if is_reference else None
    if title and not match["target"]:
        return title
    is_prose = match["target"] and is_reference
    return match["text"] if is_prose else f"`{match['text'].lstrip('~.!')}`"
