"""Finds the URLs that a page gives for one operation on several servers, such as production and a sandbox.

Only one of them is read as the operation's URL, preferably that of production.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ingestion.sources.api_pages.calls import (
    ANY_METHOD,
    TARGET,
    Call,
    call_of,
    path_of,
    split_origin,
)
from ingestion.sources.api_pages.columns import text_of

PRODUCTION_URL = "Production URL"
"""The label of the only URL that `merge_servers` keeps if an operation is on several servers."""

_TEST_SERVER = re.compile(
    r"sandbox|\b(?:test(?:ing)?|dev(?:elopment)?|uat|qa|sit|stag(?:e|ing)|demo|mock|beta|pre-?prod(?:uction)?)\b"
    r"|沙[箱盒]|测试|开发环境|联调|预发|预生产|仿真|模拟|灰度",
    re.IGNORECASE,
)
"""A word in the label of a server that is not for production."""
_METHOD = re.compile(ANY_METHOD)
_URL = re.compile(rf"<?(?:(?P<method>{ANY_METHOD})\s+)?(?P<url>{TARGET})>?(?:\s.*)?")
"""A URL, possibly with a method before it and a remark after it."""


class _LabelledUrl(NamedTuple):
    label: str
    method: str
    """The method; empty if it is not next to the URL."""
    url: str

    @property
    def is_for_tests(self) -> bool:
        return _TEST_SERVER.search(self.label) is not None


def merge_servers(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return labels and values, with the URLs of one operation on several servers merged into one pair.

    This pair is the last. Its label is `PRODUCTION_URL`, and its value is the first URL whose label does
    not name a test server, or else the first URL. Nothing is merged if the value of another pair is a call
    (a URL with its method), because the pairs are then a list of operations.
    """
    urls = {i: url for i, (label, value) in enumerate(pairs) if (url := _read_url(label, value))}
    for first in sorted(urls.values(), key=lambda url: url.is_for_tests):
        same = {i for i, url in urls.items() if url == first or _is_same_operation(url, first)}
        if len(same) > 1 and not any(url.method for i, url in urls.items() if i not in same):
            kept = [pair for index, pair in enumerate(pairs) if index not in same]
            return [*kept, (PRODUCTION_URL, f"{first.method} {first.url}".strip())]
    return list(pairs)


def are_one_operation(calls: Sequence[Call]) -> bool:
    """Return whether several calls are those of one operation on different servers.

    False for calls without a path, because such URLs are only the addresses of servers.
    """
    servers = {split_origin(call.url)[0] for call in calls}
    keys = {call.key for call in calls}
    are_servers = len(servers) == len(calls) > 1 and "" not in servers
    return are_servers and len(keys) == 1 and all(path for _, path in keys)


def pair_of_row(row: Sequence[str]) -> tuple[str, str]:
    """Return a label and a value for a row with the URL of an operation. The value is a URL or a call.

    The method, the address of the server and the path may have cells of their own. The label consists of
    the remaining cells. For a row without a path, the first two cells are returned.
    """
    method = origin = target = ""
    labels: list[str] = []
    for cell in map(text_of, row):
        url = _read_url("", cell)
        if _METHOD.fullmatch(cell):
            method = cell
        elif url and not target and path_of(url.url):
            method, target = url.method or method, url.url
        elif url and not origin:
            origin = url.url.rstrip("/")
        else:
            labels.append(cell)
    if not target:
        return row[0], row[1]
    return " ".join(labels), f"{method} {origin if target.startswith('/') else ''}{target}".strip()


def _read_url(label: str, value: str) -> _LabelledUrl | None:
    match = _URL.fullmatch(text_of(value).strip("` "))
    if match is None:
        return None
    return _LabelledUrl(label, match["method"] or "", call_of("GET", match["url"]).url)


def _is_same_operation(url: _LabelledUrl, other: _LabelledUrl) -> bool:
    """Return whether two URLs are those of one operation on different servers.

    The address of a server may end with a path, such as `/sandbox` in the URL
    `https://a.example/sandbox/v1/orders` of the operation `/v1/orders`.
    """
    (origin, path), (other_origin, other_path) = split_origin(url.url), split_origin(other.url)
    path, other_path = path_of(path), path_of(other_path)
    is_other_server = origin != other_origin or url.is_for_tests
    is_same_path = path.endswith(other_path) or other_path.endswith(path)
    return bool(
        path and other_path and is_same_path and is_other_server and url.method == other.method
    )
