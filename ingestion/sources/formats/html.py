"""Reads HTML pages: parses a page within limits, finds its content and converts it to Markdown."""

import re
from collections.abc import Iterator, Set
from types import MappingProxyType
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from ingestion.sources.formats.html_chrome import site_chrome
from ingestion.sources.formats.text import decode_text
from ingestion.sources.pages import PageContent, PagePart
from schemas.errors import SourceError

MAX_DEPTH = 100
"""Maximum depth of nested elements. A typical page has about 20 levels."""

MAX_EVENTS = 200_000
"""Maximum number of start tags, end tags and text nodes. A long single-page reference has 50,000."""

MAX_PAGE_CHARS = 10_000_000
"""Maximum number of characters of a page, including tags but without scripts and comments."""

MAX_TAG_SEPARATORS = 5_000
"""Maximum number of spaces, quotes and equals signs in one tag."""

WIDE_SPACES = "\u00a0\u2002\u2003\u3000"
"""No-break spaces and wide spaces. At the start of a cell, they are its indentation."""

_BLOCK_TAGS = frozenset(
    ["address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure",
     "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p",
     "pre", "section", "table", "ul"]
)  # fmt: skip
_CLOSED_BY: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "p": _BLOCK_TAGS | {"li", "dt", "dd", "td", "th", "tr"},
        "li": frozenset({"li"}),
        "dt": frozenset({"dt", "dd"}),
        "dd": frozenset({"dt", "dd"}),
        "td": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
        "th": frozenset({"td", "th", "tr", "tbody", "tfoot"}),
        "tr": frozenset({"tr", "tbody", "tfoot"}),
        "thead": frozenset({"tbody", "tfoot"}),
        "tbody": frozenset({"tbody", "tfoot"}),
        "option": frozenset({"option", "optgroup"}),
    }
)
"""Maps each element to the start tags that implicitly close it."""

_ACCEPTED_CHARSETS = re.compile(
    r"utf-?8|gb(2312|k|18030)|big5|shift_jis|euc-(jp|kr)|iso-8859-\d+|windows-125\d|koi8-[ru]"
)
"""Charsets that a page may declare. Some of Python's other codecs are slow or do not return text."""
_DECLARED_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{2,20})", re.IGNORECASE
)
_CHARSET_SEARCH_BYTES = 4_096

_BOILERPLATE = (
    "head, title, template, nav, form, button, svg, canvas, iframe, dialog, footer, input, select,"
    " textarea, object, [hidden]:not([role=tabpanel]), [aria-hidden=true], [role=navigation],"
    " [role=search], a.headerlink, a.hash-link, a.anchor-link, .linenos"
)
_NAVIGATION = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|sidebar|sidenav|toc|breadcrumbs?)(?:$|[\s_-])",
    re.IGNORECASE,
)
"""Matches the classes and ids of navigation.

Some elements around the whole page also have a matching class, such as `with-sidebar`. They contain
`_PAGE_CONTENT`; navigation does not.
"""
_PAGE_CONTENT = ["h1", "h2", "pre", "table", "article", "main"]
"""Elements that occur in the content of a page, but not in navigation."""
_NOTE = re.compile(r"note|tip|hint|info|warning|caution|danger|important|admonition|callout")
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_FORM_CONTENT = [*_HEADINGS, "header", "section", "table", "dl"]
_BADGE = re.compile(r"badge|lozenge", re.IGNORECASE)
"""Matches the class of a label in a heading, such as "Beta". Labels are not part of the heading's text."""
_TITLE_SEPARATORS = (
    (r"(?:\s[|·•:»–—-]+|:)\s+", r"\s+[|·•:«–—-]+\s"),
    ("[|｜–—_-] ?", " ?[|｜–—_-]"),
)
"""Separators between the page's title and the site's name, in pairs: before the title and after it.

The second pair is for Chinese names, which are often separated without spaces: 设备分组_控制台_帮助中心.
"""
_INVISIBLE_START = re.compile(
    r"<(?:(?P<comment>!--)|(?P<other>[!?])|(?P<name>script|style|noscript)\b)", re.IGNORECASE
)
_INVISIBLE_END = {
    "comment": re.compile("-->"),
    "other": re.compile(">"),
    "script": re.compile(r"</script[^>]*>", re.IGNORECASE),
    "style": re.compile(r"</style[^>]*>", re.IGNORECASE),
    "noscript": re.compile(r"</noscript[^>]*>", re.IGNORECASE),
}


