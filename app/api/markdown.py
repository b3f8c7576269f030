"""Renders an answer as Markdown, with its sources as links at the end."""

import re
from collections.abc import Iterable, Iterator

from prompts.user_text import user_text
from schemas.answer import Answer, Source

_SPECIAL = re.compile(r"([\\`*_\[\]<])")
_URL_ESCAPES = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def render_markdown(answer: Answer) -> str:
    """Return the steps as paragraphs, followed by links to the sources or to the nearest pages."""
    return join_paragraphs([*answer.answer, *link_lists(answer)])


def source_link(source: Source) -> str:
    """Return a link to the page of a source, or only the name of the source if it has no page."""
    return _link(source_name(source), source.page_url)


def source_name(source: Source) -> str:
    """Return the document and section of a source."""
    return " > ".join(filter(None, [source.title, source.section]))


def link_lists(answer: Answer) -> Iterator[str]:
    """Yield a list of the sources and a list of the nearest pages; empty lists are omitted."""
    labels = user_text(answer.language).answer
    if answer.sources:
        links = (f"[{source.number}] {source_link(source)}" for source in answer.sources)
        yield _list(labels.sources, links)
    if answer.nearest:
        yield _list(labels.nearest, (_link(page.title, page.page_url) for page in answer.nearest))


def _list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([list_heading(title), *(f"- {line}" for line in lines)])


def list_heading(text: str) -> str:
    """Return the heading of a list, with a blank line after it."""
    return f"**{text}**\n"


def _link(name: str, url: str) -> str:
    name = _SPECIAL.sub(r"\\\1", name)
    return f"[{name}]({url.translate(_URL_ESCAPES)})" if url else name


def join_paragraphs(texts: Iterable[str]) -> str:
    """Join the texts with blank lines."""
    return "\n\n".join(texts)
