"""Finds the chrome of an HTML page: headers, footers and similar elements that a site repeats on each page.

Many sites mark chrome only with a class. The same words occur in the classes of the content, such as
`table-header` or `share-price`. An element is therefore chrome only if all of these are true:

- One of its classes contains a word of `_CHROME`, and otherwise only words of `_GENERIC`.
- It stands next to the content: its parent contains the heading of the page.
- It contains no heading, table, definition list or code, and no article or main element.
- If the word is one of `_AMBIGUOUS_WORDS`, at least half of the element's text is in links and buttons.
- If the word is "byline", the element has at most `MAX_BYLINE_CHARS` characters and states a date or
  contains a link. If the word is "updated", the element states only a date (see `_DATE_OF_CHANGE`).

Ids are ignored: generators make the id of a section, such as "share", from its heading.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set

from bs4 import Tag
from bs4.element import PageElement

_CHROME = frozenset(
    ["header", "footer", "breadcrumb", "breadcrumbs", "feedback", "toolbar", "copyright", "cookie",
     "cookies", "share", "sharing", "related", "byline", "updated", "lastupdated"]
)  # fmt: skip
_AMBIGUOUS_WORDS = frozenset(
    ["header", "toolbar", "cookie", "cookies", "share", "sharing", "related"]
)  # fmt: skip
"""Words that pages also use for content; see the docstring of this module."""
MAX_BYLINE_CHARS = 300
"""Maximum length of a note about the author of the page, in characters."""
_DATE = re.compile(r"(?<!\d)(?:(?:19|20)\d\d|\d{1,2}[/.]\d{1,2}[/.]\d\d)(?!\d)")
_DATE_OF_CHANGE = re.compile(
    r"(?:[\W_]|\d+(?:st|nd|rd|th|t|z)?|last|page|updated?|modified|changed|edited|reviewed|revised|on|at"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*+|am|pm|utc|gmt"
    r"|by (?-i:[A-Z][\w.-]*+ ?){1,4}+|[最后近上次更新修改编辑于时间日期年月]+)*+",
    re.IGNORECASE,
)
"""A text that says when the page was changed, and possibly by whom, and nothing else."""
_GENERIC = frozenset(
    ["app", "bar", "block", "box", "buttons", "consent", "container", "content", "doc", "docs", "global",
     "info", "inner", "last", "layout", "links", "list", "main", "notice", "page", "panel", "site", "top",
     "bottom", "web", "widget", "wrap", "wrapper"]
)  # fmt: skip
"""Words in class names that do not say what the element contains."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_MODIFIER = re.compile(r"(?<=[^_-])(?:__|--).*")
"""The part of a class after the name of a BEM block (`footer__links`), or the hash that CSS modules add."""
_ELEMENTS = ["div", "section", "ul", "ol"]
_CONTROLS = ["a", "button"]
_SUBHEADINGS = ["h2", "h3", "h4", "h5", "h6"]
_HEADINGS = ["h1", *_SUBHEADINGS]
_CONTENT = [*_HEADINGS, "table", "dl", "pre", "code", "article", "main"]


def site_chrome(content: Tag) -> Iterator[Tag]:
    """Yield the headers, footers and similar elements of the site in `content`.

    Yields nothing if the page has no heading, because the position of chrome is relative to the heading.
    Yields a header only if it stands before an `<h1>`, because the header of a page without `<h1>` may
    contain the title.
    """
    heading = content.find("h1") or content.find(_HEADINGS)
    if not isinstance(heading, Tag):
        return
    around = {id(tag) for tag in (heading, *heading.parents)}
    above = {id(tag) for tag in heading.find_all_previous(_ELEMENTS)}
    counts = _text_children(content)
    for tag in content.find_all(_ELEMENTS):
        word = _chrome_word(tag)
        if (
            not word
            or not _is_next_to_content(tag, around, counts)
            or tag.find(_CONTENT) is not None
        ):
            continue
        if word in _AMBIGUOUS_WORDS and not _is_mostly_controls(tag):
            continue
        if word in ("byline", "updated", "lastupdated") and not _is_note_about_page(tag, word):
            continue
        if word != "header" or (heading.name == "h1" and id(tag) in above):
            yield tag


def _chrome_word(tag: Tag) -> str:
    """Return the word for chrome in the classes of `tag`, such as "footer"; empty if there is none."""
    return next(filter(None, map(_word_of_name, tag.get("class") or ())), "")


def _word_of_name(name: str) -> str:
    words = [word.lower() for word in _WORD.findall(_MODIFIER.sub("", name))]
    specific = [word for word in words if word not in _GENERIC]
    return specific[0] if len(specific) == 1 and specific[0] in _CHROME else ""


def _text_children(content: Tag) -> Mapping[int, int]:
    """Return, for each element, its number of children that contain text outside links and buttons.

    The keys are Python object ids.
    """
    counts: Counter[int] = Counter()
    seen = {id(content)}
    for string in content.strings:
        node: PageElement = string
        while string.strip() and node.parent is not None and id(node) not in seen:
            seen.add(id(node))
            node = node.parent
            if isinstance(node, Tag) and node.name in _CONTROLS:
                break
            counts[id(node)] += 1
    return counts


def _is_next_to_content(tag: Tag, around: Set[int], counts: Mapping[int, int]) -> bool:
    """Return whether the parent of `tag` contains the heading of the page.

    Parents that contain only links and buttons outside `tag` are skipped. The result is false for an
    element directly after a subheading, because such an element is the content of the subheading's section.
    `around` contains the Python object ids of the page's heading and of its ancestors. `counts` is the
    result of `_text_children`.
    """
    if id(tag) in around:
        return False
    while tag.parent is not None and id(tag.parent) not in around and counts[id(tag.parent)] <= 1:
        tag = tag.parent
    before = tag.find_previous_sibling()
    return id(tag.parent) in around and not (before and before.name in _SUBHEADINGS)


def _is_mostly_controls(tag: Tag) -> bool:
    """Return whether at least half of the text is in links and buttons."""
    controls = sum(len(control.get_text(strip=True)) for control in tag.find_all(_CONTROLS))
    return controls * 2 >= len(tag.get_text(strip=True))


def _is_note_about_page(tag: Tag, word: str) -> bool:
    """Return whether an element is a short byline or, for other words than "byline", only a date."""
    text = tag.get_text(" ", strip=True)
    has_date = _DATE.search(text) is not None
    if word == "byline":
        return len(text) <= MAX_BYLINE_CHARS and (has_date or tag.find("a") is not None)
    return has_date and _DATE_OF_CHANGE.fullmatch(text) is not None
