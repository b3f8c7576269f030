"""Turns the Markdown dialects of documentation generators into plain Markdown.

`to_plain_markdown` converts a whole page before it is cut into blocks: comments, MDX, admonitions,
tabs, HTML and images. `clean_text` cleans the text of a block: entities, escapes, highlights and
white space. Code is never changed.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ingestion.text.html_tables import regular_table

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|\{/\*.*?\*/\}", re.DOTALL)
_MODULE_LINE = re.compile(
    r"^(?:import\s+[\w*{].*?from\s+['\"].*|import\s+['\"].*|export\s+(?:const|default|function|let|var)\b.*)$"
)
_TITLED = r"[ \t]*(?:\[([^\]]*)\]|\"([^\"]*)\"|([^{\n]*))?(?:\{[^}]*\})?[ \t]*$"
_CONTAINER = re.compile(rf"^(\s*):{{3,}}[ \t]*([A-Za-z][\w-]*)?{_TITLED}")
_ALERT = re.compile(r"^(\s*(?:>\s*)+)\\?\[!(\w+)\\?\][-+]?[ \t]*(.*)$")
_INDENTED = re.compile(
    r"^(\s*)(?:!!!|\?\?\?\+?|===[!+]?)[ \t]+(?:([\w-]+)[ \t]*)?(?:\"([^\"]*)\")?[ \t]*$"
)
_TAG = re.compile(
    r"<(/?)([A-Za-z][\w.-]*)((?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|\{[^{}]*\}|[^\s\"'>]+))?)*)\s*(/?)>"
)
_ATTRIBUTE = re.compile(
    r"([\w:@.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{[\"'`]?([^{}\"'`]*)[\"'`]?\})"
)
_TABLE = re.compile(r"<table\b.*?</table\s*>", re.DOTALL | re.IGNORECASE)
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)(?:\{[^}]*\})?")
_HTML_TAGS = frozenset(
    [
        "a",
        "abbr",
        "address",
        "article",
        "aside",
        "b",
        "bdi",
        "bdo",
        "big",
        "blockquote",
        "body",
        "br",
        "button",
        "caption",
        "center",
        "cite",
        "code",
        "col",
        "colgroup",
        "dd",
        "del",
        "details",
        "dfn",
        "div",
        "dl",
        "dt",
        "em",
        "figcaption",
        "figure",
        "font",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "i",
        "iframe",
        "img",
        "input",
        "ins",
        "kbd",
        "label",
        "li",
        "link",
        "main",
        "mark",
        "meta",
        "nav",
        "ol",
        "p",
        "picture",
        "pre",
        "q",
        "s",
        "samp",
        "script",
        "section",
        "small",
        "source",
        "span",
        "strike",
        "strong",
        "style",
        "sub",
        "summary",
        "sup",
        "svg",
        "table",
        "tbody",
        "td",
        "template",
        "tfoot",
        "th",
        "thead",
        "time",
        "title",
        "tr",
        "tt",
        "u",
        "ul",
        "var",
        "video",
        "wbr",
        "path",
    ]
)
_ADMONITIONS = frozenset(
    [
        "note",
        "tip",
        "info",
        "warning",
        "caution",
        "danger",
        "important",
        "hint",
        "success",
        "error",
        "attention",
        "example",
        "question",
        "abstract",
        "summary",
        "bug",
        "failure",
        "quote",
        "check",
        "callout",
        "details",
        "seealso",
        "deprecated",
    ]
)
_TITLES = ("title", "label", "name", "header", "heading", "tabName", "text", "value")
_ESCAPE = re.compile(r"\\([-_.()\[\]{}+=~&%$@:;,'\"/?^!<>])")
_HIGHLIGHT = re.compile(
    r"(?<![=\w])==(?=\S)([^=\n]+?)(?<=\S)==(?![=\w])|\+\+(?=\S)([^+\n]+?)(?<=\S)\+\+"
)
_ANGLES = re.compile(r"<(/?[A-Za-z][^<>\n`]{0,60})>")
_AUTOLINK = re.compile(r"(?:https?|mailto|ftp):")
_SPACES = re.compile(r"(?<=[^\s|])[ \t\u00a0\u2000-\u200a\u3000]{2,}(?=[^\s|])")
_LABEL_BELOW_TABLE = re.compile(r"(\|[ \t]*)\n([ \t]*\*\*[^*|\n]+\*\*[:：]?[ \t]*)(?=\n)")
"""A bold line right below a table: it labels what follows, but a parser takes it as a row."""
_WIDE_INDENT = re.compile(r"(^\s*|\|[ \t]*)([\u00a0\u2000-\u200a\u3000]+)")
_DELIMITER = re.compile(r"^[\s|:-]+$")


def to_plain_markdown(text: str, table_to_markdown: Callable[[str], str] | None = None) -> str:
    """Return a page with comments, MDX, admonitions, tabs, HTML and images as plain Markdown.

    `table_to_markdown` converts an HTML table; without it, the tags of tables are removed like others.
    """
    parts = []
    for is_code, part in _split_code(text.replace("\r\n", "\n")):
        parts.append(part if is_code else _prose(part, table_to_markdown))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")


def _split_code(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the fenced blocks of a text and what lies between them, in order."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            yield False, "\n".join(lines)
            lines, fence = [line], match[1]
        elif (
            fence
            and match
            and match[1][0] == fence[0]
            and len(match[1]) >= len(fence)
            and not line.strip(" \t>").strip(fence[0])
        ):
            yield True, "\n".join([*lines, line])
            lines, fence = [], ""
        else:
            lines.append(line)
    yield bool(fence), "\n".join(lines)


def _keep_indentation(line: str) -> str:
    """Write the wide spaces at the start of table cells as entities: parsers strip them."""
    if "|" not in line:
        return line
    return _WIDE_INDENT.sub(lambda match: match[1] + "&emsp;" * len(match[2]), line)


_NEEDS_CONVERSION = re.compile(
    r"<|\{/\*|:::|\[!|!\[|^\s*(?:!!!|\?\?\?|===)|^(?:import|export)\s|\|[ \t]*\n[ \t]*\*\*"
    r"|[\u00a0\u2000-\u200a\u3000]",
    re.MULTILINE,
)


def _prose(text: str, table_to_markdown: Callable[[str], str] | None) -> str:
    if not _NEEDS_CONVERSION.search(text):
        return text
    text = _outside_code(text, partial(_COMMENT.sub, ""))
    text = _LABEL_BELOW_TABLE.sub(r"\1\n\n\2", text)
    text = "\n".join(map(_keep_indentation, text.split("\n")))
    if table_to_markdown is not None:
        text = _TABLE.sub(
            lambda match: f"\n\n{regular_table(match[0]) or table_to_markdown(match[0])}\n\n", text
        )
    text = "\n".join(
        _admonitions(line for line in text.split("\n") if not _MODULE_LINE.match(line))
    )
    text = _outside_code(text, lambda part: _IMAGE.sub(lambda match: match[1], part))
    if "<" not in text:
        return text
    text = "\n".join(map(_clean_row, text.split("\n")))
    return _outside_code(text, lambda part: _TAG.sub(_tag, part))


def _clean_row(line: str) -> str:
    """Return a row of a table without tags; blocks become line breaks within their cell."""
    if "|" not in line or "<" not in line:
        return line
    line = _outside_code(line, lambda part: _TAG.sub(_row_tag, part))
    line = re.sub(r"(?:<br>\s*)+", "<br>", line)
    return re.sub(r"<br>(?=\s*(?:\||$))|(?<=\|)(\s*)<br>", r"\1", line)


def _row_tag(match: re.Match[str]) -> str:
    text = _tag(match).strip("\n")
    if match[2][0].isupper():
        return f" {text.replace('**', '')} " if text else ""
    if match[2].lower() in ("p", "div", "ul", "ol", "li"):
        return f"<br>{text}"
    return text


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the text between code spans."""
    parts: list[str] = []
    done = 0
    for match in _CODE_SPAN.finditer(text):
        if "\n\n" in match[0]:
            continue
        parts += [change(text[done : match.start()]), match[0]]
        done = match.end()
    return "".join([*parts, change(text[done:])])


