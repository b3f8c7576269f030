"""Extracts addresses (URLs and paths) with their HTTP methods, and indexes the addresses in documents."""

import re
from collections import defaultdict
from urllib.parse import urlsplit

from runnables.grounding.names import ANY_METHOD, Mention, is_code_span

URL = r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%{}-]+"
"""Matches a URL, which may contain placeholders in braces.

It matches only ASCII characters, because Chinese text may follow without a space.
"""

PATH = r"(?<![A-Za-z0-9_/.:<*-])/[A-Za-z0-9{<:$][\w.{}<>:$*~-]*(?:/[\w.{}<>:$*~-]+)*/?"
"""Matches a path, but not inside a word, URL or tag, such as `and/or` or `</b>`. Use it with `re.ASCII`."""

_MAX_PATH_SEGMENTS = 20
"""Maximum number of prefixes and of suffixes that are indexed or looked up for one path."""

# --- patterns for extraction ----------------------------------------------------------------------

_GAP = (
    r"[\s`'\"*,，:：]{0,4}(?:(?:requests?|calls?|to|on|against|at|the|endpoint|path|url|"
    r"方法|方式|请求|接口|调用|到|提交|发送|访问|地址|为|是)[\s`'\"*:：]{0,3}){0,4}"
)
"""Words that may stand between a method and its address, as in "a GET request to the endpoint `/a`"."""

_TARGET = re.compile(
    rf"(?:(?<![A-Za-z_])(?P<before>{ANY_METHOD})(?![A-Za-z_]){_GAP})?(?P<target>{URL}|{PATH})"
    rf"(?P<query>\?[\w.=&%{{}}<>-]*)?"
    rf"(?:[`'\"\s]{{0,3}}(?:[（(]|with|using|via|by|用|以|采用|使用)\s?(?:HTTP|an?)?[\s`]{{0,2}}"
    rf"(?P<after>{ANY_METHOD})(?![A-Za-z_]))?",
    re.ASCII,
)
_LOCAL_FOLDERS = {
    "etc", "usr", "var", "tmp", "home", "opt", "dev", "root", "mnt", "proc", "path",
}  # fmt: skip
_LOCAL_OR_EXAMPLE_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "your", "my-", "<", "{")

# --- patterns for indexing ------------------------------------------------------------------------

_ADDRESS = re.compile(rf"({ANY_METHOD})?[\s`'\"*]{{0,4}}({URL}|{PATH})", re.ASCII)
_METHOD = re.compile(rf"(?<![A-Za-z_])({ANY_METHOD})(?![A-Za-z_])")
_LABELLED_METHOD = re.compile(
    rf"^[^:：\n]{{1,30}}[:：][\s`*]{{0,4}}({ANY_METHOD})[`*\s]*$", re.MULTILINE
)
"""A line with a method, as in documents rendered from `api_docs` sources: "- Method: `POST`"."""

_METHOD_CALL = re.compile(r"\.(get|post|put|patch|delete)\(", re.IGNORECASE)
"""A call in a program, such as `requests.post(`."""

_PLACEHOLDER = re.compile(r"\{.*\}|<.*>|:\w+|\$.+|\[.*\]")
_EXAMPLE_SEGMENT = re.compile(r"(?:my|your|xxx|some|example).*", re.IGNORECASE)
_TRAILING_PUNCTUATION = ".,;:!?*"

_Path = tuple[str, ...]
"""The segments of a path. A generalised path has `{}` in place of each placeholder and each value.

A value is a segment such as an id (see `_generalise`).
"""


def take_targets(text: str) -> tuple[str, list[Mention]]:
    """Return `text` without its URLs and paths, and the URLs and paths as mentions.

    Spaces replace each URL or path and its HTTP method. A query string stays in the text, and so does a
    method after it.
    """
    mentions: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        mention = _to_mention(text, match)
        if mention is None:
            return match[0]
        mentions.append(mention)
        query = match[0].find("?")
        kept = match[0][query:] if query >= 0 else ""
        return " " * (len(match[0]) - len(kept)) + kept

    return _TARGET.sub(take, text), mentions


def _to_mention(text: str, match: re.Match[str]) -> Mention | None:
    """Return `match` as a mention, or None if it is unlikely to be a path.

    A single segment such as `/s` counts as a path only with a method or in a code span.
    """
    target = match["target"].rstrip(".,;:!?*-")
    start, end = match.start("target"), match.start("target") + len(target)
    method = match["before"] or match["after"] or ""
    if target.count("/") == 1 and not (method or is_code_span(text, start, end)):
        return None
    first = match.start() if match["before"] else start
    last = match.end() if match["after"] else end
    may_be_external = _is_local_or_example(target)
    return Mention(
        "target", text[first:last], first, target, method, may_be_external=may_be_external
    )


