"""Compares the paths, MQTT topics and names in a question with the patterns in documents.

A pattern is a path with placeholders, such as `/devices/${id}/state`. A segment `{id}`, `${id}`, `:id`,
`<id>` or `+` stands for one segment of a path. A last segment `#` stands for any number of segments, as in
the topic filters of MQTT, and so does a last segment `...` of a pattern that has another placeholder.
Segments in brackets are optional: `/users/:id[/:part]/files`.

A pattern of names has a placeholder between two parts of a name, such as `QUEUE_<NAME>_URL`.
"""

import re
from functools import lru_cache
from itertools import takewhile

from ingestion.store.collection import Collection
from ingestion.text.words import split_words
from schemas.document import Chunk
from schemas.question import Filters

SEARCH_DEPTH = 50
"""Maximum number of chunks to read after one search."""

_BASE_SEGMENT = re.compile(r"api|rest|v\d[\w.]*|\d{4}-\d{2}(?:-\d{2})?", re.IGNORECASE)
"""A segment of the base path of a server, such as `v2` in `/v2/bookings`."""

_PLACEHOLDER = re.compile(r"\$?\{[^}]*\}|:\w+|<[^>]*>|\+")
_REST = "#"
"""The last segment of a topic filter, which stands for all further segments."""
_REST_MARKS = frozenset([_REST, "...", "…"])

