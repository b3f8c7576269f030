"""Turns the HTML tags, plain HTML tables and MDX components of Markdown pages into Markdown.

Tags are found with regular expressions. The page is not parsed as an HTML document.
"""

import html
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial

from ingestion.text.components import (
    ATTRIBUTES,
    METHOD,
    attributes_of,
    call_in,
    parse_object_literal,
    scopes_of,
    title_of,
)
from ingestion.text.markdown_blocks import escape_borders, outside_code, replace_outside_code
from prompts.user_text import user_text
from schemas.choices import Language

HTML_TAGS = frozenset(
    ["a", "abbr", "address", "article", "aside", "b", "bdi", "bdo", "big", "blockquote", "body",
     "br", "button", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del",
     "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "font", "footer", "h1",
     "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "i", "iframe", "img", "input",
     "ins", "kbd", "label", "li", "link", "main", "mark", "meta", "nav", "ol", "p", "picture",
     "pre", "q", "s", "samp", "script", "section", "small", "source", "span", "strike", "strong",
     "style", "sub", "summary", "sup", "svg", "table", "tbody", "td", "template", "tfoot", "th",
     "thead", "time", "title", "tr", "tt", "u", "ul", "var", "video", "wbr", "path"]
)  # fmt: skip
"""Lower-case names of tags that are HTML.

Other tags are components, placeholders such as `<token>`, or unknown.
"""

_NOTE_BOXES = frozenset(["callout", "admonition", "alert", "aside", "notice", "banner", "panel"])
"""Names of components whose attributes say which admonition (note box) they are: `<Callout type="tip">`."""
_TITLES = ("title", "label", "name", "header", "heading", "tabName", "summary", "text", "value")
"""Attributes of components that may hold their title, the most specific first."""
_MESSAGES = ("message", "description", "meaning", "when", "text", "title")
"""Attributes of components about errors that may hold the message, the most specific first."""
_TAG = outside_code(rf"<(?P<closing>/?)(?P<tag>[a-z][\w.-]*)(?P<attributes>{ATTRIBUTES})\s*/?>")
_CLOSING_TAG = outside_code(r"</(?P<tag>[a-z][\w.-]*)\s*>")
_ANNOTATION = outside_code(r"(?<!=)\{(?P<object>\{[^{}\n]*\})\}")
"""An object after a heading or in a paragraph, such as `{{ tag: 'POST', label: '/v1/x' }}`."""
_EMPHASIS = outside_code(
    r"<(?P<name>b|strong|i|em)(?:\s[^<>]*)?>\s*(?P<text>[^<>*`|\n]*?)\s*</(?P=name)\s*>"
)
_SUMMARY = outside_code(r"<summary(?:\s[^<>]*)?>(?P<text>.{1,2000}?)</summary\s*>")
_HEADING_IN_SUMMARY = re.compile(r"<h[1-6]\b|^[ \t]*#", re.IGNORECASE | re.MULTILINE)
_MAY_BE_EMPHASIS = re.compile(r"<(?:b|strong|i|em)[\s>]", re.IGNORECASE)
_LINE_BREAKS = re.compile(r"(?:<br>\s*)+")
_OUTER_BREAKS = re.compile(r"<br>(?=\s*(?:\||$))|(?<=\|)(\s*)<br>")
_NAME_OF_IMAGE = re.compile(
    r"[A-Za-z0-9_.-]+|[\w.-]{0,10}(?:页面|界面|截图|示意图|流程图|架构图|时序图|效果图)"
)
"""An `alt` text that only names an image: a single English word, or a short name such as 设置页面."""
_UNDESCRIBED = re.compile(
    r"\S*\.(?:png|jpe?g|gif|svg|webp|bmp)|image|img|picture|图片|图", re.IGNORECASE
)
"""An `alt` text that does not describe its image: the name of an image file, or a word for images."""
_HEADING = re.compile("h[1-6]")
_HEADING_TEXT = re.compile(r" {0,3}#{1,6}[ \t]+[^<\s]")
_BADGE = re.compile(r"\w*(?:Badge|Tag|Chip|Pill|Lozenge)")
"""Names of components that show a label such as "Beta". They are removed from headings."""
_CODE_COMPONENT = re.compile(r"Code(?:Block|Snippet|Sample|Example)?|Snippet")
"""Names of components that show code."""
_MARK = re.compile(
    r"(?:Is)?(?:(?P<required>Required|Req|Mandatory)|Optional|Opt)(?:Badge|Tag|Chip|Pill|Mark)?"
)
"""Names of components that mark a field as required or optional."""
ANY_TAG = re.compile(r"<[^<>]*>")
_PERMISSIONS = re.compile(
    r"(?:Required|OAuth2?|Api|API)?(?:Scopes?|Permissions?|Privileges?)(?:Badge|List|Tag)?"
)
_CALL_PART = re.compile(
    r"(?:Request|Response|Query|Path|Header|Body|Form|Error|Err|Failure|Fault|Exception|Problem|Return|Reply"
    r"|Answer|Result|Output|Input)s?(?:Body|Params|Parameters|Headers|Fields|Schema|Codes|List|Table)?"
)
"""Names of components that contain the fields of a request or of a response, or the errors."""
_CALL_PART_VALUE = re.compile(
    r"request|response|query|path|headers?|body|form|errors?", re.IGNORECASE
)
"""Values of attributes that say what a component contains, as in `<Fields of="body">`."""
_HTTP_STATUS = re.compile(r"[1-5]\d\d(?::? +[A-Z].*)?")
_ERROR_STATUS = re.compile(r"[45](?:\d\d|xx)\b.*", re.IGNORECASE)
_ERROR_CODE = re.compile(r"[\w.-]{2,60}")
_CONTAINERS = "div|aside|section|article|main|header|details"
_OPENING_LINE = re.compile(rf"<(?:[A-Z][\w.]*|(?P<html>{_CONTAINERS}))(?:\s[^<>]*)?(?<!/)>\s*$")
_CLOSING_LINE = re.compile(rf"</(?:[A-Z][\w.]*|{_CONTAINERS})\s*>\s*$")
_REPLACED_TAGS = {
    "br": "<br>",
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
    **dict.fromkeys(("p", "div", "ul", "ol", "details", "table", "tr", "section"), "\n\n"),
}

