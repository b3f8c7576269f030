"""Finds the elements around the content of an HTML page that repeat on each page of a site.

Many sites mark the header, the footer and similar elements only with a class or an id. The same words occur
in names within the content, such as `table-header` or `share-price`. An element is therefore chrome only if
its name has no other specific word, and if it stands next to the content: its parent contains the heading
of the page, and the element itself no heading, table or code.
"""

import re
from collections.abc import Iterator, Set
from itertools import chain

from bs4 import Tag

_CHROME = frozenset(
    ["header", "footer", "breadcrumb", "breadcrumbs", "feedback", "toolbar", "copyright", "cookie",
     "cookies", "share", "sharing", "related"]
)  # fmt: skip
_GENERIC = frozenset(
    ["app", "bar", "block", "box", "buttons", "consent", "container", "content", "doc", "docs", "global",
     "info", "inner", "layout", "links", "list", "main", "notice", "page", "panel", "site", "top", "bottom",
     "web", "widget", "wrap", "wrapper"]
)  # fmt: skip
"""Words in names that do not say what the element contains."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_MODIFIER = re.compile(r"(?<=[^_-])(?:__|--).*")
"""The part after the name of a block in BEM, or the hash that CSS modules add to a name."""
_ELEMENTS = ["div", "section", "ul", "ol"]
_SUBHEADINGS = ["h2", "h3", "h4", "h5", "h6"]
_HEADINGS = ["h1", *_SUBHEADINGS]
_CONTENT = [*_HEADINGS, "table", "pre", "article", "main"]


def site_chrome(content: Tag) -> Iterator[Tag]:
    """Yield the headers, footers and similar elements of the site in `content`.

    There are none if the page has no heading, because they are recognised by their position next to it. A
    header stands before an `<h1>`: without one, the header may contain the title.
    """
    heading = content.find("h1") or content.find(_HEADINGS)
    if not isinstance(heading, Tag):
        return
    around = {id(tag) for tag in (heading, *heading.parents)}
    above = {id(tag) for tag in heading.find_all_previous(_ELEMENTS)}
    for tag in content.find_all(_ELEMENTS):
        word = _chrome_word(tag)
        if not word or not _is_beside(tag, around) or tag.find(_CONTENT) is not None:
            continue
        if word != "header" or (heading.name == "h1" and id(tag) in above):
            yield tag


def _chrome_word(tag: Tag) -> str:
    """Return the word for chrome in the classes and the id of `tag`, such as "footer"; empty if none."""
    names = [*(tag.get("class") or ()), str(tag.get("id", ""))]
    return next(filter(None, map(_word_of_name, names)), "")


def _word_of_name(name: str) -> str:
    words = [word.lower() for word in _WORD.findall(_MODIFIER.sub("", name))]
    specific = [word for word in words if word not in _GENERIC]
    return specific[0] if len(specific) == 1 and specific[0] in _CHROME else ""


def _is_beside(tag: Tag, around: Set[int]) -> bool:
    """Return whether `tag` stands next to the content, possibly in elements that contain nothing else.

    An element right below a subheading is the content of that section.
    """
    if id(tag) in around:
        return False
    while tag.parent is not None and id(tag.parent) not in around and _is_alone(tag):
        tag = tag.parent
    before = tag.find_previous_sibling()
    return id(tag.parent) in around and not (before and before.name in _SUBHEADINGS)


def _is_alone(tag: Tag) -> bool:
    """Return whether the parent of `tag` contains no other text."""
    siblings = chain(tag.previous_siblings, tag.next_siblings)
    return not any(sibling.get_text().strip() for sibling in siblings)
