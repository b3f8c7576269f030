"""HTML -> a tree of bounded size and depth, with the end tags that HTML lets authors leave out.
HTML pages: what of a page is its content, and that as Markdown.
"""

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from ingestion.sources.formats.text import TextFile, decode
from ingestion.sources.markdown import PagePart
from schemas.errors import SourceError

if TYPE_CHECKING:
    from bs4 import Tag

DEEPEST = 100
"""Elements within each other; a page has some twenty."""

MOST_EVENTS = 200_000
"""Start tags, end tags and runs of text; a long reference on one page has fifty thousand."""

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "details",
        "div",
        "dl",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
    ]
)
_CLOSED_BY: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "p": _BLOCKS | {"li", "dt", "dd", "td", "th", "tr"},
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
"""Element -> the start tags that end it."""


def parse(html: str) -> Tag:
    """The tree of `html`. Raises SourceError for one that is too deep or too large."""
    return _Tree(html, builder=_Builder())


class _Tree(BeautifulSoup):
    """A tree that counts what it is made from."""

    events = 0

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        self._count()
        while (open_tag := self.currentTag) is not None and name in _CLOSED_BY.get(
            open_tag.name, ()
        ):
            self.endData()
            self.popTag()
        if len(self.tagStack) > DEEPEST:
            raise SourceError(f"nests more than {DEEPEST} elements deep")
        return super().handle_starttag(name, *args, **kwargs)

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        self._count()
        super().handle_endtag(name, nsprefix)

    def handle_data(self, data: str) -> None:
        self._count()
        super().handle_data(data)

    def _count(self) -> None:
        self.events += 1
        if self.events > MOST_EVENTS:
            raise SourceError(f"has more than {MOST_EVENTS} tags and runs of text")


class _Parser(BeautifulSoupHTMLParser):
    def handle_starttag(self, *args: Any, **kwargs: Any) -> None:
        super().handle_starttag(*args, **kwargs)
        # Every later end tag would look through all the <br>s that were noted here.
        self.already_closed_empty_element.clear()


class _Builder(HTMLParserTreeBuilder):
    """bs4's own, with the parser above."""

    def feed(
        self, markup: str | bytes, _parser_class: type[BeautifulSoupHTMLParser] = _Parser
    ) -> None:
        super().feed(markup, _parser_class)


_CODECS = re.compile(
    r"utf-?8|gb(2312|k|18030)|big5|shift_jis|euc-(jp|kr)|iso-8859-\d+|windows-125\d|koi8-[ru]"
)
"""What a page may declare: some of Python's other codecs are slow, or do not make text."""
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{2,20})", re.IGNORECASE)
_DECLARED_WITHIN = 4_096

LONGEST = 10_000_000
"""Characters of a page without its scripts; text and tags."""

MOST_IN_TAG = 5_000
"""Spaces, quotes and equal signs."""

_BOILERPLATE = (
    "head, title, template, nav, form, button, "
    " svg, canvas, iframe, dialog, footer, input, select, textarea, object, "
    "[hidden]:not([role=tabpanel]), [aria-hidden=true], [role=navigation], [role=search], "
    "a.headerlink, a.hash-link, a.anchor-link, .linenos"
)
_NOTE = re.compile(r"note|tip|hint|info|warning|caution|danger|important|admonition|callout")
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_UNSAID = re.compile(
    r"<(?:(?P<comment>!--)|(?P<other>[!?])|(?P<name>script|style|noscript)\b)", re.IGNORECASE
)
_ENDS = {
    "comment": re.compile("-->"),
    "other": re.compile(">"),
    "script": re.compile(r"</script[^>]*>", re.IGNORECASE),
    "style": re.compile(r"</style[^>]*>", re.IGNORECASE),
    "noscript": re.compile(r"</noscript[^>]*>", re.IGNORECASE),
}


def read_html(data: bytes) -> TextFile:
    """The page's content, and its `title`, `lang`, `canonical` link and named `<meta>` as values.

    Raises SourceError for a page that nests too deep or is too large to be one.
    """
    match = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    declared = match[1].decode("ascii").lower() if match else ""
    if declared.startswith("gb"):
        declared = "gb18030"  # which holds what pages mean by the others
    return html_page(decode(data, declared if _CODECS.fullmatch(declared) else None))


