"""Renders an answer as Markdown.

If the answer is doubtful, the text starts with a note on the doubts. It ends with links to the sources and
to pages that may help, if there are any.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from prompts.user_text import AnswerText, user_text
from schemas.answer import Answer, Source

_SPECIAL = re.compile(r"([\\`*_\[\]<])")
_URL_ESCAPES = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def render_markdown(answer: Answer) -> str:
    """Return the note of `doubt_notes`, if any, the steps of the answer, and the lists of `link_lists`."""
    return join_paragraphs([*doubt_notes(answer), *answer.answer, *link_lists(answer)])


def doubt_notes(answer: Answer) -> Iterator[str]:
    """Yield a note that says why the answer is doubtful, or nothing if it is not doubtful.

    The note does not mention the confidence if the answer makes no statements, as in a refusal.
    """
    labels = user_text(answer.language).answer
    makes_statements = bool(answer.sources or answer.unsupported)
    doubt = labels.doubt.get(answer.confidence) if makes_statements else None
    sentences = [*([doubt] if doubt else []), *warning_sentences(answer)]
    if sentences:
        yield note_start(labels) + "  \n> ".join(sentences)


def note_start(labels: AnswerText) -> str:
    """Return the text with which a note on doubts starts."""
    return f"> **{labels.note}** "


def warning_sentences(answer: Answer) -> Iterator[str]:
    """Yield a sentence for each of the fields `unverified`, `unsupported` and `degraded` that is set."""
    texts = user_text(answer.language)
    if answer.unverified:
        yield texts.answer.unverified.format(facts=", ".join(answer.unverified))
    if answer.unsupported:
        yield texts.answer.unsupported.format(steps=", ".join(map(str, answer.unsupported)))
    if answer.degraded:
        yield texts.answer.degraded.format(reason=texts.degraded_sentence(answer.degraded))


def sources_by_number(answer: Answer) -> list[list[Source]]:
    """Return the sources of `answer`, grouped by number.

    Sources share a number only in the OpenAI-compatible API, which numbers them by page.
    """
    return [list(sources) for _, sources in groupby(answer.sources, attrgetter("number"))]


def source_link(sources: Sequence[Source]) -> str:
    """Return a link to the page that all `sources` belong to, or only their names if there is no page."""
    return _link(source_name(sources), sources[0].page_url)


def source_name(sources: Sequence[Source]) -> str:
    """Return a name for `sources`, which are all on one page, such as "Ship an Order > Parameters, Errors".

    The name consists of the titles of the documents, each with its cited sections.
    """
    sections: dict[str, list[str]] = {}
    for source in sources:
        sections.setdefault(source.title, []).append(source.section)
    return "; ".join(
        " > ".join(filter(None, [title, ", ".join(filter(None, dict.fromkeys(names)))]))
        for title, names in sections.items()
    )


def link_lists(answer: Answer) -> Iterator[str]:
    """Yield a list of the sources and a list of the pages that may help; empty lists are omitted."""
    labels = user_text(answer.language).answer
    if answer.sources:
        pages = sources_by_number(answer)
        links = (f"[{sources[0].number}] {source_link(sources)}" for sources in pages)
        yield _list(labels.sources, links)
    if answer.nearest:
        yield _list(labels.nearest, (_link(page.title, page.page_url) for page in answer.nearest))


def _list(title: str, lines: Iterable[str]) -> str:
    return "\n".join([list_heading(title), *(f"- {line}" for line in lines)])


def list_heading(text: str) -> str:
    """Return `text` as the heading of a list, followed by a line break."""
    return f"**{text}**\n"


def _link(name: str, url: str) -> str:
    name = escape_markdown(name)
    return f"[{name}]({url.translate(_URL_ESCAPES)})" if url else name


def escape_markdown(text: str) -> str:
    """Return `text` with its code spans, emphasis, links and HTML tags escaped by backslashes."""
    return _SPECIAL.sub(r"\\\1", text)


def join_paragraphs(texts: Iterable[str]) -> str:
    """Join the texts with blank lines."""
    return "\n\n".join(texts)
