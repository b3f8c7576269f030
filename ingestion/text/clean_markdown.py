"""Turns the Markdown dialects of documentation generators into plain Markdown.

`to_plain_markdown` converts a whole page before it is cut into blocks: comments, MDX, admonitions, content
tabs, HTML and images. `clean_text` cleans the text of a block: entities, escapes, highlights and white
space. In code blocks, only three things change: several blank lines become one, an opening fence keeps only
its language, and code inside an admonition, content tab or component is outdented.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ingestion.text.html_tags import (
    ANY_TAG,
    PageMarkup,
    bold_title,
    closing_tags,
    image_text,
    is_alone_on_line,
    line_before,
    outdent_components,
    regular_table,
    replace_annotations,
    replace_tags,
    split_tables,
)
from ingestion.text.language import detect_language
from ingestion.text.lenient_markdown import repair_markdown
from ingestion.text.markdown_blocks import (
    change_outside_code,
    outside_code,
    replace_outside_code,
    split_code,
)
from ingestion.text.myst import replace_myst
from ingestion.text.typography import join_lines
from schemas.choices import Language

_WIDE = "\u00a0\u2000-\u200a\u3000"
"""Spaces other than the ASCII space: no-break, typographic and full-width spaces."""
_WIDE_SPACE = re.compile(f"[{_WIDE}]")
_WIDE_INDENT = re.compile(rf"(^[ \t]*|\|[ \t]*)([{_WIDE}]+)")
_CONVERTED_CHARACTER = re.compile(f"[<{_WIDE}]")
_CONVERTED_STRINGS = (
    "{/*", "{{", "{%", "{:", "{'", '{"', ":::", "[!", "![", "](#", "((#", ":`", "import ", "export ",
    "[此处为语雀",
)  # fmt: skip
"""Text with one of these strings needs `_convert`."""
_INDENTED_IN_COMPONENT = re.compile(
    r"^[ \t]*<(?:[A-Z][\w.]*(?:\s[^<>]*)?>\s*|[a-z]+(?:\s[^<>]*)?>[ \t]*)\n(?: {4}|\t)",
    re.MULTILINE,
)
"""The opening tag of a component or HTML element, and the indentation of the line below the tag."""
_STRING = outside_code(r"(?<!=)\{(?P<quote>['\"])(?P<text>[^'\"`<>\n]*)(?P=quote)\}")
"""A string in braces, which is how MDX escapes braces: `/v1/{'{id}'}` stands for `/v1/{id}`."""
_COMMENT = outside_code(r"<!--.*?(?:-->|\Z)|\{/\*.*?\*/\}")
_COMMENT_AROUND_CODE = re.compile(r"^ {0,3}<!--(?!.*-->)", re.MULTILINE | re.DOTALL)
"""The start of a comment that is still open when the next code block begins."""
_COMMENT_END = "-->"
_IMAGE = outside_code(
    r"!\[(?P<alt>[^\]]*)\]\([^)\s]*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)(?:\{[^}]*\})?"
)
_MODULE_LINE = re.compile(
    r"^(?:import\s+[\w*{].*?from\s+['\"].*|import\s+['\"].*"
    r"|export\s+(?:const|default|function|let|var)\b.*)$\n?",
    re.MULTILINE,
)
"""A line of JavaScript with which MDX imports or exports something."""
_INSERTION_LINE = re.compile(
    r"^[ \t]*(?:\{\{[<%].*[%>]\}\}|\{\{[ \t]*[\w.-]*/[\w./-]+[ \t]*\}\}|\{%-?[ \t]*include\b.*%\}"
    r"|--8<--.*|<<<[ \t].*|\[此处为语雀[^\]\n]*\]\([^)\n]*\))[ \t]*$\n?",
    re.MULTILINE,
)
"""A line that inserts a file (`{{fragments/code.md}}`) or is a shortcode of Hugo (`{{< note >}}`).