def _is_local_or_example(target: str) -> bool:
    """Return whether `target` has a loopback or example host, or is a path of the file system."""
    host = target.partition("://")[2]
    if host:
        return host.startswith(_LOCAL_OR_EXAMPLE_HOSTS)
    return target.split("/")[1] in _LOCAL_FOLDERS


class AddressIndex:
    """Index of the hosts and paths in documents, with the HTTP methods of each path."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._base_paths: set[_Path] = set()
        """Paths that occur together with a host, and may therefore precede other paths."""
        self._prefixes: set[_Path] = set()
        self._by_suffix: dict[_Path, set[_Path]] = defaultdict(set)
        """Generalised paths by suffix. Each suffix is indexed twice: as written, and generalised."""
        self._methods: dict[_Path, set[str]] = defaultdict(set)
        """HTTP methods by generalised path."""

    def add(self, text: str) -> None:
        """Index one text.

        The HTTP methods of a path are looked up in this order: before the path, on its line, on labelled
        lines (`_LABELLED_METHOD`), on lines without an address.
        """
        if "/" not in text:
            return
        lines = [(line, _ADDRESS.findall(line)) for line in text.split("\n")]
        text_methods = set(_LABELLED_METHOD.findall(text)) or {
            method for line, addresses in lines if not addresses for method in _methods_in(line)
        }
        for line, addresses in lines:
            line_methods = _methods_in(line) if addresses else set()
            for method, address in addresses:
                self._add_address(address, {method} if method else line_methods or text_methods)

    def contains(self, mention: Mention) -> bool:
        """Return whether the host and the path of `mention` are indexed, with its HTTP method if given.

        A path that ends with `/` may be the beginning of an indexed path. An address that may be external,
        such as `http://localhost` or `/etc/hosts`, counts as contained. The exception is a path whose first
        two segments are indexed: it is looked up like any other path.
        """
        host, path = _split_address(mention.target)
        if mention.may_be_external and (host or path[:2] not in self._prefixes):
            return True
        if host and host not in self._hosts:
            return False
        if not path:
            return True
        full_paths = self._resolve(path)
        if not full_paths:
            return mention.target.endswith("/") and path in self._prefixes
        return not mention.method or any(
            mention.method in self._methods[full_path] for full_path in full_paths
        )

    def _add_address(self, address: str, methods: set[str]) -> None:
        host, path = _split_address(address)
        if host:
            self._hosts.add(host)
            self._base_paths.add(path)
        generalised = tuple(map(_generalise, path))
        self._methods[generalised] |= methods
        for i in range(min(len(path), _MAX_PATH_SEGMENTS)):
            self._prefixes.add(path[: i + 1])
            for suffix in {path[i:], generalised[i:]}:
                self._by_suffix[suffix].add(generalised)

    def _resolve(self, path: _Path) -> set[_Path]:
        """Return the indexed paths that are equal to `path` or end with it.

        `/v1/orders` also matches the indexed path `/orders` if `/v1` is a base path. Placeholders match
        values.
        """
        generalised = tuple(map(_generalise, path))
        without_examples = tuple(
            "{}" if _EXAMPLE_SEGMENT.fullmatch(segment) else segment for segment in generalised
        )
        resolved: set[_Path] = set()
        for suffix in {path, generalised, without_examples}:
            resolved |= self._by_suffix.get(suffix, set())
        for i in range(1, min(len(path), _MAX_PATH_SEGMENTS)):
            if path[:i] in self._base_paths and generalised[i:] in self._methods:
                resolved.add(generalised[i:])
        return resolved


def _methods_in(line: str) -> set[str]:
    return {*_METHOD.findall(line), *(name.upper() for name in _METHOD_CALL.findall(line))}


def _split_address(address: str) -> tuple[str, _Path]:
    """Return the host, which may be empty, and the path segments. An invalid URL is a single segment."""
    try:
        parts = urlsplit(address.rstrip(_TRAILING_PUNCTUATION))
    except ValueError:  # such as an unclosed bracket
        return "", (address,)
    path = parts.path.rstrip(_TRAILING_PUNCTUATION)  # punctuation that preceded a query string
    return parts.netloc.lower(), tuple(segment for segment in path.split("/") if segment)


def _generalise(segment: str) -> str:
    """Return `{}` for a placeholder or a value, and any other segment unchanged.

    A segment is a value if it is a number or contains more than two digits.
    """
    is_value = segment.isdigit() or sum(map(str.isdigit, segment)) > 2
    return "{}" if is_value or _PLACEHOLDER.fullmatch(segment) else segment