def _admonitions(lines: Iterator[str]) -> Iterator[str]:
    """Turn `:::note`, `> [!NOTE]`, `!!! tip` and `=== "Tab"` into bold titles.

    Indented content is outdented.
    """
    indents: list[int] = []
    for line in lines:
        if indents and line.strip() and len(line) - len(line.lstrip()) <= indents[-1]:
            indents.pop()
        if match := _INDENTED.match(line):
            indents.append(len(match[1]))
            yield from ("", match[1] + _bold(match[2] or "", match[3]), "")
            continue
        if indents:
            line = line.replace(" " * 4, "", 1) if line.startswith(" " * 4) else line.lstrip()
        if match := _CONTAINER.match(line):
            yield from ("", match[1] + _bold(match[2] or "", match[3] or match[4] or match[5]), "")
        elif match := _ALERT.match(line):
            yield f"{match[1]}{_bold(match[2], match[3])}"
            yield match[1].rstrip()
        else:
            yield line


def _bold(kind: str, title: str | None) -> str:
    """Return the title of an admonition in bold: its own, else its kind."""
    text = (title or "").strip() or (kind.capitalize() if kind.lower() in _ADMONITIONS else "")
    return f"**{text}**" if text else ""


def _tag(match: re.Match[str]) -> str:
    """Return what replaces a tag; a placeholder such as <token> stays."""
    is_closing, name = bool(match[1]), match[2]
    is_component = name[0].isupper()
    if name.lower() not in _HTML_TAGS and not is_component:
        return match[0]
    values = {
        m[1]: (m[2] or m[3] or m[4] or "").strip() for m in _ATTRIBUTE.finditer(match[3] or "")
    }
    if is_component:
        return "\n" if is_closing else _component(name, values)
    return _html_tag(name.lower(), is_closing, values)