def read_html(data: bytes) -> PageContent:
    """Return the page's content as Markdown.

    The `values` of the result are the page's `title`, its `lang`, its `canonical` link, and the content of
    every named `<meta>`. Raises SourceError if the page is not readable or exceeds a limit.
    """
    match = _DECLARED_CHARSET.search(data, 0, _CHARSET_SEARCH_BYTES)
    declared = match[1].decode("ascii").lower() if match else ""
    if declared.startswith("gb"):
        declared = "gb18030"  # a superset of the other GB encodings
    return html_page(
        decode_text(data, declared if _ACCEPTED_CHARSETS.fullmatch(declared) else None)
    )


def html_page(html: str) -> PageContent:
    """Return the content of the HTML document `html`, as `read_html` does."""
    from ingestion.sources.formats.html_markdown import html_to_markdown

    tree = _parse_within_limits(_remove_scripts(html))
    values = dict(_read_values(tree))
    link_texts = {_line_text(link) for link in tree.find_all("a")}
    content = _find_content(tree)
    _remove_boilerplate(content)
    heading = content.find("h1")
    if short := _short_title(str(values.get("title", "")), heading, link_texts):
        values["title"] = short
    return PageContent(values, [PagePart(html_to_markdown(content))], "html")


def _parse_within_limits(html: str) -> Tag:
    if len(html) > MAX_PAGE_CHARS:
        raise SourceError("too large for an HTML page")
    if any(_has_oversized_tag(piece) for piece in html.split(">")):
        raise SourceError("a tag has too many attributes")
    try:
        return parse_html(html)
    except SourceError:
        raise
    except Exception as error:  # the parser fails on malformed character references and names
        raise SourceError(f"not a readable HTML page ({type(error).__name__})") from None


def _has_oversized_tag(piece: str) -> bool:
    """Return whether the tag at the end of `piece` has implausibly many attributes.

    `piece` is the HTML between two `>`. The parser takes quadratic time for the attributes of a tag.
    """
    tag = piece[piece.find("<") :] if "<" in piece else ""
    return len(tag) > MAX_TAG_SEPARATORS and sum(map(tag.count, " =\n\t\"'")) > MAX_TAG_SEPARATORS


def _remove_scripts(html: str) -> str:
    """Remove comments, declarations, scripts, styles and `<noscript>` elements in one pass.

    If many of them were not closed, the parser would take quadratic time.
    """
    kept: list[str] = []
    position = 0
    while match := _INVISIBLE_START.search(html, position):
        kept.append(html[position : match.start()])
        kind = (match["name"] or match.lastgroup or "").lower()
        end = _INVISIBLE_END[kind].search(html, match.end())
        position = end.end() if end else len(html)
    kept.append(html[position:])
    # A "<" after the last ">" opens no tag, so it becomes text.
    body, close, rest = "".join(kept).rpartition(">")
    return body + close + rest.replace("<", "&lt;")


def _read_values(tree: Tag) -> Iterator[tuple[str, object]]:
    """Yield the name and the content of each piece of metadata of the page.

    `<title>` comes last, so that it overrides a `<meta>` named `title`.
    """
    for meta in tree.find_all("meta", attrs={"name": True, "content": True}):
        yield str(meta["name"]).lower(), _collapse_spaces(str(meta["content"]))
    canonical = tree.select_one("link[rel=canonical][href^=http]")
    if canonical is not None:
        yield "canonical", str(canonical["href"]).strip()
    root = tree.find("html")
    if root is not None and root.get("lang"):
        yield "lang", str(root["lang"])
    title = tree.find("title")
    if title is not None and _line_text(title):
        yield "title", _line_text(title)


def _short_title(title: str, heading: Tag | None, link_texts: Set[str]) -> str:
    """Return the part of `title` that names the page, without the site; empty if it is not recognised.

    For "Orders | Shop", the result is "Orders" if this is the text of `heading`, or if "Shop" is in
    `link_texts`: pages link to the home page with the name of the site.
    """
    text = _line_text(heading) if heading is not None else ""
    if text and any(
        re.fullmatch(rf"(.+{before})?{re.escape(text)}({after}.+)?", title)
        for before, after in _TITLE_SEPARATORS[: 1 if text.isascii() else 2]
    ):
        return text
    last = re.fullmatch(r"(.+)\s+[|·•:«–—-]+\s+(.+)", title)
    return last[1] if last and last[2] in link_texts else ""