def html_page(html: str) -> TextFile:
    """As `read_html`, of text."""
    from ingestion.sources.formats.html_markdown import markdown_of

    tree = _tree(_said(html))
    values = dict(_values(tree))
    content = _content(tree)
    _strip(content)
    title = str(values.get("title", ""))
    heading = content.find("h1")
    if heading is not None and (short := _short_title(title, _line(heading))):
        values["title"] = short
    return TextFile(values, [PagePart(markdown_of(content))])


def _tree(html: str) -> "Tag":

    if len(html) > LONGEST or any(_is_endless(piece) for piece in html.split(">")):
        raise SourceError("is too large to be a page")
    try:
        return parse(html)
    except SourceError:
        raise
    except Exception as error:  # the parser's, of numbers and names that are none
        raise SourceError(f"not a readable page ({type(error).__name__})") from None


def _is_endless(piece: str) -> bool:
    """Whether a tag has more attributes than any: the parser looks at each again and again."""
    tag = piece[piece.find("<") :] if "<" in piece else ""
    return len(tag) > MOST_IN_TAG and sum(map(tag.count, " =\n\t\"'")) > MOST_IN_TAG


def _said(html: str) -> str:
    """`html` without comments, declarations, scripts and styles, in one pass: the parser's own way
    through those that are never closed takes time by the square of their number."""
    kept: list[str] = []
    position = 0
    while match := _UNSAID.search(html, position):
        kept.append(html[position : match.start()])
        kind = (match["name"] or match.lastgroup or "").lower()
        end = _ENDS[kind].search(html, match.end())
        position = end.end() if end else len(html)
    kept.append(html[position:])
    body, close, rest = "".join(kept).rpartition(">")
    return body + close + rest.replace("<", "&lt;")


def _values(tree: "Tag") -> Iterator[tuple[str, object]]:
    for meta in tree.find_all("meta", attrs={"name": True, "content": True}):
        yield str(meta["name"]).lower(), _spaced(str(meta["content"]))
    canonical = tree.select_one("link[rel=canonical][href^=http]")
    if canonical is not None:
        yield "canonical", str(canonical["href"]).strip()
    root = tree.find("html")
    if root is not None and root.get("lang"):
        yield "lang", str(root["lang"])
    title = tree.find("title")
    if title is not None and _line(title):
        yield "title", _line(title)


def _short_title(title: str, heading: str) -> str:
    """`heading` where the title is that with the site's name put before or after."""
    name = rf"(.+\s[|·•:»–—-]+\s+)?{re.escape(heading)}(\s+[|·•:«–—-]+\s.+)?"
    return heading if heading and re.fullmatch(name, title) else ""


def _content(tree: "Tag") -> "Tag":
    """The part of the page that is the page: what it says is its main part, or its one article."""
    main = tree.select_one("main, [role=main]") or tree
    articles = [a for a in main.find_all("article") if a.find_parent("article") is None]
    if len(articles) == 1 and len(articles[0].get_text()) * 2 > len(main.get_text()):
        return articles[0]
    return main if main is not tree else tree.find("body") or tree


def _strip(content: "Tag") -> None:
    """Take out what is there for a browser or leads elsewhere."""
    for form in content.find_all("form"):
        if form.find(_HEADINGS):  # some servers make the whole page one form
            form.name = "div"
    unwanted = [aside for aside in content.find_all("aside") if not _is_note(aside)]
    if content.name in ("body", "[document]"):
        headers = content.find_all("header")
        unwanted += [h for h in headers if not h.find_parent(["article", "section"])]
    for tag in [*unwanted, *content.select(_BOILERPLATE)]:
        if not tag.decomposed:
            tag.decompose()


def _is_note(aside: "Tag") -> bool:
    return bool(_NOTE.search(f"{aside.get('class')} {aside.get('role')}"))


def _line(tag: "Tag") -> str:
    return _spaced(tag.get_text())


def _spaced(text: str) -> str:
    return " ".join(text.replace("¶", " ").split())
