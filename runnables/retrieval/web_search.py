"""Web search with Tavily. Its results are appended to the retrieved chunks.

It uses the optional dependency `tavily-python`, which accepts an httpx client. That httpx client sets the
base URL and TLS settings, and does not follow redirects. langchain-tavily is not used, because its HTTP
client, aiohttp, follows redirects.

Results are cleaned, deduplicated by page, and split into chunks.
"""

import html
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict

import httpx
from langchain_core.runnables import RunnableConfig
from pydantic import SecretStr

from ingestion.chunking import chunk_document
from ingestion.text.language import detect_language, estimate_tokens, truncate_to_tokens
from ingestion.text.markdown_blocks import parse_blocks
from ingestion.text.sentences import split_sentences
from runnables.question.extract_details import details_of
from runnables.retrieval.compressors import finite_float
from runnables.run_context import NamedStep, child_config, deadline_timeout, with_deadline
from runnables.state import PipelineState, StateFunction
from schemas.document import RetrievedChunk, Section, SourceDocument
from schemas.errors import ConfigurationError
from schemas.question import Filters, Question
from schemas.settings import Settings

RUN_NAME = "web"
WEB_SEARCH_SETTING = "APIDESK_WEB_SEARCH=tavily"
DEFAULT_BASE_URL = "https://api.tavily.com"

MAX_QUERY_CHARS = 400
"""Maximum length of a query, in characters; Tavily rejects longer ones."""

_REFUSALS = {
    "InvalidAPIKeyError": "Tavily refuses the key; check APIDESK_WEB_API_KEY",  # 401
    # 403, 432 or 433
    "ForbiddenError": "the plan or limit of the key does not allow the request; see Tavily's dashboard",
    "UsageLimitExceededError": "too many requests with this key",  # 429
    "BadRequestError": "Tavily refuses the request; check APIDESK_WEB_DOMAINS",  # 400
}
"""Error messages by the class name of the exception that Tavily's client raises for an HTTP status."""

log = logging.getLogger(__name__)


class WebSearchOutput(TypedDict):
    """Output of a search, as traces show it."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why the search failed; None if it succeeded, with or without results."""


