"""A client for JSON APIs that limit the rate of requests, used by loaders."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

ApiObject = dict[str, Any]

MAX_ATTEMPTS = 3
"""Maximum number of times that a request is sent while the server replies with a transient status."""

FIRST_RETRY_S = 1.0
"""Delay before the first retry, in seconds, if there is no `Retry-After`; it doubles with each retry."""

MAX_RETRY_S = 60.0
"""Maximum delay before a request is repeated, in seconds."""

_TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}


class JsonApi:
    """Sends requests with `headers` to the API at `base_url`; `timeout_s` limits each, in seconds.

    A request is repeated after a transient status, such as 429, and after status 400 with `busy_code` in
    the body. If `busy_code` is 0, the API has no such code.
    """

    def __init__(
        self, base_url: str, headers: dict[str, str], timeout_s: float = 30, busy_code: int = 0
    ) -> None:
        self.client = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)
        self._busy_code = str(busy_code or "")

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
            stated = response.headers.get("Retry-After", "")
            delay = float(stated) if stated.isdecimal() else FIRST_RETRY_S * 2**attempt
            time.sleep(min(delay, MAX_RETRY_S))
        response.raise_for_status()
        reply = response.json()
        if not isinstance(reply, dict):
            raise ValueError(f"{path}: the response is not a JSON object")
        return reply

    def _is_transient(self, response: httpx.Response) -> bool:
        is_busy = (
            response.status_code == 400 and self._busy_code and self._busy_code in response.text
        )
        return bool(is_busy) or response.status_code in _TRANSIENT_STATUSES


def read_pages(
    request: Callable[[ApiObject], ApiObject], items: str, cursor: str, next_cursor: str
) -> Iterator[ApiObject]:
    """Yield the elements of a paginated list, page by page, until the `has_more` of a page is false.

    `request` returns the page for the given parameters, which are empty for the first page. `items` names
    the field of a page that contains its elements. `next_cursor` names the field that contains the
    position of the next page, and `cursor` names the request parameter for this position.
    """
    parameters: ApiObject = {}
    while True:
        page = request(parameters)
        yield from page[items] or ()
        if not page["has_more"]:
            return
        parameters = {cursor: page[next_cursor]}
