"""The web as a source: what Tavily finds for a question, in chunks behind those of the documents.

Through `tavily-python`, an extra: it takes an httpx client of ours, and with that an address, a deadline
and TLS. langchain-tavily takes no time limit, and aiohttp, which is behind it, follows redirects.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypedDict

import httpx
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import SecretStr

from runnables.question.extract_details import search_query
from runnables.retrieval.web_pages import found_pages, page_chunks
from runnables.run_context import child_config, named_step, remaining, with_deadline
from runnables.state import PipelineState
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError
from schemas.question import Filters, Question
from schemas.settings import Settings

NAME = "web/tavily"
SETTING = "APIDESK_WEB_SEARCH=tavily"
ADDRESS = "https://api.tavily.com"

LONGEST_QUERY = 400
"""Characters; Tavily refuses a longer query."""

_REFUSALS = {
    "InvalidAPIKeyError": "Tavily refuses the key; check APIDESK_WEB_API_KEY",
    "ForbiddenError": "the key's plan or its limit does not allow it; see Tavily's dashboard",
    "UsageLimitExceededError": "too many requests with this key",
    "BadRequestError": "Tavily refuses the request; check APIDESK_WEB_DOMAINS",
}
"""Of 401; 403, 432 and 433; 429; 400: by the name of what Tavily's client raises."""

log = logging.getLogger(__name__)


class WebSearchOutput(TypedDict):
    """What a trace shows as the output."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why there are none; None when the web was asked, whether it had something or not."""


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
        self._step = named_step(NAME, self._search)

    async def find(self, question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        """The chunks of what the web has for `question`, the best page first. Never raises.

        None where the question is filtered: who names a source does not mean the web.
        """
        query = search_query(question.text)[:LONGEST_QUERY].strip()
        if not query or question.filters != Filters():
            return []
        searched = await self._step.ainvoke(query, child_config(config, NAME))
        return searched["chunks"]

    async def _search(self, query: str, config: RunnableConfig) -> WebSearchOutput:
        try:
            async with asyncio.timeout(remaining(with_deadline(config, self._seconds))):
                reply = await self._ask(query)
            pages = found_pages(reply, self._domains)[: self._results]
            chunks = [chunk for page in pages for chunk in page_chunks(page, self._tokens)]
            return WebSearchOutput(chunks=chunks, skipped=None)
        except Exception as error:  # whatever it is, the documents have been read
            reason = _reason(error)
            log.warning("%s: the documents answer alone: %s", SETTING, reason)
            return WebSearchOutput(chunks=[], skipped=reason)

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


def build_web(web: WebSearch) -> Runnable[PipelineState, PipelineState]:
    """The step `web`: what the web has comes last, numbered behind the documents' chunks."""

    async def search(evidence: PipelineState, config: RunnableConfig) -> PipelineState:
        found = await web.find(evidence["question"], config)
        return {**evidence, "chunks": [*evidence["chunks"], *found]}

    return named_step("web", search)


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


# --- what goes wrong ------------------------------------------------------------------------------


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
