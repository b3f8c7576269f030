"""A client for the JSON APIs of Feishu, Notion and Yuque, and a converter of page blocks to Markdown."""

import re
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import httpx

from ingestion.text.markdown_blocks import code_fence, markdown_table

ApiObject = dict[str, Any]

MAX_ATTEMPTS = 3
"""Maximum number of times that a request is sent."""

FIRST_RETRY_S = 1.0
"""Delay before the first retry, in seconds. The delay doubles with each retry.

If the header `Retry-After` contains a number, that number is used instead.
"""

MAX_RETRY_S = 60.0
"""Maximum delay before a retry, in seconds, even if `Retry-After` is larger."""

_TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}

_URL_CHARACTERS = "%/:?#[]@!$&'*+,;=~"
"""Characters that are not percent-encoded in the URL of a Markdown link.

ASCII letters, digits and `-._` are not encoded either. A space or a parenthesis, for example, is
encoded, because it would end the URL.
"""


class JsonApi:
    """Sends requests with `headers` to the API at `base_url`.

    `timeout_s` is the timeout of httpx: the maximum seconds to connect, and to wait for each part of a
    response. It does not limit a request as a whole.

    A request is repeated after a transient status, such as 429. It is also repeated after status 400 if the
    body contains `busy_code`, the API's own code for too many requests.
    """

    def __init__(
        self, base_url: str, headers: dict[str, str], timeout_s: float, busy_code: int | None = None
    ) -> None:
        self.client = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)
        self._busy_code = busy_code

    def get(self, path: str, **params: str | int) -> ApiObject:
        """Return the response to a GET request for `path`, relative to `base_url`, with query parameters.

        Raises the same errors as `post`.
        """
        return self._send("GET", path, params=params)

    def post(self, path: str, body: ApiObject) -> ApiObject:
        """Return the response to a POST request to `path`, relative to `base_url`, with a JSON body.

        Raises httpx.HTTPError, and ValueError if the response is not a JSON object.
        """
        return self._send("POST", path, json=body)

    def _send(self, method: str, path: str, **arguments: Any) -> ApiObject:
        for attempt in range(MAX_ATTEMPTS):
            response = self.client.request(method, path, **arguments)
            if not self._is_transient(response) or attempt == MAX_ATTEMPTS - 1:
                break
            retry_after = response.headers.get("Retry-After", "")
            is_number = retry_after.isdecimal()
            delay = float(retry_after) if is_number else FIRST_RETRY_S * 2**attempt
            time.sleep(min(delay, MAX_RETRY_S))
        response.raise_for_status()
        reply = response.json()
        if not isinstance(reply, dict):
            raise ValueError(f"{path}: the response is not a JSON object")
        return reply

    def _is_transient(self, response: httpx.Response) -> bool:
        if response.status_code == 400 and self._busy_code is not None:
            return str(self._busy_code) in response.text
        return response.status_code in _TRANSIENT_STATUSES


def read_paginated(
    request: Callable[[ApiObject], ApiObject], items: str, cursor: str, next_cursor: str
) -> Iterator[ApiObject]:
    """Yield the items of all pages of a paginated list. The last page is the one with a false `has_more`.

    `request` takes the parameters that select a page, which are empty for the first page, and returns the
    page. `items` and `next_cursor` name fields of a page, and `cursor` names a parameter.

    Example: `items` is "results", `cursor` is "start_cursor" and `next_cursor` is "next_cursor". After the
    page `{"results": [...], "has_more": true, "next_cursor": "abc"}`, the next call is
    `request({"start_cursor": "abc"})`.
    """
    parameters: ApiObject = {}
    while True:
        page = request(parameters)
        yield from page[items] or ()
        if not page["has_more"]:
            return
        parameters = {cursor: page[next_cursor]}


# --- blocks ---------------------------------------------------------------------------------------

ContentKind = Literal["text", "heading", "bullet", "number", "quote", "code", "table"]

MAX_HEADING_LEVEL = 6


@dataclass(frozen=True)
class TextRun:
    """A piece of text whose characters have the same style and link."""

    text: str
    is_code: bool = False
    link: str = ""
    """URL that the text links to; empty without a link."""


@dataclass(frozen=True)
class ContentBlock:
    """A block of a page."""

    kind: ContentKind
    runs: Sequence[TextRun] = ()
    children: Sequence["ContentBlock"] = ()
    level: int = 1
    """Level of a heading; 1 is the highest."""
    language: str = ""
    """Programming language of code; empty if it is unknown."""
    rows: Sequence[Sequence[str]] = ()
    """Cells of a table, as Markdown; the first row is the header."""


def blocks_to_markdown(blocks: Sequence[ContentBlock]) -> str:
    """Return `blocks` as Markdown."""
    return "\n\n".join(filter(None, map(_block, blocks)))


def inline_markdown(runs: Sequence[TextRun]) -> str:
    """Return `runs` as the Markdown of one paragraph. Links that are not http(s) become plain text."""
    return "".join(map(_run, runs)).strip()


def _block(block: ContentBlock) -> str:
    children = blocks_to_markdown(block.children)
    text = inline_markdown(block.runs)
    match block.kind:
        case "heading":
            title = f"{'#' * min(block.level, MAX_HEADING_LEVEL)} {' '.join(text.split())}"
            return f"{title}\n\n{children}".strip() if text else children
        case "bullet" | "number":
            mark = "- " if block.kind == "bullet" else "1. "
            inner = f"{text}\n\n{children}" if children else text
            return mark + textwrap.indent(inner, " " * len(mark)).lstrip()
        case "quote":
            return textwrap.indent(f"{text}\n\n{children}".strip(), "> ", lambda _: True)
        case "code":
            code = "".join(run.text for run in block.runs).strip("\n")
            return code_fence(code, block.language)
        case "table":
            return markdown_table([[_cell(text) for text in row] for row in block.rows])
        case _:
            return f"{text}\n\n{children}".strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _run(run: TextRun) -> str:
    text = run.text
    if run.is_code and text.strip() and "`" not in text:
        text = f"`{text}`"
    if not (run.link.startswith(("http://", "https://")) and text.strip()):
        return text
    label = text if run.is_code else re.sub(r"[\[\]]", r"\\\g<0>", text)
    return f"[{label}]({quote(run.link, safe=_URL_CHARACTERS)})"
