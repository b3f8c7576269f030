"""Finds the API that a question names by its path, its name or its operation id."""

import re
from collections import defaultdict
from functools import lru_cache
from posixpath import commonpath

from ingestion.sources.api_docs import api_method
from ingestion.store.collection import Collection
from ingestion.text.words import contains_name, split_words, stem
from runnables.question.needs import needs_of
from runnables.retrieval.path_patterns import (
    api_url_candidates,
    count_matching_segments,
    count_segments_before_parameters,
)
from schemas.document import Chunk
from schemas.question import ExtractedDetails

_METHOD = re.compile(
    r"(?<![A-Za-z_])(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD)(?![A-Za-z_])"
    r"|(?:get|post|put|patch|delete|head)(?=\s+[`\"']?(?:/|https?://)))"
)
"""An HTTP method in capitals, or in lower case before a path or URL."""

_ASKS_METHOD = re.compile(
    r"(?:什么|哪些|哪种|哪个|几种|啥)\s*(?:http|请求|调用)?\s*(?:方法|方式|method)"
    r"|\b(?:which|what) (?:http |request )?(?:methods?|verbs?)\b",
    re.IGNORECASE,
)
"""Asks for the HTTP methods of an API."""

_CURL = re.compile(r"(?<!\w)curl\s")
_CURL_BODY = re.compile(r"\s(?:-d|-F|--data[\w-]*|--form|--json)(?!\w)")
_LAST_WORD = re.compile(r"\s*(?:(?<![a-z0-9_])api|接口)$")
"""A word at the end of many names of APIs, which questions often omit."""

_COMPOUND = re.compile(
    r"(?<![\w./-])[A-Za-z]+(?:[A-Z][a-z0-9]|[_.-][A-Za-z])[\w.-]*(?![\w/])", re.ASCII
)
"""A word that may be the id of an operation, such as `createBooking` or `bookings.create`."""

_DETERMINER = re.compile(
    r"\b(?:an?|the|this|that|one|single|new|another|existing|my|your|our|its|their)\b"
)
_SYNONYMS = {
    "get": ("retrieve", "fetch", "read"),
    "create": ("add",),
    "update": ("modify", "edit", "change"),
    "delete": ("remove", "erase"),
    "list": (),
}
"""Verbs in names of APIs, with their synonyms."""

_VERBS = {stem(other): stem(verb) for verb, others in _SYNONYMS.items() for other in others}
_FORMS_OF_GET = frozenset(["gets", "getting", "got"])
"""Forms of "get" that rarely refer to an API call, as in "I am getting booking conflicts"."""

ACTION_VERBS = frozenset(_SYNONYMS).union(*_SYNONYMS.values())
"""Words that begin the names of APIs on most platforms."""


def stated_method(question: str) -> str:
    """Return the HTTP method in `question`; empty if there is none, or if there are several.

    A curl command without a method sends a POST request if it has a body, and otherwise a GET request.
    """
    methods = {method.upper() for method in _METHOD.findall(question)}
    if not methods and _CURL.search(question):
        return "POST" if _CURL_BODY.search(question) else "GET"
    return methods.pop() if len(methods) == 1 else ""


def is_at_path(url: str, path: str) -> bool:
    """Return whether `path` can be the path of an API with this URL.

    For example, the API with the URL `/orders/{id}` is at `/gateway/orders/42`.
    """
    return count_matching_segments(path, url) > 0


def chunks_by_path(collection: Collection, path: str, question: str = "") -> list[Chunk]:
    """Return the chunks of the APIs at `path`.

    For example, the API with the URL `/orders/{id}` is at `/orders/42`. If `question` states the HTTP
    method of one of these APIs, only the chunks of that API are returned.

    This function blocks: call it in a worker thread.
    """
    chunks = _chunks_with_any_method(collection, path)
    method = stated_method(question)
    documents = {chunk.document_key for chunk in chunks if method and api_method(chunk) == method}
    return [chunk for chunk in chunks if not documents or chunk.document_key in documents]


def chunks_by_name(collection: Collection, question: str) -> list[Chunk]:
    """Return the chunks of the API whose whole name or operation id is in `question`.

    The comparison ignores articles, the form of the verb and a last word such as API: "creating booking"
    names "Create a booking". A name that has only one word besides such a last word is not found. If the
    question contains several names, the longest one counts, or the first of several that are equally long.

    This function blocks: call it in a worker thread.
    """
    if chunks := _chunks_by_operation_id(collection, question):
        return chunks
    text, words = question.lower(), _action_words(question)
    names = dict.fromkeys(entry.api_name for entry in collection.catalogue() if entry.api_name)
    found = [name for name in names if _short_name(name) in text]
    whole = [name for name in found if contains_name(text, _short_name(name))]
    whole = whole or [name for name in names if _has_name(words, _name_words(name))]
    longest = max(whole, key=len, default="")
    is_clear = len(split_words(_short_name(longest))) > 1
    return collection.chunks_by_api([], [longest]) if is_clear else []


def _chunks_by_operation_id(collection: Collection, question: str) -> list[Chunk]:
    """Return the chunks of the API whose id, such as `createBooking`, is in `question`.

    An id that is a plain word, such as `list`, is not found, because a question may use it as a word.
    """
    identifiers = {word.lower() for word in _COMPOUND.findall(question)}
    documents = [
        (entry.source, entry.document_id)
        for entry in (collection.catalogue() if identifiers else ())
        if entry.api_name and entry.document_id.lower() in identifiers
    ]
    return collection.chunks_of_documents(documents)