def _find_content(tree: Tag) -> Tag:
    """Return the element with the content of the page: the main element, or else the body.

    If there is exactly one outermost article, and it contains most of the text, return the article.
    """
    main = tree.select_one("main, [role=main]") or tree
    articles = [
        article for article in main.find_all("article") if article.find_parent("article") is None
    ]
    if len(articles) == 1 and len(articles[0].get_text()) * 2 > len(main.get_text()):
        return articles[0]
    return main if main is not tree else tree.find("body") or tree


def _remove_boilerplate(content: Tag) -> None:
    """Remove navigation, controls and other elements that are not content."""
    for form in content.find_all("form"):
        if form.find(_FORM_CONTENT):  # some servers wrap the page, or its parameters, in a form
            form.name = "div"
    for button in content.find_all("button"):
        if len(list(button.stripped_strings)) > 1:  # the title of a collapsible section
            button.name = "div"
    unwanted = [aside for aside in content.find_all("aside") if not _is_content(aside, content)]
    unwanted += [tag for tag in content.find_all(_is_navigation) if _is_mostly_links(tag)]
    unwanted += site_chrome(content)
    if content.name in ("body", "[document]"):
        unwanted += [
            header
            for header in content.find_all("header")
            if not header.find_parent(["article", "section"])
        ]
    # A heading in a list is the name of a field. Its badge may be "Required", so it is kept.
    unwanted += [
        badge
        for heading in content.find_all(_HEADINGS)
        if heading.find_parent("li") is None
        for badge in heading.find_all(class_=_BADGE)
    ]
    for tag in [*unwanted, *content.select(_BOILERPLATE)]:
        if not tag.decomposed:
            tag.decompose()


def _is_content(aside: Tag, content: Tag) -> bool:
    """Return whether `aside` belongs to `content`.

    A note always belongs to the content. Any other `<aside>` belongs to it if `content` is a main element
    or an article, and the `<aside>` is not mostly links.
    """
    if _NOTE.search(f"{aside.get('class')} {aside.get('role')}"):
        return True
    return content.name not in ("body", "[document]") and not _is_mostly_links(aside)


def _is_navigation(tag: Tag) -> bool:
    """Return whether `tag` is navigation according to its class or id, and contains no `_PAGE_CONTENT`."""
    if tag.name not in ("div", "ul", "ol"):
        return False
    names = " ".join([*(tag.get("class") or ()), str(tag.get("id", ""))])
    return _NAVIGATION.search(names) is not None and tag.find(_PAGE_CONTENT) is None


def _is_mostly_links(tag: Tag) -> bool:
    """Return whether at least half of the text is in links."""
    linked = sum(len(_line_text(link)) for link in tag.find_all("a"))
    return linked * 2 >= len(_line_text(tag))


def _line_text(tag: Tag) -> str:
    return _collapse_spaces(tag.get_text())


def _collapse_spaces(text: str) -> str:
    return " ".join(text.replace("¶", " ").split())


def parse_html(html: str) -> Tag:
    """Return the tree of `html`. Raises SourceError if it is too deeply nested or has too many nodes."""
    return _BoundedSoup(html, builder=_TreeBuilder())


class _BoundedSoup(BeautifulSoup):
    """A BeautifulSoup that limits its depth and its number of nodes during parsing.

    It also closes elements whose end tags are omitted (see `_CLOSED_BY`).
    """

    events = 0

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        self._count()
        while (open_tag := self.currentTag) is not None and name in _CLOSED_BY.get(
            open_tag.name, ()
        ):
            self.endData()
            self.popTag()
        if len(self.tagStack) > MAX_DEPTH:
            raise SourceError(f"nests more than {MAX_DEPTH} elements deep")
        return super().handle_starttag(name, *args, **kwargs)

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        self._count()
        super().handle_endtag(name, nsprefix)

    def handle_data(self, data: str) -> None:
        self._count()
        super().handle_data(data)

    def _count(self) -> None:
        self.events += 1
        if self.events > MAX_EVENTS:
            raise SourceError(f"has more than {MAX_EVENTS} tags and text nodes")


class _Parser(BeautifulSoupHTMLParser):
    """The parser of bs4, changed so that many `<br>` tags do not take quadratic time."""

    def handle_starttag(self, *args: Any, **kwargs: Any) -> None:
        super().handle_starttag(*args, **kwargs)
        # bs4 records every <br> in this list and searches the list at every end tag.
        self.already_closed_empty_element.clear()


class _TreeBuilder(HTMLParserTreeBuilder):
    def feed(
        self, markup: str | bytes, _parser_class: type[BeautifulSoupHTMLParser] = _Parser
    ) -> None:
        super().feed(markup, _parser_class)
