"""A reply of Tavily's becomes chunks: cleaned, each page once, cut as a document's sections are."""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from ingestion.chunking import chunk_document
from ingestion.text.language import detect_language, estimate_tokens
from ingestion.text.markdown_blocks import parse_blocks
from runnables.retrieval.rerankers import truncate_to_tokens
from schemas.document import RetrievedChunk, Section, SourceDocument

SOURCE = "web"
"""The source of all these chunks; their metadata have `web`, too, which callers see."""

MOST_RESULTS = 20
"""Tavily sends no more."""

MOST_OF_ONE = 4_000
"""Characters of one page's content, however much is sent."""

LONGEST_TITLE = 200
LONGEST_URL = 2_000

_URL = re.compile(r"https?://[^\s<>\"`\\]+", re.IGNORECASE)
"""Without quotes and angle brackets, which would end an attribute in HTML or a link as `<…>`."""

_GAP = re.compile(r"\s*\[(?:\.{3}|…)\]\s*")
"""What stands between two passages of a page."""

_STOPS = "\n 。！？；，、"
_SENTENCE = re.compile(r"(?<=[。！？；\n])|(?<=[.!?])(?=\s)")
"""Between two sentences, of which nothing is lost: joined, they are the text again."""


@dataclass(frozen=True)
class WebPage:
    """A page that was found, cleaned: what Tavily quotes of it, and how relevant it finds that."""

    url: str
    title: str
    content: str
    score: float


def found_pages(reply: object, domains: tuple[str, ...]) -> list[WebPage]:
    """The pages of a reply, in its order, each once; those without link or content are left out.

    Raises TypeError for a reply that lists none.
    """
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list):
        raise TypeError("no list of results")
    pages: dict[str, WebPage] = {}
    for result in results[:MOST_RESULTS]:
        page = _page(result) if isinstance(result, dict) else None
        if page is not None and _within(page.url, domains):
            known = pages.get(page.url)
            pages[page.url] = _merged(known, page) if known else page
    return list(pages.values())


def _page(result: dict[str, Any]) -> WebPage | None:
    """The page of one result; None where nothing could be cited."""
    url, content = result.get("url"), _clean(result.get("content"))
    if not isinstance(url, str) or not _is_link(url) or not content:
        return None
    title = " ".join(_clean(result.get("title")).split())[:LONGEST_TITLE]
    return WebPage(url, title or httpx.URL(url).host, content, _score(result.get("score")))


def _merged(known: WebPage, again: WebPage) -> WebPage:
    """One page that came twice: all that was quoted of it, with the better score."""
    new = "" if again.content in known.content else f"\n\n{again.content}"
    return WebPage(known.url, known.title, known.content + new, max(known.score, again.score))


def _is_link(url: str) -> bool:
    """Whether `url` may be shown to be clicked at."""
    if len(url) > LONGEST_URL or not url.isprintable() or not _URL.fullmatch(url):
        return False
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return bool(parsed.host) and not parsed.userinfo


def _within(url: str, domains: tuple[str, ...]) -> bool:
    """Whether the page lies in one of `domains`, or there are none; Tavily takes `*.` and paths, too."""
    host = httpx.URL(url).host
    hosts = (re.sub(r"^https?://|^\*\.|/.*$", "", domain) for domain in domains)
    return not domains or any(f".{host}".endswith(f".{each}") for each in hosts)


def _clean(value: object) -> str:
    """Text without entities and without characters that nobody sees, which could hide orders."""
    if not isinstance(value, str):
        return ""
    lines = html.unescape(value[: 4 * MOST_OF_ONE]).splitlines()
    return "\n".join(
        "".join(c for c in line if c == "\t" or unicodedata.category(c)[0] != "C") for line in lines
    ).strip()


def _score(value: object) -> float:
    """Tavily's score; 0 where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if -1e9 < value < 1e9 else 0.0  # NaN lies nowhere


def page_chunks(page: WebPage, tokens: int) -> list[RetrievedChunk]:
    """The page as a document's chunks of about `tokens`, each with the page's score."""
    bodies = list(_bodies(_beginning(_GAP.sub("\n\n", page.content)), tokens))
    document = SourceDocument(
        id=page.url,
        source=SOURCE,
        title=page.title,
        language=detect_language(page.title + page.content),
        page_url=page.url,
        metadata={"web": "true"},
        sections=tuple(Section(kind="prose", heading=(), body=body) for body in bodies),
    )
    return [RetrievedChunk(chunk=c, score=page.score) for c in chunk_document(document, tokens)]


def _beginning(text: str) -> str:
    """`text`, or its beginning without the word or sentence that the end would cut."""
    if len(text) <= MOST_OF_ONE:
        return text
    kept = text[:MOST_OF_ONE]
    return kept[: max(map(kept.rfind, _STOPS)) + 1].strip() or kept


def _bodies(markdown: str, tokens: int) -> Iterator[str]:
    """Blocks put together as far as they are worth at most `tokens`."""
    body: list[str] = []
    size = 0
    for block in _blocks(markdown, tokens):
        weight = estimate_tokens(block) + 1  # with the empty line before it
        if body and size + weight > tokens:
            yield "\n\n".join(body)
            body, size = [], 0
        body.append(block)
        size += weight
    yield "\n\n".join(body)


def _blocks(markdown: str, tokens: int) -> Iterator[str]:
    """Blocks of at most `tokens`: what a search finds comes as one long paragraph. Code stays whole."""
    for block in parse_blocks(markdown):
        if block.kind in ("table", "fence") or estimate_tokens(block.text) <= tokens:
            yield block.text
        else:
            yield from _runs(block.text, tokens)


def _runs(text: str, tokens: int) -> Iterator[str]:
    """`text` in runs of whole sentences, each worth at most `tokens`."""
    run, size = "", 0
    for piece in (part for each in _SENTENCE.split(text) for part in _cut(each, tokens)):
        weight = estimate_tokens(piece)
        if run.strip() and size + weight > tokens:
            yield run.strip()
            run, size = "", 0
        run += piece
        size += weight
    if run.strip():
        yield run.strip()


def _cut(sentence: str, tokens: int) -> Iterator[str]:
    """`sentence`, or where it is too long its parts, cut at spaces where there are some."""
    while estimate_tokens(sentence) > tokens:
        part = truncate_to_tokens(sentence, tokens)
        part = part[: part.rfind(" ") + 1] or part
        yield part
        sentence = sentence[len(part) :]
    yield sentence
