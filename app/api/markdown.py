"""An answer as Markdown, with its sources as links at the end."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from schemas.answer import Answer, Source
from schemas.choices import Language


class AnswerLabels(NamedTuple):
    """What stands over the lists."""

    sources: str
    nearest: str


WORDS: dict[Language, AnswerLabels] = {
    "zh": AnswerLabels("依据", "可能有用的页面"),
    "en": AnswerLabels("Sources", "Pages that may help"),
}

_SPECIAL = re.compile(r"([\\`*_\[\]<])")
_URL_ESCAPES = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def markdown(answer: Answer) -> str:
    """The steps, a paragraph each, then the sources or the nearest pages as links."""
    return paragraphs([*answer.answer, *lists(answer)])


def source_link(source: Source) -> str:
    """A link to the page of a source, or its name where it has none."""
    return _link(source_name(source), source.page_url)


def source_name(source: Source) -> str:
    """Its document and section."""
    return " > ".join(filter(None, [source.title, source.section]))


def lists(answer: Answer) -> Iterator[str]:
    """What stands at the end: the sources, or the nearest pages."""
    words = WORDS[answer.language]
    if answer.sources:
        yield _list(words.sources, (f"[{s.number}] {source_link(s)}" for s in answer.sources))
    if answer.nearest:
        yield _list(words.nearest, (_link(page.title, page.page_url) for page in answer.nearest))


def _list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([heading(title), *(f"- {line}" for line in lines)])


def heading(text: str) -> str:
    """What stands over a list."""
    return f"**{text}**\n"


def _link(name: str, url: str) -> str:
    name = _SPECIAL.sub(r"\\\1", name)
    return f"[{name}]({url.translate(_URL_ESCAPES)})" if url else name


def paragraphs(texts: Iterable[str]) -> str:
    """The texts, each apart from the next."""
    return "\n\n".join(texts)
