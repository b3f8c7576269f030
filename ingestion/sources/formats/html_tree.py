"""Parses HTML into a tree of bounded size and depth, closing tags whose end tags are optional."""

from types import MappingProxyType
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from schemas.errors import SourceError

MAX_DEPTH = 100
"""Levels of nested elements; a typical page has about twenty."""

MAX_EVENTS = 200_000
"""Start tags, end tags and text nodes; a long single-page reference has fifty thousand."""

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
"""Element -> start tags that implicitly close it."""


def parse_html(html: str) -> Tag:
    """Return the tree of `html`. Raises SourceError when it is too deep or too large."""
    return _BoundedSoup(html, builder=_TreeBuilder())


class _BoundedSoup(BeautifulSoup):
    """A BeautifulSoup that limits its size while it parses."""

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
    def handle_starttag(self, *args: Any, **kwargs: Any) -> None:
        super().handle_starttag(*args, **kwargs)
        # bs4 records every <br> here and searches the list at each end tag: quadratic time.
        self.already_closed_empty_element.clear()


class _TreeBuilder(HTMLParserTreeBuilder):
    """The tree builder of bs4, with the parser above."""

    def feed(
        self, markup: str | bytes, _parser_class: type[BeautifulSoupHTMLParser] = _Parser
    ) -> None:
        super().feed(markup, _parser_class)
