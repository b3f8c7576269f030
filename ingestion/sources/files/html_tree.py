"""HTML -> a tree of bounded size and depth, with the end tags that HTML lets authors leave out."""

from types import MappingProxyType
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from schemas.errors import SourceError

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
