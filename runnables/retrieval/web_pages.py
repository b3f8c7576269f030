"""Conversion of web search results to chunks: cleaning, deduplication by page, and splitting."""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from ingestion.chunking import chunk_document
from ingestion.text.language import detect_language, estimate_tokens, truncate_to_tokens
from ingestion.text.markdown_blocks import parse_blocks
from runnables.retrieval.compressors import finite_float
from schemas.document import RetrievedChunk, Section, SourceDocument

SOURCE = "web"
"""Name of the source of all chunks from the web. Their metadata also contains `"web": "true"`."""

MAX_RESULTS = 20
"""Maximum number of results that are read, which is also Tavily's maximum."""

MAX_CONTENT_CHARS = 4_000
"""Maximum length of a page's content, in characters; the rest is dropped."""

MAX_TITLE_CHARS = 200
MAX_URL_CHARS = 2_000

_URL = re.compile(r"https?://[^\s<>\"`\\]+", re.IGNORECASE)
"""A URL without white space and other characters that could end a link or a quoted HTML attribute."""

_PASSAGE_SEPARATOR = re.compile(r"\s*\[(?:\.{3}|…)\]\s*")
"""The separator that Tavily puts between two passages of a page."""

_BREAK_CHARS = "\n 。！？；，、"
_SENTENCE_BOUNDARY = re.compile(r"(?<=[。！？；\n])|(?<=[.!?])(?=\s)")
"""Matches empty strings only, so that no character is lost when a text is split into sentences."""


@dataclass(frozen=True)
class WebPage:
    """A page of the search results, cleaned."""

    url: str
    title: str
    content: str
    """The passages that Tavily quotes."""
    score: float
    """Relevance according to Tavily."""


def parse_pages(reply: object, domains: tuple[str, ...]) -> list[WebPage]:
    """Return the pages in a reply, in order and without duplicates.

    Pages outside `domains` and pages without a valid link or content are dropped. Raises TypeError if
    the reply contains no list of results.
    """
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list):
        raise TypeError("no list of results")
    pages: dict[str, WebPage] = {}
    for result in results[:MAX_RESULTS]:
        page = _parse_page(result) if isinstance(result, dict) else None
        if page is not None and _is_in_domains(page.url, domains):
            known = pages.get(page.url)
            pages[page.url] = _merge(known, page) if known else page
    return list(pages.values())


def _parse_page(result: dict[str, Any]) -> WebPage | None:
    """Return the page of a result; None if the result has no safe link or no content."""
    url, content = result.get("url"), _clean(result.get("content"))
    if not isinstance(url, str) or not _is_safe_link(url) or not content:
        return None
    title = " ".join(_clean(result.get("title")).split())[:MAX_TITLE_CHARS]
    return WebPage(
        url, title or httpx.URL(url).host, content, finite_float(result.get("score")) or 0.0
    )


def _merge(page: WebPage, duplicate: WebPage) -> WebPage:
    """Return one page with the passages of both pages and the better score."""
    added = "" if duplicate.content in page.content else f"\n\n{duplicate.content}"
    return WebPage(page.url, page.title, page.content + added, max(page.score, duplicate.score))


def _is_safe_link(url: str) -> bool:
    """Return whether `url` may be shown as a link."""
    if len(url) > MAX_URL_CHARS or not url.isprintable() or not _URL.fullmatch(url):
        return False
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return bool(parsed.host) and not parsed.userinfo


def _is_in_domains(url: str, domains: tuple[str, ...]) -> bool:
    """Return whether `url` is in one of `domains`; true if `domains` is empty.

    As in Tavily's API, a domain may begin with `*.`. A path after the domain is ignored.
    """
    host = httpx.URL(url).host
    hosts = (re.sub(r"^https?://|^\*\.|/.*$", "", domain) for domain in domains)
    return not domains or any(f".{host}".endswith(f".{allowed}") for allowed in hosts)


def _clean(value: object) -> str:
    """Return `value` without invisible characters, which could hide instructions to the model.

    HTML entities are decoded, and the text is truncated. The result is empty if `value` is not text.
    """
    if not isinstance(value, str):
        return ""
    lines = html.unescape(value[: 4 * MAX_CONTENT_CHARS]).splitlines()
    return "\n".join(
        "".join(
            character
            for character in line
            if character == "\t" or unicodedata.category(character)[0] != "C"
        )
        for line in lines
    ).strip()


def chunk_page(page: WebPage, max_tokens: int) -> list[RetrievedChunk]:
    """Split the page into chunks of about `max_tokens` tokens, which all have the score of the page."""
    content = _truncate(_PASSAGE_SEPARATOR.sub("\n\n", page.content))
    blocks = tuple(_blocks(content, max_tokens))
    document = SourceDocument(
        id=page.url,
        source=SOURCE,
        title=page.title,
        language=detect_language(page.title + page.content),
        page_url=page.url,
        metadata={"web": "true"},
        sections=(Section(kind="prose", heading=(), body=content, blocks=blocks),),
    )
    chunks = chunk_document(document, max_tokens)
    return [RetrievedChunk(chunk=chunk, score=page.score) for chunk in chunks]


def _truncate(text: str) -> str:
    """Truncate `text` to `MAX_CONTENT_CHARS`, at the end of a sentence or word if possible."""
    if len(text) <= MAX_CONTENT_CHARS:
        return text
    truncated = text[:MAX_CONTENT_CHARS]
    end = max(map(truncated.rfind, _BREAK_CHARS)) + 1
    return truncated[:end].strip() or truncated


def _blocks(markdown: str, max_tokens: int) -> Iterator[str]:
    """Yield Markdown blocks of at most `max_tokens` tokens. Tables and code are never split."""
    for block in parse_blocks(markdown):
        if block.kind in ("table", "fence") or estimate_tokens(block.text) <= max_tokens:
            yield block.text
        else:
            yield from _split_prose(block.text, max_tokens)


def _split_prose(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` into parts of at most `max_tokens` tokens, at the ends of sentences if possible."""
    part, size = "", 0
    sentences = _SENTENCE_BOUNDARY.split(text)
    pieces = (piece for sentence in sentences for piece in _split_sentence(sentence, max_tokens))
    for piece in pieces:
        tokens = estimate_tokens(piece)
        if part.strip() and size + tokens > max_tokens:
            yield part.strip()
            part, size = "", 0
        part += piece
        size += tokens
    if part.strip():
        yield part.strip()


def _split_sentence(sentence: str, max_tokens: int) -> Iterator[str]:
    """Split `sentence` into parts of at most `max_tokens` tokens, at spaces if possible."""
    while estimate_tokens(sentence) > max_tokens:
        part = truncate_to_tokens(sentence, max_tokens)
        part = part[: part.rfind(" ") + 1] or part
        yield part
        sentence = sentence[len(part) :]
    yield sentence