Also a line with the link that Yuque writes in place of a card, such as a video. The text of the link begins
with "此处为语雀".
"""
_MACRO_LINE = re.compile(
    r"^[ \t>]*+(?:(?:<%(?:(?!%>).)*+%>[ \t]*+)+|\{\{[ \t]*+[\w:.-]++>[^{}\n]*+\}\}[ \t]*+)$\n?",
    re.MULTILINE,
)
"""A line that contains only ERB tags (`<%= x %>`) or only a DokuWiki macro (`{{indexmenu_n>3}}`)."""
_ATTRIBUTE_LINE = re.compile(
    r"^[ \t>]*+\{:(?:[ \t]*+(?:[.#][\w-]++|[\w-]++=(?:\"[^\"\n]*\"|'[^'\n]*')|toc\b))+[ \t]*+\}[ \t]*+$",
    re.MULTILINE,
)
"""A line with only the attributes of an adjacent block, as in kramdown: `{: .note #id key="value"}`."""
_TITLE_AT_END = r"[ \t]*(?:\[([^\]]*)\]|\"([^\"]*)\"|([^{\n]*))?(?:\{[^}]*\})?[ \t]*$"
_CONTAINER_LINE = re.compile(rf"^(\s*):{{3,}}[ \t]*([A-Za-z][\w-]*)?{_TITLE_AT_END}")
"""The first or last line of a container: `:::note Title` or `:::`."""
_ALERT = re.compile(r"^(\s*(?:>\s*)+)\\?\[!(\w+)\\?\][-+]?[ \t]*(.*)$")
"""The first line of an alert: `> [!NOTE] Title`."""
_INDENTED_BLOCK_START = re.compile(
    r"^(\s*)(?:!!!|\?\?\?\+?|===[!+]?)[ \t]+(?:([\w-]+)[ \t]*)?(?:\"([^\"]*)\")?[ \t]*$"
)
"""The first line of an admonition or content tab of MkDocs: `!!! note "Title"` or `=== "Tab"`."""
_TITLE_DIV = re.compile(
    r"^([ \t]*:{3,}[ \t]*[A-Za-z][\w-]*)[ \t]*\n[ \t]*:{3,}[ \t]*title[ \t]*\n([^\n]+)\n[ \t]*:{3,}[ \t]*$",
    re.MULTILINE,
)
"""The start of an admonition as Pandoc writes it, with the title in a container of its own."""
_DIRECTIVE = re.compile(r"^(\s*)\.\.[ \t]+([a-z]+)::[ \t]*(.*)$")
"""A directive of reStructuredText, with the first line of its content: `.. note:: Text`."""
_ROLE = outside_code(
    r"(?<!\w):(?:[a-z]+:){1,2}`(?P<text>[^`<\n]*[^`<\s])(?:[ \t]*<[^`>\n]*>)?`(?!`)"
)
"""A role of reStructuredText: `` :ref:`Paging <paging>` ``."""
_VARIABLE = outside_code(r"<<(?:glossary:(?P<term>[\w -]+)|(?P<name>[a-z][\w.-]*))>>")
"""A variable or a term of the glossary in ReadMe.com, such as `<<apiKey>>`."""
_ADMONITION_STRINGS = (":::", "[!")
"""Text without these strings has no admonitions for `_convert_admonitions`."""
_INDENTED_BLOCK_STRINGS = ("!!!", "???", "===", ".. ")
"""Text without these strings has no blocks for `_outdent_blocks`."""
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_INFO = re.compile(
    r"\A(?P<fence>[ \t>]*+(?:`{3,}|~{3,}))[ \t]*+"
    r"(?!(?:[a-z]+[ \t]+)?(?:(?:get|post|put|patch|delete|head|options)\b"
    r"|(?-i:curl)[ \t]+(?:-|\S*[/.:'\"$])))"
    r"(?:(?:\{code[\w-]*\}[ \t]*)?\{?[ \t]*+\.?(?P<language>[a-z][\w+#.-]*+)(?!=)"
    r"|\{[^{}\"\n]*\}|[\w-]+=|(?=\n|\Z))[^`\n]*(?=\n|\Z)",
    re.IGNORECASE,
)
"""An opening fence with its language, as in ```` ```ts title="a.ts" {2,3} ```` or ```` ``` {.ts} ````.