_ORIGIN = re.compile(r"https?://[^/\s`\"'|]+", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([_.*-])")
r"""A character of identifiers with the backslash by which Markdown escapes it, such as `\_`."""

_SEGMENT = r"(?:[\w.~%…-]|\$?\{[^{}/\s]{0,80}\}|<[^<>/\s]{0,80}>|:\w)++"
_PATTERN = re.compile(
    rf"/?+(?:{_SEGMENT}|\+)(?:/(?:{_SEGMENT}|\+)|\[(?:/{_SEGMENT})++\])*+(?:/#(?![\w-]))?(?![\w+-])",
    re.ASCII,
)
_NAME_PLACEHOLDER = r"(?:<[a-z][\w -]{0,40}>|\$?\{[a-z][\w -]{0,40}\})"
_NAME_PATTERN = re.compile(
    rf"(?<![\w/<{{$.-])\w{{1,40}}_{_NAME_PLACEHOLDER}_\w{{1,40}}(?![\w/]|\.\w)", re.ASCII
)
"""A name with text before and after a placeholder, in lower case. Other patterns match too many names."""

_OPTIONAL = re.compile(r"\[([^\]]*)\]")
"""Optional segments of a pattern."""


def chunks_with_pattern(collection: Collection, path: str, filters: Filters) -> list[Chunk]:
    """Return the chunks with a pattern, such as `/devices/${id}/state`, that matches `path`.

    The result is empty if `path` has no slash. This function blocks: call it in a worker thread.
    """
    if "/" not in path:
        return []
    chunks = search_chunks(collection, path, filters)
    return [chunk for chunk in chunks if matching_patterns(unescaped_body(chunk), path)]


def contains_name_pattern(collection: Collection, name: str, filters: Filters) -> bool:
    """Return whether a chunk has a pattern, such as `QUEUE_<NAME>_URL`, that matches the lower-case `name`.

    This function blocks: call it in a worker thread.
    """
    if name.count("_") < 2 or not re.fullmatch(r"\w+", name):
        return False
    chunks = search_chunks(collection, " ".join(split_words(name)), filters)
    patterns = (p for c in chunks for p in _NAME_PATTERN.findall(unescaped_body(c).lower()))
    return any(re.fullmatch(re.sub(_NAME_PLACEHOLDER, r"\\w+", p), name) for p in patterns)


def contains_below_base(collection: Collection, path: str, filters: Filters) -> bool:
    """Return whether a chunk contains the rest of `path` after its base path: `/ping` for `/v1/ping`.

    False if `path` has no base path. This function blocks: call it in a worker thread.
    """
    segments = _segments(path)
    base = list(takewhile(_BASE_SEGMENT.fullmatch, segments))
    if not path.startswith("/") or not base or base == segments:
        return False
    rest = "/" + "/".join(segments[len(base) :])
    pattern = re.compile(
        rf"(?<![\w./}}>-]){re.escape(rest)}(?![\w-]|/[\w{{<:])", re.IGNORECASE | re.ASCII
    )
    chunks = search_chunks(collection, rest, filters)
    return any(pattern.search(f"{chunk.section}\n{unescaped_body(chunk)}") for chunk in chunks)


def search_chunks(collection: Collection, query: str, filters: Filters) -> list[Chunk]:
    """Return the first `SEARCH_DEPTH` results of a full-text search. This function blocks."""
    hits = collection.search_hits(query, SEARCH_DEPTH, filters=filters)
    return collection.chunks_by_id([hit.id for hit in hits])


def unescaped_body(chunk: Chunk) -> str:
    r"""Return the body of `chunk` without the backslashes in identifiers: `order_id` for `order\_id`."""
    return _ESCAPE.sub(r"\1", chunk.body) if "\\" in chunk.body else chunk.body


def api_url_candidates(url: str) -> list[str]:
    """Return `url` as a path, and its suffixes of two or more segments, longest first.

    For example, `gw/v1/orders?page=1` becomes `/gw/v1/orders` and `/v1/orders`, because `gw` may be the
    prefix of a gateway.
    """
    segments = url.split("?")[0].strip("/").split("/")
    return ["/" + "/".join(segments[i:]) for i in range(max(len(segments) - 1, 1))]


@lru_cache(maxsize=20_000)
def count_matching_segments(path: str, url: str) -> int:
    """Return the number of segments of `path` that equal the segments of `url`; 0 if they do not match.

    The two are aligned at their ends: the number is 1 for the path `/gw/orders/42` and the URL
    `/orders/{id}`. A placeholder in `url` does not count. It matches any segment of `path`, except the
    first segment of a `path` that is shorter than `url`.

    The longer of the two may have further segments at its start, such as the prefix of a gateway or the
    base path of the server. If `path` has only one segment, the segments before the last one of `url` must
    be a base path, which ends with a segment such as `api` or `v2`: `orders` matches `/api/v2/orders` and
    `/shop/api/orders`, but not `/shops/orders`.

    Cached, because several pipeline steps compare the path of a question with all APIs.
    """
    expected, given = _segments(url), _segments(path.split("?")[0])
    given = given[-len(expected) :]
    if len(given) < len(expected):
        # A placeholder in the URL does not match the first segment of a shorter path.
        missing, expected = expected[: -len(given)], expected[-len(given) :]
        if given[0] != expected[0] or (len(given) == 1 and not _ends_base_path(missing)):
            return 0
    return _count_equal_segments(expected, given)


@lru_cache(maxsize=20_000)
def count_segments_before_parameters(path: str, url: str) -> int:
    """Return the number of segments of `path` that equal those of `url` before its last parameters.

    For example, the number is 2 for the path `/orders/search` and the URL `/orders/search/{term}`. It is 0
    if `url` does not end with a parameter, or if `path` differs from the segments before the parameters.
    Either of the two may begin with a base path such as `/v2`.
    """
    expected, given = _segments(url), _segments(path.split("?")[0])
    if not _PLACEHOLDER.fullmatch(expected[-1]):
        return 0
    while expected and _PLACEHOLDER.fullmatch(expected[-1]):
        expected = expected[:-1]
    is_at_end = _is_base(given[: -len(expected)]) if expected else False
    return count_matching_segments(path, "/".join(expected)) if is_at_end else 0


def matching_patterns(text: str, path: str) -> list[str]:
    """Return the patterns in `text`, in lower case, that match the whole `path`.

    The path may begin with a base path such as `/v2`. At least one segment must be equal: `/{a}/{b}`
    matches no path.
    """
    return [pattern for pattern in _patterns_in(text.lower()) if _is_match(pattern, path)]


def _is_match(pattern: str, path: str) -> bool:
    if _OPTIONAL.search(pattern):
        return any(_is_match(_OPTIONAL.sub(part, pattern), path) for part in ("", r"\1"))
    expected, given = _segments(pattern), _segments(path.split("?")[0])
    if expected[-1] in _REST_MARKS:
        expected = expected[:-1]
        given = given[: len(expected)]
    extra = len(given) - len(expected)
    return (
        extra >= 0
        and _is_base(given[:extra])
        and _count_equal_segments(expected, given[extra:]) > 0
    )


@lru_cache(maxsize=1_000)
def _patterns_in(text: str) -> tuple[str, ...]:
    """Return the distinct patterns in the text of a section; cached, because many questions read it."""
    paths = dict.fromkeys(_PATTERN.findall(_ORIGIN.sub("", text)))
    return tuple(path for path in paths if "/" in path.strip("/") and _has_placeholder(path))


def _has_placeholder(path: str) -> bool:
    segments = _segments(_OPTIONAL.sub(r"\1", path))
    return any(each == _REST or _PLACEHOLDER.fullmatch(each) for each in segments)


def _segments(path: str) -> list[str]:
    return path.lower().strip("/").split("/")


def _is_base(segments: list[str]) -> bool:
    return all(map(_BASE_SEGMENT.fullmatch, segments))


def _ends_base_path(segments: list[str]) -> bool:
    """Return whether the last of `segments` is typical of a base path, and no segment is a placeholder."""
    has_placeholder = any(map(_PLACEHOLDER.fullmatch, segments))
    return _is_base(segments[-1:]) and not has_placeholder


def _count_equal_segments(expected: list[str], given: list[str]) -> int:
    """Return the number of equal segments; 0 if an expected segment differs and is not a placeholder."""
    equal = 0
    for segment, value in zip(expected, given, strict=True):
        if segment == value:
            equal += 1
        elif not _PLACEHOLDER.fullmatch(segment):
            return 0
    return equal