def chunks_of_compared_apis(collection: Collection, details: ExtractedDetails) -> list[Chunk]:
    """Return the chunks of the APIs that a question compares; empty if it does not compare two or more.

    A question about a difference compares the APIs whose operation ids or names it contains. Here, a name
    may consist of one word. A question that asks for the HTTP methods of a path compares the APIs at this
    path, of which only the addresses and the prose are returned. If only one API is at this path, the APIs
    with further parameters after it are also compared, such as `/orders/{id}` for `/orders`.

    This function blocks: call it in a worker thread.
    """
    text, chunks = details.text, list[Chunk]()
    if asks_for_methods(details):
        found = _chunks_with_any_method(collection, details.paths[0])
        if len({chunk.document_key for chunk in found}) == 1:
            urls = sorted({entry.api_url for entry in collection.catalogue()})
            path = details.paths[0]
            longer = [url for url in urls if count_segments_before_parameters(path, url)]
            found += collection.chunks_by_api(longer, [])
        chunks = [chunk for chunk in found if chunk.kind in ("request_url", "prose")]
    elif "difference" in needs_of(text):
        chunks = _chunks_by_operation_id(collection, text)
        chunks += collection.chunks_by_api([], _names_in(collection, text))
    is_comparison = len({chunk.api_name for chunk in chunks}) > 1
    return list({chunk.id: chunk for chunk in chunks}.values()) if is_comparison else []


def asks_for_methods(details: ExtractedDetails) -> bool:
    """Return whether a question asks for the HTTP methods of a path, and does not state a method."""
    is_asked = _ASKS_METHOD.search(details.text) is not None
    return is_asked and len(set(details.paths)) == 1 and not stated_method(details.text)


def _names_in(collection: Collection, question: str) -> list[str]:
    """Return the names of APIs in `question`, longest first, except those that are part of a longer one."""
    text = question.lower()
    found = []
    names = {entry.api_name for entry in collection.catalogue() if entry.api_name}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        short = _short_name(name)
        if short and short in text and contains_name(text, short):
            found.append(name)
            text = text.replace(short, " ")
    return found


def names_action(text: str, name: str) -> bool:
    """Return whether `text` contains the words of an API's `name`, one directly after the other.

    Articles, the form of the verb and a last word such as API are ignored, and a synonym counts as the
    verb: "fetching the booking" contains "Get a booking". A name that has only one word besides these is
    not found.
    """
    return _has_name(_action_words(text), _name_words(name))


def _has_name(words: str, name_words: str) -> bool:
    return len(name_words.split()) > 1 and name_words in words


def _action_words(text: str) -> str:
    """Return the stems of the words in `text`, with a space before and after each.

    Determiners such as "the" are left out. Synonyms of a verb become that verb: "fetch" becomes "get".
    """
    words = split_words(_DETERMINER.sub(" ", text.lower()))
    stems = (word if word in _FORMS_OF_GET else stem(word) for word in words)
    return f" {' '.join(_VERBS.get(word, word) for word in stems)} "


@lru_cache(maxsize=20_000)
def _name_words(name: str) -> str:
    """Return the words of the name of an API as `_action_words` does; cached for speed."""
    return _action_words(_short_name(name))


@lru_cache(maxsize=20_000)
def _short_name(name: str) -> str:
    """Return the name of an API in lower case and without a last word such as API; cached for speed."""
    return _LAST_WORD.sub("", name.lower())


def _chunks_with_any_method(collection: Collection, path: str) -> list[Chunk]:
    """Return the chunks of the APIs at `path`, whatever their HTTP method.

    An API whose URL equals the path, or a suffix of it, takes precedence over APIs with placeholders. Among
    the latter, the API with the most segments that equal those of the path takes precedence. It may have
    further parameters at its end, such as `/orders/search/{term}` for `/orders/search`.
    """
    if chunks := collection.chunks_by_api(api_url_candidates(path), []):
        longest = max(len(chunk.api_url) for chunk in chunks)
        return [chunk for chunk in chunks if len(chunk.api_url) == longest]
    urls = {entry.api_url for entry in collection.catalogue() if "/" in entry.api_url}
    segments = path.count("/")

    def closeness(url: str) -> tuple[int, bool, int]:
        """Return the number of matching segments, and two values that decide between equal numbers.

        They are whether the path has a value for each parameter of the URL, and the negated difference in
        the number of segments.
        """
        difference = -abs(url.count("/") - segments)
        whole = count_matching_segments(path, url), True, difference
        return max(whole, (count_segments_before_parameters(path, url), False, difference))

    matches = {url: closeness(url) for url in urls}
    best = max(matches.values(), default=(0, True, 0))
    found = [url for url, each in matches.items() if each == best] if best[0] else []
    return collection.chunks_by_api(found or _below_common_segments(collection, path), [])


def _below_common_segments(collection: Collection, path: str) -> list[str]:
    """Return the URLs that consist of a base path and `path`, such as `/hub/users` for `/users`.

    A base path consists of segments with which all URLs of a source begin. Documents and developers often
    omit it.
    """
    urls = defaultdict[str, set[str]](set)
    for entry in collection.catalogue():
        if entry.api_url.startswith("/"):
            urls[entry.source].add(entry.api_url)
    end = f"/{path.strip('/')}".lower()
    return [
        url
        for of_source in urls.values()
        if len(of_source) > 1 and (common := f"{commonpath(of_source)}/".lower())
        for url in of_source
        if url.lower().endswith(end) and common.startswith(f"{url[: -len(end)]}/".lower())
    ]