An HTTP request, a JSON object, or a curl command on the line of the fence is code, not a language.
"""
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<label>[^\]\n^][^\]\n]*)\]:[ \t]*<?(?P<target>[^\s>]+)>?(?:[ \t]+[\"'(][^\n]*)?$\n?",
    re.MULTILINE,
)
"""The definition of a link, `[label]: target "title"`, but not of a footnote, `[^1]: text`."""
_REFERENCE = outside_code(r"\[(?P<text>[^\[\]]+)\](?:\[(?P<label>[^\[\]]*)\])?(?![\[(:])")
_ANCHOR_LINK = outside_code(
    r"\[[#¶§\u200b]?\]\(#[^)\s]*\)[ \t]?"
    r"|<a\s[^<>]*\bhref=[\"']#[^<>]*>\s*[#¶§\u200b]?\s*</a\s*>"
)
"""A link from a heading to itself."""
_NAMED_ANCHOR = outside_code(r"[ \t]*\(\(#(?P<id>[\w\\.:-]+)(?:,[ \t]*#[\w\\.:-]+)*\)\)")
"""The anchor of a heading or list item, as in the Markdown of HashiCorp: `## Ports ((#ports))`."""
_FOOTNOTE_MARK = outside_code(
    r"<sup(?:\s[^<>]*)?>\s*(?:<a(?:\s[^<>]*)?>)?\s*\[{1,2}\d{1,3}\]{1,2}(?:\([^)\s]*\))?\s*(?:</a>)?\s*</sup\s*>"
)
"""The number of a footnote. In an answer, it would look like a citation."""
_INSERTED_LINK = outside_code(
    r"!?\[(?P<text>[^\[\]]*)\]\((?:[^()\s<]*<%(?:(?!%>)[^\n]){0,300}+%>)+[^()\s]*\)"
)
"""A link whose target is unknown because it contains an ERB tag: `[Keys](<%= keys_url %>)`."""
_LABEL_BELOW_TABLE = re.compile(r"(\|[ \t]*)\n([ \t]*\*\*[^*|\n]+\*\*[:：]?[ \t]*)(?=\n)")
"""A bold line right below a table. It labels the text below, but a parser would read it as a table row."""


def _anchor_of_heading(match: re.Match[str]) -> str:
    """Return ` {#id}` for the anchor of a heading; empty for the anchor of something else."""
    anchor = match["id"].replace("\\", "")
    return f" {{#{anchor}}}" if line_before(match).startswith("#") else ""


_REPLACEMENTS: Sequence[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]]] = (
    ("<<", _VARIABLE, lambda match: match["term"] or f"`<{match['name']}>`"),
    (":`", _ROLE, lambda match: f"`{match['text']}`"),
    ("<%", _INSERTED_LINK, lambda match: match["text"]),
    ("](#", _ANCHOR_LINK, lambda _: ""),
    ("<a ", _ANCHOR_LINK, lambda _: ""),
    ("((#", _NAMED_ANCHOR, _anchor_of_heading),
    ("<sup", _FOOTNOTE_MARK, lambda _: ""),
    ("![", _IMAGE, lambda match: image_text(match["alt"], is_alone=is_alone_on_line(match))),
    ("{'", _STRING, lambda match: match["text"]),
    ('{"', _STRING, lambda match: match["text"]),
)
"""Triples of a string, a pattern and a function that returns the replacement of a match.