_IRREGULAR_TABLE = re.compile(
    r"(?:row|col)span|(?:padding|margin)-left|<(?:pre|img|caption|ol|dl|h\d)\b|<table.*<table",
    re.IGNORECASE | re.DOTALL,
)

_TABLE_TAG = re.compile(r"<(/?)table\b[^>]*>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?=<tr\b|</table|\Z)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(
    r"<t[hd]\b[^>]*>(.*?)(?=</?t[hdr]\b|</?t(?:head|body|foot|able)\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)

_SPACES = re.compile(r"[ \t\n]+")
_CODE_ELEMENT = outside_code(r"<code\b[^>]*>(?P<html>[^\n`]*?)</code\s*>")
_CODE = re.compile(r"<code\b[^>]*>(.*?)</code\s*>", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(
    r"<a\b[^>]*?\shref=[\"'](https?://[^\s<>()\"']*)[\"'][^>]*>\s*([^<\[\]]+?)\s*</a\s*>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PageMarkup:
    """The properties of a page on which the conversion of its tags depends."""

    language: Language
    """The language of the page's text. Added titles, such as "Note", are in this language."""
    closed_tags: Set[str]
    """The names of the page's closing tags, in lower case."""


def closing_tags(text: str) -> Iterator[str]:
    """Yield the name of each closing tag outside code spans, in lower case."""
    if "</" in text:
        yield from (m["tag"].lower() for m in _CLOSING_TAG.finditer(text) if m["tag"])


def replace_tags(text: str, page: PageMarkup) -> str:
    """Return `text` with Markdown instead of tags and components. Each row of a table stays on one line."""
    if "<summary" in text:
        text = replace_outside_code(_SUMMARY, _summary, text)
    # Most paragraphs have no tags. A code span cannot contain a blank line, so paragraphs can be converted
    # separately.
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        _replace_in_paragraph(part, page) if "<" in part else part for part in paragraphs
    )


def _replace_in_paragraph(text: str, page: PageMarkup) -> str:
    if "<code" in text:
        text = replace_outside_code(_CODE_ELEMENT, lambda match: _code(match["html"]), text)
    if _MAY_BE_EMPHASIS.search(text):
        text = replace_outside_code(_EMPHASIS, _emphasis, text)
    text = "\n".join(_replace_in_row(line, page) for line in text.split("\n"))
    return replace_outside_code(_TAG, partial(_replace_tag, page=page), text)


def replace_annotations(text: str) -> str:
    """Return `text` with each object in double braces replaced by the method and path in it.

    `{{ tag: 'POST', label: '/v1/x' }}` becomes a code span with `POST /v1/x`. An object without a method
    and path is removed. Anything else in double braces, such as a variable, stays.
    """
    return replace_outside_code(_ANNOTATION, _annotation, text)


def _annotation(match: re.Match[str]) -> str:
    values = parse_object_literal(match["object"])
    call = call_in(values)
    if call:
        return f"`{call}`"
    # YAML reads the variable `{{ name }}` as an object with the value None.
    is_object = bool(values) and None not in values.values()
    return "" if is_object else match[0]


def outdent_components(text: str) -> str:
    """Return `text` with the content of MDX components and HTML containers no longer indented.

    Markdown parsers would treat lines that are indented by four spaces as code. If a blank line follows the
    opening tag of an HTML container, its content stays indented, because the indentation then marks code.
    """
    lines: list[str] = []
    # The indentation of the content of each open element; None before the first line of the content.
    indents: list[int | None] = []
    is_html = False  # whether the line above opens an HTML container
    for line in text.split("\n"):
        line = line.expandtabs(4) if indents else line
        stripped = line.lstrip(" ")
        if not stripped:
            if is_html:
                indents[-1] = 0
            is_html = False
            lines.append(line)
            continue
        is_closing = _CLOSING_LINE.match(stripped) is not None
        if is_closing:
            del indents[-1:]
        indent = len(line) - len(stripped)
        if indents and indents[-1] is None:
            indents[-1] = indent
        lines.append(line[min(indent, indents[-1] or 0) :] if indents else line)
        opening = None if is_closing else _OPENING_LINE.match(stripped)
        if opening:
            indents.append(None)
        is_html = bool(opening and opening["html"])
    return "\n".join(lines)


def bold_title(kind: str, title: str | None, language: Language) -> str:
    """Return `title` in bold. Without a title, return the name of the admonition `kind` in `language`.

    The result is empty if there is no title and `kind` is not an admonition.
    """
    text = (title or "").strip() or user_text(language).admonitions.get(kind.lower(), "")
    return f"**{text}**" if text else ""


def _emphasis(match: re.Match[str]) -> str:
    mark = "**" if match["name"].lower() in ("b", "strong") else "*"
    return f"{mark}{match['text']}{mark}" if match["text"] else ""


def _summary(match: re.Match[str]) -> str:
    """Return the `<summary>` of a `<details>` element as a paragraph in bold.

    A summary that contains a heading or is in a table is unchanged.
    """
    before = line_before(match)
    if before.lstrip().startswith("|") or _HEADING_IN_SUMMARY.search(match["text"]):
        return match[0]
    title = " ".join(ANY_TAG.sub("", _CODE.sub(r"`\1`", match["text"])).replace("**", "").split())
    indent = before[: len(before) - len(before.lstrip(" \t>"))]
    return f"\n\n{indent}**{title}**\n\n{indent}" if title else ""


def _replace_in_row(line: str, page: PageMarkup) -> str:
    """Return a table row with its tags replaced.

    The tags of paragraphs and list items become `<br>`, because a row must stay on one line.
    """
    if "|" not in line or "<" not in line:
        return line
    line = replace_outside_code(_TAG, partial(_replace_row_tag, page=page), line)
    return _OUTER_BREAKS.sub(r"\1", _LINE_BREAKS.sub("<br>", line))


def _replace_row_tag(match: re.Match[str], page: PageMarkup) -> str:
    text = _replace_tag(match, page).strip("\n")
    if text == match[0]:
        return text
    if match["tag"][0].isupper():
        return f" {text.replace('**', '')} " if text else ""
    if match["tag"].lower() in ("p", "div", "ul", "ol", "li"):
        return f"<br>{text}"
    return text


def _replace_tag(match: re.Match[str], page: PageMarkup) -> str:
    """Return the replacement of a tag; a placeholder such as `<token>` stays.

    The names of most components begin with a capital letter. A lower-case tag that is not HTML is a
    placeholder if none of its attributes has a value and, in addition, either the page never closes it or
    its line is indented as code. Otherwise, it is a note box such as `<callout>`, or it is removed.
    """
    name = match["tag"].lower()
    values = attributes_of(match["attributes"]) if match["attributes"] else {}
    if match["tag"][0].isupper():
        is_type = not match["closing"] and _is_type_argument(match)
        return match[0] if is_type else _replace_component(match, values, page.language)
    if name in HTML_TAGS:
        return _html_tag(match, values)
    is_code = line_before(match).startswith(("    ", "\t"))
    if "=" not in match["attributes"] and (is_code or name not in page.closed_tags):
        return match[0]
    return _replace_component(match, values, page.language) if name in _NOTE_BOXES else ""


def _replace_component(match: re.Match[str], values: Mapping[str, str], language: Language) -> str:
    """Return the replacement of an opening or closing tag of a component; `values` are its attributes."""
    name = match["tag"]
    if match["closing"]:
        return "" if _is_inline(match) else "\n"
    if text := _text_before_content(match, values):
        return f"\n\n{text} "
    if _CODE_COMPONENT.fullmatch(name) and match[0].endswith("/>"):
        return ""  # the code is in another file; its title alone says nothing
    is_badge = _BADGE.fullmatch(name) and _is_in_heading(match)
    text = "" if is_badge and not call_in(values) else _component_text(name, values, language)
    if _is_inline(match):
        return text.strip().replace("**", "")
    return f"\n\n{text}\n\n" if text else ""


def _is_type_argument(match: re.Match[str]) -> bool:
    """Return whether a match is not a tag, but the argument of a type such as `List<Item>`."""
    before = match.string[max(match.start() - 1, 0) : match.start()]
    return before.isalnum() and not match["attributes"] and f"</{match['tag']}" not in match.string


def _is_inline(match: re.Match[str]) -> bool:
    """Return whether text other than tags comes before a tag on its line."""
    return bool(ANY_TAG.sub("", line_before(match)).strip(" \t>-"))


def _is_in_heading(match: re.Match[str]) -> bool:
    """Return whether a tag follows the text of a heading."""
    return _HEADING_TEXT.match(line_before(match)) is not None


def line_before(match: re.Match[str]) -> str:
    """Return the text before a match on its line."""
    start = match.string.rfind("\n", 0, match.start()) + 1
    return match.string[start : match.start()]


def is_alone_on_line(match: re.Match[str]) -> bool:
    """Return whether the line of a tag or an image contains no text besides it. Other tags do not count."""
    line_after = match.string[match.end() :].partition("\n")[0]
    return not (_is_inline(match) or ANY_TAG.sub("", line_after).strip())


def image_text(alt: str, *, is_alone: bool) -> str:
    """Return the text that replaces an image: its `alt` text; empty if this does not describe the image.

    "image" and `a.png` are not descriptions. If the image is alone on its line (`is_alone`), a name such as
    `settings_page` or 设置页面 is not a description either.
    """
    is_name = is_alone and _NAME_OF_IMAGE.fullmatch(alt.strip())
    return "" if is_name or _UNDESCRIBED.fullmatch(alt.strip()) else alt


def _html_tag(match: re.Match[str], values: Mapping[str, str]) -> str:
    is_closing, name = bool(match["closing"]), match["tag"].lower()
    if name == "img":
        return image_text(values.get("alt", ""), is_alone=is_alone_on_line(match))
    if name == "li":
        return "" if is_closing else "\n- "
    if _HEADING.fullmatch(name):
        return "\n\n" if is_closing else f"\n\n{'#' * int(name[1])} "
    return _REPLACED_TAGS.get(name, "")


def _text_before_content(match: re.Match[str], values: Mapping[str, str]) -> str:
    """Return the text to write before a component's content.

    This is a label for permissions, an HTTP method if a URL follows, or the status, code and message of an
    error. For other components, the result is empty.
    """
    if _PERMISSIONS.fullmatch(match["tag"]):
        return f"**Permissions:** {scopes_of(values, is_scope=True)}".strip()
    method = next(filter(METHOD.fullmatch, values.values()), "")
    is_before_url = match.string[match.end() :].lstrip(" \n`").startswith(("/", "http"))
    if method and is_before_url:
        return f"**{method.upper()}**"
    error = _error(values)
    return f"{error} {title_of(values, _MESSAGES)}".strip() if error and not call_in(values) else ""


def _error(values: Mapping[str, str]) -> str:
    """Return the status and code of an error in bold, as "**404 `not_found`**"; empty if there is none."""
    code, status = values.get("code", ""), values.get("status", "")
    if _HTTP_STATUS.fullmatch(code):
        return f"**{code}**"
    if _ERROR_CODE.fullmatch(code):
        return f"**{status} `{code}`**".replace("** ", "**")
    return f"**{status}**" if _ERROR_STATUS.fullmatch(status) else ""


def _component_text(name: str, values: Mapping[str, str], language: Language) -> str:
    """Return the text for a component, such as `POST /v1/x`, a heading, "(required)" or a title in bold."""
    if mark := _MARK.fullmatch(name):
        return " (required)" if mark["required"] else " (optional)"
    scopes = scopes_of(values)
    required = f"Required permissions: {scopes}" if scopes else ""
    if call := call_in(values):
        return f"`{call}`\n\n{required}".strip()
    if _HEADING.fullmatch(tag := values.get("as", "")):
        return f"{'#' * int(tag[1])} {title_of(values, ('children', *_TITLES))}"
    return required or _component_title(name, values, language)


def _component_title(name: str, values: Mapping[str, str], language: Language) -> str:
    """Return the title of a component in bold, or as a heading if it is an HTTP status.

    A component for a part of the request or response, such as `<RequestBody>`, gets a title even if it has
    no attributes.
    """
    title = title_of(values, _TITLES)
    if _HTTP_STATUS.fullmatch(title):
        return f"#### {title}"  # a tab for the responses with this status
    if not title and name.lower() in _NOTE_BOXES:
        name = next(
            (v for v in values.values() if v.lower() in user_text(language).admonitions), ""
        )
    elif not title:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
        part = next(filter(_CALL_PART_VALUE.fullmatch, values.values()), "")
        if part:
            title = f"{part.capitalize()} {words}"
        elif _CALL_PART.fullmatch(name):
            title = f"{words} {values.get('status', '')}".strip()
    return bold_title(name, title, language)


def split_tables(text: str) -> Iterator[tuple[bool, str]]:
    """Yield pairs of a flag and a part of `text`. The flag says whether the part is an outermost table."""
    done = start = depth = 0
    for match in _TABLE_TAG.finditer(text):
        if not match[1]:
            if depth == 0:
                start = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield False, text[done:start]
                yield True, text[start : match.end()]
                done = match.end()
    yield False, text[done:]


def regular_table(table: str) -> str:
    """Return an HTML table as a Markdown table.

    Code and absolute links in its cells become Markdown; other tags stay. The result is empty if the table
    has no rows, or needs a parser, for example because of merged cells or images.
    """
    if _IRREGULAR_TABLE.search(table):
        return ""
    rows = [cells for row in _ROW.findall(table) if (cells := _CELL.findall(row))]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [
        "".join(f"| {_cell(cell)} " for cell in row + [""] * (width - len(row))) for row in rows
    ]
    return "\n".join(f"{line}|" for line in [lines[0], "| --- " * width, *lines[1:]])


def _cell(cell: str) -> str:
    text = _LINK.sub(r"[\2](\1)", _CODE.sub(lambda match: _code(match[1]), _SPACES.sub(" ", cell)))
    return escape_borders(text).strip()


def _code(element: str) -> str:
    """Return the text of an HTML element as a code span; empty if there is no text."""
    text = html.unescape(re.sub(r"</?[a-z][^>]*>", "", element))
    return f"`{text}`" if text.strip() else ""
