"""Urls and paths that a text names, with the HTTP method that stands with each.
Which hosts and paths the documents name, and which methods go with a path.
"""

import re
from collections import defaultdict
from urllib.parse import urlsplit

from runnables.grounding.mention import Mention, in_code_span
from runnables.grounding.names import METHODS

URL = r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%{}-]+"
"""In ASCII alone, for Chinese goes on behind it without a blank; and with placeholders in braces."""

PATH = r"(?<![A-Za-z0-9_/.:<*-])/[A-Za-z0-9{<:$][\w.{}<>:$*~-]*(?:/[\w.{}<>:$*~-]+)*/?"
"""For patterns with `re.ASCII`. It begins within no word, url or tag: `and/or`, `</b>`."""

_GAP = (
    r"[\s`'\"*,，:：]{0,4}(?:(?:requests?|calls?|to|on|against|at|the|endpoint|path|url|"
    r"方法|方式|请求|接口|调用|到|提交|发送|访问|地址|为|是)[\s`'\"*:：]{0,3}){0,4}"
)
"""What may stand between a method and its target: "a GET request to the endpoint `/a`"."""

_TARGET = re.compile(
    rf"(?:(?<![A-Za-z_])(?P<before>{METHODS})(?![A-Za-z_]){_GAP})?(?P<target>{URL}|{PATH})"
    rf"(?P<query>\?[\w.=&%{{}}<>-]*)?"
    rf"(?:[`'\"\s]{{0,3}}(?:[（(]|with|using|via|by|用|以|采用|使用)\s?(?:HTTP|an?)?[\s`]{{0,2}}"
    rf"(?P<after>{METHODS})(?![A-Za-z_]))?",
    re.ASCII,
)
_FOLDERS = {"etc", "usr", "var", "tmp", "home", "opt", "dev", "root", "mnt", "proc", "path"}
_OWN_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "your", "my-", "<", "{")


def take_targets(text: str) -> tuple[str, list[Mention]]:
    """`text` without urls and paths, of the same length and with their queries; and these."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        mention = _mention(text, match)
        if mention is None:
            return match[0]
        found.append(mention)
        query = match[0].find("?")
        kept = match[0][query:] if query >= 0 else ""
        return " " * (len(match[0]) - len(kept)) + kept

    return _TARGET.sub(take, text), found


def _mention(text: str, match: re.Match[str]) -> Mention | None:
    """What `match` names; None for one part alone, such as `/s`, unless a method or a code span says so."""
    target = match["target"].rstrip(".,;:!?*-")
    start, end = match.start("target"), match.start("target") + len(target)
    method = match["before"] or match["after"] or ""
    if target.count("/") == 1 and not (method or in_code_span(text, start, end)):
        return None
    first = match.start() if match["before"] else start
    last = match.end() if match["after"] else end
    return Mention("target", text[first:last], first, target, method, foreign=_is_own(target))


def _is_own(target: str) -> bool:
    """Whether it is on the reader's own machine: a loopback or made-up host, a path of the file system."""
    host = target.partition("://")[2]
    return host.startswith(_OWN_HOSTS) if host else target.split("/")[1] in _FOLDERS


_Path = tuple[str, ...]

_MOST_PARTS = 20
"""Parts of a path that are looked at: each is kept with every end of it."""

_ADDRESS = re.compile(rf"({METHODS})?[\s`'\"*]{{0,4}}({URL}|{PATH})", re.ASCII)
_METHOD = re.compile(rf"(?<![A-Za-z_])({METHODS})(?![A-Za-z_])")
_LABELLED_METHOD = re.compile(
    rf"^[^:：\n]{{1,30}}[:：][\s`*]{{0,4}}({METHODS})[`*\s]*$", re.MULTILINE
)
"""A line of its own, as `api_docs` renders it: "- Method: `POST`"."""

_CALLED = re.compile(r"\.(get|post|put|patch|delete)\(", re.IGNORECASE)
"""In a program: `requests.post(`."""

_PLACEHOLDER = re.compile(r"\{.*\}|<.*>|:\w+|\$.+|\[.*\]")
_EXAMPLE = re.compile(r"(?:my|your|xxx|some|example).*", re.IGNORECASE)
_TRAILING = ".,;:!?*"
"""Of the sentence around it, or Markdown's."""


class AddressIndex:
    """Hosts and paths, and the methods that stand with them."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._bases: set[_Path] = set()
        """Paths that stand with a host: what another path may be put behind."""
        self._prefixes: set[_Path] = set()
        self._by_end: dict[_Path, set[_Path]] = defaultdict(set)
        """Of each end of a path, as it stands and in general: the paths, in general."""
        self._methods: dict[_Path, set[str]] = defaultdict(set)

    def read(self, text: str) -> None:
        """Adds what `text` says. Its only method, or the one it labels so, is that of its paths."""
        general = set(_LABELLED_METHOD.findall(text)) or {
            method
            for line in text.split("\n")
            if not _ADDRESS.search(line)
            for method in _methods_in(line)
        }
        for line in text.split("\n"):
            found = _ADDRESS.findall(line)
            of_line = _methods_in(line) if found else set()
            for method, address in found:
                self._add(address, {method} if method else of_line or general)

    def _add(self, address: str, methods: set[str]) -> None:
        host, path = _split(address)
        if host:
            self._hosts.add(host)
            self._bases.add(path)
        general = tuple(map(_general, path))
        self._methods[general] |= methods
        for i in range(min(len(path), _MOST_PARTS)):
            self._prefixes.add(path[: i + 1])
            for form in {path[i:], general[i:]}:
                self._by_end[form].add(general)

    def holds(self, mention: Mention) -> bool:
        """Whether host and path of a target occur, and its method with that path."""
        host, path = _split(mention.target)
        if mention.foreign and (host or path[:2] not in self._prefixes):
            return True
        if host and host not in self._hosts:
            return False
        if not path:
            return True
        full = self._resolve(path)
        if not full:
            return mention.target.endswith("/") and path in self._prefixes
        return not mention.method or any(mention.method in self._methods[f] for f in full)

    def _resolve(self, path: _Path) -> set[_Path]:
        """The known paths that `path` is, ends, or begins with a known base."""
        general = tuple(map(_general, path))
        lenient = tuple("{}" if _EXAMPLE.fullmatch(part) else part for part in general)
        full: set[_Path] = set()
        for form in {path, general, lenient}:
            full |= self._by_end.get(form, set())
        for i in range(1, min(len(path), _MOST_PARTS)):
            if path[:i] in self._bases and general[i:] in self._methods:
                full.add(general[i:])
        return full


def _methods_in(line: str) -> set[str]:
    return {*_METHOD.findall(line), *(name.upper() for name in _CALLED.findall(line))}


def _split(address: str) -> tuple[str, _Path]:
    """Host, empty without one, and the parts of the path."""
    try:
        parts = urlsplit(address.rstrip(_TRAILING))
    except ValueError:  # such as a bracket that does not close
        return "", (address,)
    path = parts.path.rstrip(_TRAILING)  # what stood before a query
    return parts.netloc.lower(), tuple(part for part in path.split("/") if part)


def _general(part: str) -> str:
    """A part of a path, `{}` where it stands for a value or is one."""
    is_value = part.isdigit() or sum(map(str.isdigit, part)) > 2
    return "{}" if is_value or _PLACEHOLDER.fullmatch(part) else part