The pattern is tried only if the text contains the string.
"""
_BREAK_LINE = re.compile(r"^[ \t]*(?:</?br\s*/?>[ \t]*)+$", re.MULTILINE | re.IGNORECASE)
"""A line that contains only `<br>` tags. A parser would read even a heading directly below it as HTML."""
_BLANK_LINES = re.compile(r"\n{3,}")

_CLEANED_CHARACTER = re.compile(f"[\\\\&<>\t\u200b\ufeff{_WIDE}]")
_CLEANED_STRINGS = ("==", "++", "  ", "** ")
"""Text with one of these strings needs `_clean`."""
_ESCAPE = re.compile(r"\\([-_.()\[\]{}+=~&%$@:;,'\"/?^!<>])")
_HIGHLIGHT = re.compile(
    r"(?<![=\w])==(?=\S)([^=\n]+?)(?<=\S)==(?![=\w])|\+\+(?=\S)([^+\n]+?)(?<=\S)\+\+"
)
_BOLD = re.compile(
    r"\*\*(?=[^\s*])[^*\n]++\*\*"
    r"|(?<![0-9] )\*\*[ \t]++(?P<loose>(?=[^*\n]*[\u4e00-\u9fff])[^*\n]++)(?<=[ \t])\*\*"
)
"""Bold text, or Chinese text that is meant to be bold but has spaces inside the marks: `** 注意 **`.