_REPLACED_TAGS = {
    "br": "<br>",
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
    **dict.fromkeys(("p", "div", "ul", "ol", "details", "table", "tr", "section"), "\n\n"),
}


def _html_tag(name: str, is_closing: bool, values: Mapping[str, str]) -> str:
    if name == "img":
        return values.get("alt", "")
    if name == "li":
        return "" if is_closing else "\n- "
    if re.fullmatch(r"h[1-6]", name):
        return "\n\n" if is_closing else f"\n\n{'#' * int(name[1])} "
    return _REPLACED_TAGS.get(name, "")


def _component(name: str, values: Mapping[str, str]) -> str:
    """Return an MDX component's title in bold, on a line of its own; a badge stays as text."""
    if name in ("Required", "Optional"):
        return f" ({name.lower()})"
    if values.get("method") and (path := values.get("path") or values.get("url")):
        return f"\n\n`{values['method'].upper()} {path}`\n\n"
    title = next((values[key] for key in _TITLES if values.get(key)), "")
    if name.lower() in _ADMONITIONS:
        return f"\n\n{_bold(name, title)}\n\n"
    return f"\n\n**{title}**\n\n" if title else ""


def clean_text(markdown: str) -> str:
    """Return the text of a block without entities, escapes, highlights and doubled white space.

    Code blocks and code spans keep their text; a placeholder in angle brackets becomes a code span.
    """
    if not _NEEDS_CLEANING.search(markdown):
        return markdown
    return "\n".join(
        part if is_code else _outside_code(part, _clean) for is_code, part in _split_code(markdown)
    )


_NEEDS_CLEANING = re.compile(r"[\\&<>\u00a0\u2000-\u200b\u3000\ufeff]|==|\+\+|\S[ \t]{2,}\S")


def _clean(text: str) -> str:
    if not _NEEDS_CLEANING.search(text):
        return text
    text = _ESCAPE.sub(lambda match: match[1], text)
    text = html.unescape(text).replace("\u200b", "").replace("\ufeff", "")
    text = re.sub(r"[\u00a0\u2002\u2003\u3000]", " ", text)
    text = re.sub(r"<br\s*/?>", " ", text, flags=re.IGNORECASE)
    text = _HIGHLIGHT.sub(lambda match: match[1] or match[2], text)
    text = _ANGLES.sub(_placeholder, text)
    text = "\n".join(
        line if _DELIMITER.match(line) else _SPACES.sub(" ", line) for line in text.split("\n")
    )
    return re.sub(r"(?<=[^\s|])[ \t]{2,}\Z", " ", text)  # before a code span


def _placeholder(match: re.Match[str]) -> str:
    inner = match[1]
    if _AUTOLINK.match(inner):
        return inner
    return f"`<{inner}>`"