class WebSearch:
    """Searches the web once per question, without retries."""

    def __init__(self, settings: Settings, make_client: Callable[..., Any]) -> None:
        """Read `settings`. `make_client` creates a Tavily client from a key and an httpx client.

        Raises ConfigurationError if the key is missing or invalid, or if the base URL is invalid.
        """
        self._make_client = make_client
        self._key = _require_key(settings.web_api_key)
        self._base_url = _parse_base_url(settings.web_base_url or DEFAULT_BASE_URL)
        self._max_results = settings.web_results
        self._domains = settings.web_domains
        self._timeout_s = settings.web_timeout
        self._chunk_tokens = settings.chunk_tokens
        self._tls = httpx.create_ssl_context()  # slow, so it is created once
        self._step = NamedStep(self._run, RUN_NAME)

    async def search(self, question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        """Return chunks of the pages found for `question`, best page first. Never raises.

        The result is empty if the search fails, or if the question has filters, because filters select
        documents of the collection.
        """
        query = details_of(question).search_query[:MAX_QUERY_CHARS].strip()
        if not query or question.filters != Filters():
            return []
        output = await self._step.ainvoke(query, child_config(config, RUN_NAME))
        return output["chunks"]

    async def _run(self, query: str, config: RunnableConfig) -> WebSearchOutput:
        try:
            async with deadline_timeout(with_deadline(config, self._timeout_s)):
                reply = await self._request(query)
            pages = parse_pages(reply, self._domains)[: self._max_results]
            chunks = [chunk for page in pages for chunk in chunk_page(page, self._chunk_tokens)]
            return WebSearchOutput(chunks=chunks, skipped=None)
        except Exception as error:  # the documents may suffice for an answer
            reason = _failure_reason(error)
            log.warning("%s: answering from the documents alone: %s", WEB_SEARCH_SETTING, reason)
            return WebSearchOutput(chunks=[], skipped=reason)

    async def _request(self, query: str) -> object:
        # One client per request, because a shared client is bound to one event loop and has to be closed.
        # It uses the proxy in the environment, like the clients of model providers.
        http = httpx.AsyncClient(base_url=self._base_url, verify=self._tls, follow_redirects=False)
        async with http:
            tavily = self._make_client(api_key=self._key.get_secret_value(), client=http)
            reply: object = await tavily.search(
                query,
                search_depth="basic",
                max_results=self._max_results,
                include_domains=self._domains or None,
            )
        return reply


def open_web_search(settings: Settings) -> WebSearch | None:
    """Return the web search, or None if `settings` do not enable it.

    Raises ConfigurationError if the package or a valid key is missing, or if the URL is invalid.
    """
    if settings.web_search is None:
        return None
    try:
        make_client = import_module("tavily").AsyncTavilyClient
    except ImportError:
        command = "pip install 'apidesk[tavily]'"
        raise ConfigurationError(f"{WEB_SEARCH_SETTING} needs a package: {command}") from None
    return WebSearch(settings, make_client)


def build_web_search(web_search: WebSearch) -> StateFunction:
    """Return the function that appends the chunks of web pages to the chunks of the state."""

    async def search(state: PipelineState, config: RunnableConfig) -> PipelineState:
        results = await web_search.search(state["question"], config)
        return {**state, "chunks": [*state["chunks"], *results]}

    return search


# --- settings -------------------------------------------------------------------------------------


def _require_key(key: SecretStr | None) -> SecretStr:
    """Return the key, which must be valid in a header.

    Raises ConfigurationError, without the key in the message.
    """
    secret = key.get_secret_value().strip() if key else ""
    if not secret:
        raise ConfigurationError(
            f"{WEB_SEARCH_SETTING} needs APIDESK_WEB_API_KEY or TAVILY_API_KEY"
        )
    if not re.fullmatch("[!-~]+", secret):
        raise ConfigurationError(
            "APIDESK_WEB_API_KEY: contains a space or a character that is not printable ASCII"
        )
    return SecretStr(secret)


def _parse_base_url(address: str) -> httpx.URL:
    """Return `address` as a URL, which must not contain credentials.

    Raises ConfigurationError, without the address in the message.
    """
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ConfigurationError(
            "APIDESK_WEB_BASE_URL: must be a URL without credentials that begins with http:// or https://"
        )
    return url


# --- failures -------------------------------------------------------------------------------------


def _failure_reason(error: Exception) -> str:
    """Return why a search failed, without text of the request or reply, which may contain the key."""
    name = type(error).__name__
    if "Timeout" in name:
        return "no answer in time; check APIDESK_WEB_TIMEOUT"
    if isinstance(error, httpx.HTTPStatusError):
        return f"the server answers {error.response.status_code}"
    if isinstance(error, httpx.HTTPError | OSError):
        return f"the server cannot be reached ({name}); check APIDESK_WEB_BASE_URL"
    return _REFUSALS.get(name, f"the server's answer cannot be used ({name})")


# --- pages ----------------------------------------------------------------------------------------

WEB_SOURCE = "web"
"""Name of the source of all chunks from the web. Their metadata also contains `"web": "true"`."""

MAX_RESULTS = 20
"""Maximum number of results that are read, which is also Tavily's maximum."""

MAX_CONTENT_CHARS = 4_000
"""Maximum length of a page's content, in characters; the rest is dropped."""

MAX_TITLE_CHARS = 200
MAX_URL_CHARS = 2_000

_URL = re.compile(r"https?://[^\s<>\"`\\]+", re.IGNORECASE)

_PASSAGE_SEPARATOR = re.compile(r"\s*\[(?:\.{3}|…)\]\s*")
"""The separator that Tavily puts between two passages of a page."""

_BREAK_CHARS = "\n 。！？；，、"


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
    """Return the pages in a reply, in Tavily's order and without duplicates.

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

    A domain includes its subdomains. As in Tavily's API, a domain may also be written as `*.example.com` or
    `https://example.com/path`.
    """
    host = httpx.URL(url).host
    hosts = (re.sub(r"^(https?://)?(\*\.)?|/.*$", "", domain) for domain in domains)
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
        source=WEB_SOURCE,
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
    """Yield the blocks of `markdown`.

    Tables and fenced code stay whole. Other blocks are split into parts of at most `max_tokens` tokens.
    """
    for block in parse_blocks(markdown):
        if block.kind in ("table", "fence") or estimate_tokens(block.text) <= max_tokens:
            yield block.text
        else:
            yield from _split_prose(block.text, max_tokens)


def _split_prose(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` into parts of at most `max_tokens` tokens, at the ends of sentences if possible."""
    part, size = "", 0
    sentences = (sentence for line in text.splitlines(True) for sentence in split_sentences(line))
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