After a number and a space, `**` is an operator: `2 ** 8`.
"""
_INVISIBLE = re.compile("[\u200b\ufeff]")
_LINE_BREAKS = outside_code(r"[ \t]*(?:<br\s*/?>[ \t]*)+")
_ROW = re.compile(r"[ \t>]*\|")
_DELIMITER_ROW = re.compile(r"[ \t>]*\|[ \t|:-]+")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_LINE_START = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
"""The indentation of a line, marks of block quotes, and the marks of list items."""
_OTHER_BLOCK = re.compile(r"[-=]{2,}\s*(?:\Z|<br)|#{1,6}\s|[>|]|```|~~~")
"""Text that would begin another block, such as a heading or a table, if it began a line."""
_ANGLES = re.compile(r"<(?!br\s*/?>)(/?[A-Za-z][^<>\n`]{0,60})>", re.IGNORECASE)
_AUTOLINK = re.compile(r"(?:https?|mailto|ftp):")
_SPACES = outside_code(r"(?<=[^\s|])[ \t]{2,}(?=[^\s|])")


def inline_links(text: str) -> str:
    """Replace reference links by inline links: `[a][1]` becomes `[a](/x)` if `text` defines `[1]: /x`.

    The definitions are removed. Fenced code does not change.
    """
    if "]:" not in text:
        return text
    parts = list(split_code(text))
    targets = {
        match["label"].casefold(): match["target"]
        for is_code, part in parts
        if not is_code
        for match in _DEFINITION.finditer(part)
    }

    def link(match: re.Match[str]) -> str:
        target = targets.get((match["label"] or match["text"]).casefold())
        return f"[{match['text']}]({target})" if target else match[0]

    return "".join(
        part if is_code else replace_outside_code(_REFERENCE, link, _DEFINITION.sub("", part))
        for is_code, part in parts
    )


def to_plain_markdown(text: str, table_to_markdown: Callable[[str], str] | None = None) -> str:
    """Return the page `text` as plain Markdown.

    Comments, the imports and exports of MDX, and lines that insert files are removed; admonitions, content
    tabs, HTML and images are converted. `table_to_markdown` converts the HTML tables that `regular_table`
    cannot convert. If `table_to_markdown` is None, all tables lose their tags and keep their text.
    """
    text = repair_markdown(replace_myst(text.replace("\r\n", "\n")))
    page = _page_markup(text)
    if any(string in text for string in _INDENTED_BLOCK_STRINGS):
        text = "\n".join(_outdent_blocks(text.split("\n"), page.language))
    if "<" in text and _INDENTED_IN_COMPONENT.search(text):
        text = outdent_components(text)
    if "<!--" in text:
        text = _remove_comments_around_code(text)
    parts = (
        _INFO.sub(_with_language, part)
        if is_code
        else (_convert(part, page, table_to_markdown) if _needs_conversion(part) else part)
        for is_code, part in split_code(text)
    )
    return _BLANK_LINES.sub("\n\n", "".join(parts)).strip("\n")


def _page_markup(text: str) -> PageMarkup:
    """Return the language of a page and the names of its closing tags.

    Fenced code is ignored. When the language is detected, tags are ignored as well.
    """
    prose = [part for is_code, part in split_code(text) if not is_code]
    closed = frozenset(name for part in prose for name in closing_tags(part))
    return PageMarkup(detect_language(ANY_TAG.sub("", "\n".join(prose))), closed)


def _with_language(match: re.Match[str]) -> str:
    """Return an opening fence followed by its language only, without a title or line numbers."""
    return match["fence"] + (match["language"] or "")


def _remove_comments_around_code(text: str) -> str:
    """Return `text` without the comments that contain code blocks.

    If such a comment stayed, a closing fence with `-->` on its line would not end the code block.
    """
    while (span := _comment_around_code(text)) is not None:
        start, end = span
        text = text[:start] + text[end:]
    return text


def _comment_around_code(text: str) -> tuple[int, int] | None:
    """Return the start and end of the first comment that contains a code block.

    Returns None if there is no such comment, or if it does not end.
    """
    position = 0
    for is_code, part in split_code(text):
        comment = None if is_code else _COMMENT_AROUND_CODE.search(part)
        if comment is not None:
            start = position + comment.start()
            end = text.find(_COMMENT_END, start)
            return (start, end + len(_COMMENT_END)) if end >= 0 else None
        position += len(part)
    return None


def _needs_conversion(text: str) -> bool:
    # Several searches for plain strings are faster than one for a pattern of alternatives.
    has_string = any(string in text for string in _CONVERTED_STRINGS)
    return bool(has_string or _CONVERTED_CHARACTER.search(text) or _LABEL_BELOW_TABLE.search(text))


def _convert(text: str, page: PageMarkup, table_to_markdown: Callable[[str], str] | None) -> str:
    """Convert a part of a page that contains no fenced code (see `to_plain_markdown`)."""
    if "<!--" in text or "{/*" in text:
        text = replace_outside_code(_COMMENT, lambda _: "", text)
    text = _LABEL_BELOW_TABLE.sub(r"\1\n\n\2", _BREAK_LINE.sub("", text))
    if _WIDE_SPACE.search(text):
        text = "\n".join(map(_keep_indentation, text.split("\n")))
    if table_to_markdown is not None and "<table" in text.lower():
        text = "".join(
            f"\n\n{regular_table(part) or table_to_markdown(part)}\n\n" if is_table else part
            for is_table, part in split_tables(text)
        )
    text = _INSERTION_LINE.sub("", _MODULE_LINE.sub("", text))
    text = _MACRO_LINE.sub("", _ATTRIBUTE_LINE.sub("", text))
    if any(string in text for string in _ADMONITION_STRINGS):
        text = "\n".join(
            _convert_admonitions(_TITLE_DIV.sub(r"\1 \2", text).split("\n"), page.language)
        )
    for string, pattern, replace in _REPLACEMENTS:
        if string in text:
            text = replace_outside_code(pattern, replace, text)
    if "{{" in text:
        text = replace_annotations(text)
    return replace_tags(text, page) if "<" in text else text


def _keep_indentation(line: str) -> str:
    """Replace wide spaces at the start of table cells with entities, because parsers strip such spaces."""
    if "|" not in line:
        return line
    return _WIDE_INDENT.sub(lambda match: match[1] + "&emsp;" * len(match[2]), line)


def _outdent_blocks(lines: Iterable[str], language: Language) -> Iterator[str]:
    """Turn `!!! tip`, `??? note`, `=== "Tab"` and `.. note::` into bold titles; outdent their content."""
    blocks: list[tuple[int, int]] = []
    """The indentation of each open block and of its content, which is 0 until it is known."""
    fence = ""
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and not fence:
            while blocks and indent <= blocks[-1][0]:
                blocks.pop()
            if blocks and not blocks[-1][1]:
                blocks[-1] = (blocks[-1][0], indent)
        line = line[min(indent, blocks[-1][1]) :] if blocks else line
        if marks := _FENCE.match(line):
            is_end = bool(fence) and marks[1].startswith(fence)
            fence = "" if is_end else fence or marks[1]
        if not fence and (start := _INDENTED_BLOCK_START.match(line)):
            blocks.append((indent, 0))
            yield from ("", start[1] + bold_title(start[2] or "", start[3], language), "")
        elif (
            not fence
            and (start := _DIRECTIVE.match(line))
            and (title := bold_title(start[2], "", language))
        ):
            blocks.append((indent, 0))
            yield from ("", start[1] + title, "", start[1] + start[3])
        else:
            yield line


def _convert_admonitions(lines: Iterable[str], language: Language) -> Iterator[str]:
    """Turn `:::note` and `> [!NOTE]` into bold titles."""
    for line in lines:
        if match := _CONTAINER_LINE.match(line):
            title = match[3] or match[4] or match[5]
            yield from ("", match[1] + bold_title(match[2] or "", title, language), "")
        elif match := _ALERT.match(line):
            yield f"{match[1]}{bold_title(match[2], match[3], language)}"
            yield match[1].rstrip()
        else:
            yield line


def clean_text(markdown: str) -> str:
    """Return the Markdown of a block with entities decoded, and escapes and highlight marks removed.

    A `<br>` becomes a line break, or punctuation in a table. Runs of spaces are collapsed. Spaces inside
    the marks of bold Chinese text are removed. A placeholder in angle brackets becomes a code span. Code
    blocks and code spans are not changed.
    """
    has_string = any(string in markdown for string in _CLEANED_STRINGS)
    if not has_string and not _CLEANED_CHARACTER.search(markdown):
        return markdown
    return "".join(part if is_code else _clean(part) for is_code, part in split_code(markdown))


def _clean(text: str) -> str:
    """Clean a part of a block that contains no fenced code (see `clean_text`)."""
    text = change_outside_code(_clean_characters, text)
    if "<br" in text.lower():
        lines = text.split("\n")
        text = "\n".join(map(_replace_breaks, lines, [*lines[1:], ""]))
    return replace_outside_code(_SPACES, lambda _: " ", text)


def _replace_breaks(line: str, following: str) -> str:
    """Return a line with each `<br>` replaced: in a table by punctuation, elsewhere by a hard line break.

    In the header of a table, a space replaces `<br>`. `following` is the line below `line`, or empty.
    """
    if _ROW.match(line):
        if _DELIMITER_ROW.fullmatch(following):
            return replace_outside_code(_LINE_BREAKS, lambda _: " ", line)
        return "|".join(map(join_lines, _CELL_BORDER.split(line)))
    start = _LINE_START.match(line)
    indent = re.sub(r"[^\s>]", " ", start[0]) if start else ""

    def replacement(line_breaks: re.Match[str]) -> str:
        before, after = line[len(indent) : line_breaks.start()], line[line_breaks.end() :]
        if not after:
            return "  " if before and following.strip() else ""
        return " " if not before or _OTHER_BLOCK.match(after) else f"  \n{indent}"

    return replace_outside_code(_LINE_BREAKS, replacement, line)


def _clean_characters(text: str) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    text = _INVISIBLE.sub("", html.unescape(text))
    text = _WIDE_SPACE.sub(" ", text)
    text = _HIGHLIGHT.sub(lambda match: match[1] or match[2], text)
    text = _BOLD.sub(
        lambda match: f"**{match['loose'].strip()}**" if match["loose"] else match[0], text
    )
    return _ANGLES.sub(_placeholder, text)


def _placeholder(match: re.Match[str]) -> str:
    inner = match[1]
    return inner if _AUTOLINK.match(inner) else f"`<{inner}>`"
