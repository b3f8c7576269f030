"""Web search with Tavily, whose results follow the retrieved chunks.

It uses the optional dependency `tavily-python`, which accepts an httpx client and therefore a base URL, a
deadline and TLS settings. langchain-tavily is not used, because it has no timeout and its HTTP client,
aiohttp, follows redirects.
"""

import logging
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypedDict

import httpx
from langchain_core.runnables import RunnableConfig
from pydantic import SecretStr

from runnables.question.extract_details import details_of
from runnables.retrieval.web_pages import chunk_page, parse_pages
from runnables.run_context import child_config, deadline_timeout, named_step, with_deadline
from runnables.state import PipelineState, StateFunction
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError
from schemas.question import Filters, Question
from schemas.settings import Settings

RUN_NAME = "web"
SETTING = "APIDESK_WEB_SEARCH=tavily"
DEFAULT_BASE_URL = "https://api.tavily.com"

MAX_QUERY_CHARS = 400
"""Maximum length of a query, in characters; Tavily rejects longer ones."""

_REFUSALS = {
    "InvalidAPIKeyError": "Tavily refuses the key; check APIDESK_WEB_API_KEY",
    "ForbiddenError": "the plan or limit of the key does not allow the request; see Tavily's dashboard",
    "UsageLimitExceededError": "too many requests with this key",
    "BadRequestError": "Tavily refuses the request; check APIDESK_WEB_DOMAINS",
}
"""Error messages by the class name of the exception that Tavily's client raises.

The client raises them for the HTTP statuses 401; 403, 432 or 433; 429; and 400, in this order.
"""

log = logging.getLogger(__name__)


class WebSearchOutput(TypedDict):
    """Output of a search, as traces show it."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why the search failed; None if it succeeded, with or without results."""


class WebSearch:
    """Searches the web once per question, without retries."""

    def __init__(self, settings: Settings, make_client: Callable[..., Any]) -> None:
        """`make_client` creates a Tavily client from a key and an httpx client.

        Raises ConfigurationError for a missing or invalid key or base URL.
        """
        self._make_client = make_client
        self._key = _require_key(settings.web_api_key)
        self._base_url = _parse_base_url(settings.web_base_url or DEFAULT_BASE_URL)
        self._max_results = settings.web_results
        self._domains = settings.web_domains
        self._timeout_s = settings.web_timeout
        self._chunk_tokens = settings.chunk_tokens
        self._tls = httpx.create_ssl_context()  # slow, so it is created once
        self._step = named_step(RUN_NAME, self._run)

    async def search(self, question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        """Return chunks of the pages found for `question`, best page first. Never raises.

        The result is empty after a failure. It is also empty if the question has filters, because filters
        select documents of the collection.
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
            log.warning("%s: answering from the documents alone: %s", SETTING, reason)
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
        raise ConfigurationError(f"{SETTING} needs a package: {command}") from None
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
        raise ConfigurationError(f"{SETTING} needs APIDESK_WEB_API_KEY or TAVILY_API_KEY")
    if not re.fullmatch("[!-~]+", secret):
        raise ConfigurationError(
            "APIDESK_WEB_API_KEY: contains characters other than printable ASCII"
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
    """Return the reason, without text of requests and replies, because they may contain the key."""
    name = type(error).__name__
    if "Timeout" in name:
        return "no answer in time; check APIDESK_WEB_TIMEOUT"
    if isinstance(error, httpx.HTTPStatusError):
        return f"the server answers {error.response.status_code}"
    if isinstance(error, httpx.HTTPError | OSError):
        return f"the server cannot be reached ({name}); check APIDESK_WEB_BASE_URL"
    return _REFUSALS.get(name, f"the server's answer cannot be used ({name})")
