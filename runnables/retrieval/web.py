"""The web as a source: what Tavily finds for a question, in chunks behind those of the documents.

Through `tavily-python`, an extra: it takes an httpx client of ours, and with that an address, a deadline
and TLS. langchain-tavily takes no time limit, and aiohttp, which is behind it, follows redirects.
"""

import asyncio
import html
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict

import httpx
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import SecretStr

from ingestion.chunking import chunk_document
from ingestion.language import detect_language, estimate_tokens
from ingestion.markdown_blocks import parse_blocks
from runnables.deadline import remaining, with_deadline
from runnables.question.pasted import search_query
from runnables.retrieval.rerank_text import cut
from runnables.state import Evidence
from runnables.steps import child, step
from schemas.document import RetrievedChunk, Section, SourceDocument
from schemas.errors import ConfigurationError
from schemas.question import Filters, Question
from schemas.settings import Settings

SOURCE = "web"
"""The source of all these chunks; their metadata have `web`, too, which callers see."""

NAME = "web/tavily"
SETTING = "APIDESK_WEB_SEARCH=tavily"
ADDRESS = "https://api.tavily.com"

LONGEST_QUERY = 400
"""Characters; Tavily refuses a longer query."""

MOST_RESULTS = 20
"""Tavily sends no more."""

MOST_OF_ONE = 4_000
"""Characters of one page's content, however much is sent."""

LONGEST_TITLE = 200
LONGEST_URL = 2_000

_URL = re.compile(r"https?://[^\s<>\"`\\]+", re.IGNORECASE)
_GAP = re.compile(r"\s*\[(?:\.{3}|…)\]\s*")
"""What stands between two passages of a page."""
_STOPS = "\n 。！？；，、"
_SENTENCE = re.compile(r"(?<=[。！？；\n])|(?<=[.!?])(?=\s)")

_REFUSALS = {
    "InvalidAPIKeyError": "Tavily refuses the key; check APIDESK_WEB_API_KEY",
    "ForbiddenError": "the key's plan or its limit does not allow it; see Tavily's dashboard",
    "UsageLimitExceededError": "too many requests with this key",
    "BadRequestError": "Tavily refuses the request; check APIDESK_WEB_DOMAINS",
}
"""Of 401; 403, 432 and 433; 429; 400: by the name of what Tavily's client raises."""

log = logging.getLogger(__name__)


class Searched(TypedDict):
    """What a trace shows as the output."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why there are none; None when the web was asked, whether it had something or not."""


@dataclass(frozen=True)
class Page:
    """A page that was found, cleaned: what Tavily quotes of it, and how relevant it finds that."""

    url: str
    title: str
    content: str
    score: float


