"""Converts a tree of HTML into Markdown with the same headings, tables, lists and code blocks.

Operations, fields and tables are normalised first; see `html_structure`.
"""

import re
import textwrap
from typing import Any

from bs4 import Tag
from markdownify import ATX, MarkdownConverter

from ingestion.sources.formats.html import WIDE_SPACES, parse_html
from ingestion.sources.formats.html_structure import mark_fields, mark_operations, normalise_tables
from ingestion.text.html_tags import image_text
from ingestion.text.markdown_blocks import cell_text, code_fence, escape_borders
from schemas.errors import SourceError

MAX_INDENTATION = 80
"""Maximum indentation of a cell, in characters."""

MAX_WRITTEN_CHARS = 60_000_000
"""Maximum number of characters that are written for one page, over all levels of nesting.

Each level writes the text of the levels below it again.
"""

_LABELS = ["span", "code", "b", "strong", "em", "i", "small", "var", "label"]
_TERM = re.compile(r"[a-z_$][\w.$\[\]-]*(?P<more>\s.*)?", re.ASCII)
_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source)?|brush)[-:]\s?([\w+#.-]{1,20})")
_LINE_START = re.compile(
    r"^( {0,3})(#{1,6}(?=\s|$)|`{3,}|~{3,}|=+[ \t]*$|-{2,}[ \t]*$)", re.MULTILINE
)
_LEFT_SPACE = re.compile(r"(?:padding|margin)-left\s*:\s*([\d.]{1,6})(px|em)", re.IGNORECASE)
_MARKUP = re.compile(r"([\\*_`<\[{])")


def html_to_markdown(content: Tag) -> str:
    """Return `content` as Markdown. Modifies `content`. Raises SourceError if the page exceeds a limit."""
    mark_operations(content)
    mark_fields(content)
    _separate_labels(content)
    normalise_tables(content)
    _number_list_items(content)
    return str(_Converter().convert_soup(content)).strip()


def table_to_markdown(html: str) -> str:
    """Return an HTML table as a Markdown table. Raises SourceError if it exceeds a limit."""
    return html_to_markdown(parse_html(html))


def _separate_labels(content: Tag) -> None:
    """Put a space between labels, such as a name and its type, that only the style sheet separates."""
    for label in content.find_all(_LABELS, class_=True):
        before = label.previous_sibling
        if isinstance(before, Tag) and before.name in _LABELS and not label.find_parent("pre"):
            label.insert_before(" ")


def _number_list_items(content: Tag) -> None:
    """Store the number of each list item, because markdownify counts all preceding items to find it."""
    for items in content.find_all("ol"):
        start = str(items.get("start", "1"))
        first = int(start) if start.isdecimal() and len(start) < 10 else 1
        for number, item in enumerate(items.find_all("li", recursive=False), first):
            item["data-number"] = str(number)


class _Converter(MarkdownConverter):
    """A MarkdownConverter whose output is meant for search and reading, not for rendering."""

    def __init__(self) -> None:
        super().__init__(heading_style=ATX, bullets="-", table_infer_header=True)
        self.written_chars = 0

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        text = str(super().process_tag(node, parent_tags))  # type: ignore[misc]
        self.written_chars += len(text)
        if self.written_chars > MAX_WRITTEN_CHARS:
            raise SourceError(
                "cannot be converted: its nested elements yield more than "
                f"{MAX_WRITTEN_CHARS / 1_000_000:g} million characters"
            )
        return text

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Escape all markup in headings. Elsewhere, escape only marks that would begin another block.

        These are the marks of headings, horizontal rules and code fences. For example, `order_id` in a
        paragraph is not changed.
        """
        if _is_in_heading(parent_tags):
            return _MARKUP.sub(r"\\\1", text)
        return _LINE_START.sub(r"\1\\\2", text)

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a Markdown link, the link's text, or an empty string for a permalink such as `#`.

        Links in headings and in code become text, and so do relative links.
        """
        href = str(el.get("href", "")).strip()
        label = text.strip()
        if label in ("", "#", "¶", "↑"):
            return ""
        if "_noformat" in parent_tags or _is_in_heading(parent_tags):
            return text
        if not href.startswith(("http://", "https://")) or re.search(r"[\s<>()]", href):
            return text
        return text.replace(label, f"<{href}>" if label == href else f"[{label}]({href})")

    convert_tt = MarkdownConverter.convert_code  # type: ignore[attr-defined]

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "pre" in parent_tags:
            return "\n"
        return " " if "_inline" in parent_tags else "\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = " ".join(text.split())
        if not text or "_inline" in parent_tags:
            return f"{text} "
        if _names_field(el):
            name, _, rest = text.partition(" ")
            return f"\n- {text if '`' in text else f'`{name}` {rest}'.strip()}\n"
        return f"\n\n**{text.replace('*', '')}**\n\n"

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if "_inline" in parent_tags:
            return f" {text} "
        if _names_field(el.find_previous_sibling("dt")):
            return f"\n{textwrap.indent(text, '  ')}\n"
        return f"\n\n{text}\n\n"

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return self.convert_dt(el, text, parent_tags)

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "admonition-title" in (el.get("class") or ()) and "_inline" not in parent_tags:
            return f"\n\n**{' '.join(text.replace('*', '').split())}**\n\n" if text.strip() else ""
        return str(super().convert_p(el, text, parent_tags))  # type: ignore[misc]

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        is_alone = el.parent is not None and not el.parent.get_text(strip=True)
        return image_text(str(el.get("alt") or ""), is_alone=is_alone)

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if not text:
            return "\n"
        bullet = f"{el['data-number']}. " if el.get("data-number") else "- "
        return bullet + textwrap.indent(text, " " * len(bullet)).lstrip() + "\n"

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "_inline" in parent_tags:  # in a table's cell
            return f"`{' '.join(text.split())}`" if text.strip() else ""
        text = text.strip("\n")
        return f"\n\n{code_fence(text, _code_language(el))}\n\n" if text.strip() else ""

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # Indentation shows nesting. It is written as &nbsp; because Markdown parsers strip spaces.
        text = cell_text(text) if el.find("li") else " ".join(text.split())
        return f" {'&nbsp;' * _indentation(el)}{escape_borders(text)} |"

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        columns = int(str(el.get("data-columns") or 0))
        return f"|{text}\n" + (f"|{' --- |' * columns}\n" if columns else "")

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        text = " ".join(text.split())
        if "_inline" in parent_tags:
            return text
        return f"\n\n{'#' * max(1, min(6, n))} {text}\n\n" if text else ""


def _names_field(term: Tag | None) -> bool:
    """Return whether a term of a definition list names a field.

    Such a term contains code, or begins with an identifier that does not start with a capital letter. The
    identifier is alone or is followed by labels such as a type.
    """
    if term is None or term.find("code") is not None:
        return term is not None
    match = _TERM.fullmatch(" ".join(term.get_text(" ").split()))
    return match is not None and (not match["more"] or term.find(_LABELS) is not None)


def _indentation(cell: Tag) -> int:
    """Return the width of the space before the text of a cell, in characters."""
    width = 0
    for tag in [cell, *cell.find_all(style=True)]:
        if match := _LEFT_SPACE.search(str(tag.get("style", ""))):
            width += round(float(match[1]) / (8 if match[2].lower() == "px" else 0.5))
    for text in cell.strings:
        spaces = text[: len(text) - len(text.lstrip())]
        width += sum(character in WIDE_SPACES for character in spaces)
        if len(spaces) < len(text):
            break
    return min(width, MAX_INDENTATION)


def _is_in_heading(parent_tags: set[str]) -> bool:
    return any(re.fullmatch("h[1-6]", tag) for tag in parent_tags)


def _code_language(pre: Tag) -> str:
    """Return the language of a code block, from the classes and attributes of the code and of its parents.

    The result is empty if they name no language.
    """
    candidates: list[Any] = [pre.find("code"), pre, pre.parent, pre.parent and pre.parent.parent]
    for tag in filter(None, candidates):
        names = list(tag.get("class") or ())
        if declared := tag.get("data-lang") or tag.get("data-language"):
            names.append(f"lang-{declared}")
        names.append(tag.get("data-syntaxhighlighter-params") or "")  # set by Confluence
        if match := _LANGUAGE.search(" ".join(names)):
            # Sphinx writes "default" if no language is named.
            return "" if match[1] == "default" else match[1]
    return ""