class WebSearch:
    """Asks Tavily as Settings say, once a question and without retries."""

    def __init__(self, settings: Settings, client: Callable[..., Any]) -> None:
        """`client` makes Tavily's client of a key and an httpx client. Raises ConfigurationError."""
        self._client = client
        self._key = _key(settings.web_api_key)
        self._address = _address(settings.web_base_url or ADDRESS)
        self._results = settings.web_results
        self._domains = settings.web_domains
        self._seconds = settings.web_timeout
        self._tokens = settings.chunk_tokens
        self._tls = httpx.create_ssl_context()  # takes longer than all else here
        self._step = step(NAME, self._search)

    async def find(self, question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        """The chunks of what the web has for `question`, the best page first. Never raises.

        None where the question is filtered: who names a source does not mean the web.
        """
        query = search_query(question.text)[:LONGEST_QUERY].strip()
        if not query or question.filters != Filters():
            return []
        searched = await self._step.ainvoke(query, child(config, NAME))
        return searched["chunks"]

    async def _search(self, query: str, config: RunnableConfig) -> Searched:
        try:
            async with asyncio.timeout(remaining(with_deadline(config, self._seconds))):
                reply = await self._ask(query)
            pages = _pages(reply, self._domains)[: self._results]
            chunks = [chunk for page in pages for chunk in _chunks(page, self._tokens)]
            return Searched(chunks=chunks, skipped=None)
        except Exception as error:  # whatever it is, the documents have been read
            reason = _reason(error)
            log.warning("%s: the documents answer alone: %s", SETTING, reason)
            return Searched(chunks=[], skipped=reason)

    async def _ask(self, query: str) -> object:
        # A client of its own: one that is held belongs to an event loop, and somebody has to close it.
        # An environment's proxy is used, as it is on the way to a model provider.
        http = httpx.AsyncClient(base_url=self._address, verify=self._tls, follow_redirects=False)
        async with http:
            tavily = self._client(api_key=self._key.get_secret_value(), client=http)
            reply: object = await tavily.search(
                query,
                search_depth="basic",
                max_results=self._results,
                include_domains=self._domains or None,
            )
        return reply


def open_web(settings: Settings) -> WebSearch | None:
    """The web search that Settings name, or None.

    Raises ConfigurationError for a missing key or package, or an address that is none.
    """
    if settings.web_search is None:
        return None
    try:
        client = import_module("tavily").AsyncTavilyClient
    except ImportError:
        needed = "pip install 'apidesk[tavily]'"
        raise ConfigurationError(f"{SETTING} needs a package: {needed}") from None
    return WebSearch(settings, client)


def build_web(web: WebSearch) -> Runnable[Evidence, Evidence]:
    """The step `web`: what the web has comes last, numbered behind the documents' chunks."""

    async def search(evidence: Evidence, config: RunnableConfig) -> Evidence:
        found = await web.find(evidence["asked"], config)
        return {**evidence, "chunks": [*evidence["chunks"], *found]}

    return step("web", search)


# --- settings -------------------------------------------------------------------------------------


def _key(key: SecretStr | None) -> SecretStr:
    """The key, which has to fit a header. Raises ConfigurationError, which does not repeat it."""
    secret = key.get_secret_value().strip() if key else ""
    if not secret:
        raise ConfigurationError(f"{SETTING} needs APIDESK_WEB_API_KEY or TAVILY_API_KEY")
    if not re.fullmatch("[!-~]+", secret):
        raise ConfigurationError("APIDESK_WEB_API_KEY: holds characters that no key has")
    return SecretStr(secret)


def _address(address: str) -> httpx.URL:
    """`address`, where it is one and holds no secret. Raises ConfigurationError without repeating it."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ConfigurationError(
            "APIDESK_WEB_BASE_URL: is no address that begins with http:// or https://"
        )
    return url


# --- the reply ------------------------------------------------------------------------------------


def _reason(error: Exception) -> str:
    """What went wrong, without repeating what was sent or answered: that may hold the key."""
    name = type(error).__name__
    if "Timeout" in name:
        return "no answer in time; check APIDESK_WEB_TIMEOUT"
    if isinstance(error, httpx.HTTPStatusError):
        return f"the server answers {error.response.status_code}"
    if isinstance(error, httpx.HTTPError | OSError):
        return f"the server cannot be reached ({name}); check APIDESK_WEB_BASE_URL"
    return _REFUSALS.get(name, f"the server's answer cannot be used ({name})")


def _pages(reply: object, domains: tuple[str, ...]) -> list[Page]:
    """The pages of a reply, in its order, each once; those without link or content are left out.

    Raises TypeError for a reply that lists none.
    """
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list):
        raise TypeError("no list of results")
    pages: dict[str, Page] = {}
    for result in results[:MOST_RESULTS]:
        page = _page(result) if isinstance(result, dict) else None
        if page is not None and _within(page.url, domains):
            known = pages.get(page.url)
            pages[page.url] = _merged(known, page) if known else page
    return list(pages.values())


def _page(result: dict[str, Any]) -> Page | None:
    """The page of one result; None where nothing could be cited."""
    url, content = result.get("url"), _clean(result.get("content"))
    if not isinstance(url, str) or not _is_link(url) or not content:
        return None
    title = " ".join(_clean(result.get("title")).split())[:LONGEST_TITLE]
    return Page(url, title or httpx.URL(url).host, content, _score(result.get("score")))


def _merged(known: Page, again: Page) -> Page:
    """One page that came twice: all that was quoted of it, with the better score."""
    new = "" if again.content in known.content else f"\n\n{again.content}"
    return Page(known.url, known.title, known.content + new, max(known.score, again.score))


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


# --- chunks ---------------------------------------------------------------------------------------


def _chunks(page: Page, tokens: int) -> list[RetrievedChunk]:
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
        part = cut(sentence, tokens)
        part = part[: part.rfind(" ") + 1] or part
        yield part
        sentence = sentence[len(part) :]
    yield sentence
