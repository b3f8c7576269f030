"""Citation marks in what a model wrote: `[1]`, `[1][2]`, `[1-3]`, `[1, 2]`, `【1】`, `［1］`.
Closed links: an answer leads only to pages that were retrieved, and to what the user wrote.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_NO_MARK = r"```.*?(?:```|\Z)|`[^`\n]*`|(?<=[A-Za-z_])\[\d+\](?=\.[a-z_])"
"""Code, and an index such as `orders[0].id`."""

_NUMBERS = r"\d{1,3}(?:\s{0,3}[-–—~～至,，、;；]\s{0,3}\d{1,3})*"
_MARK = re.compile(
    rf"{_NO_MARK}|[ \t]*(?:\[\^?|［|【)\s{{0,3}}(?P<numbers>{_NUMBERS})\s{{0,3}}"
    r"(?:†[^\]】］\n]{0,40})?[\]］】]",
    re.DOTALL,
)
_RANGE = re.compile(r"(\d+)\s*[-–—~～至]\s*(\d+)|(\d+)")
_CANONICAL = re.compile(rf"{_NO_MARK}|\[(?P<number>\d{{1,3}})\]", re.DOTALL)


@dataclass(frozen=True)
class CitedText:
    """A text whose marks are all `[n]`, each n the number of a chunk that was shown."""

    text: str
    numbers: tuple[int, ...]
    """The chunks cited, in the order of their first mark, each once."""
    unknown: int
    """Numbers taken out because no chunk has them."""


def resolve_citations(text: str, count: int) -> CitedText:
    """`text` with its marks resolved against chunks numbered 1 to `count`.

    A number that no chunk has goes; it is not taken for its neighbour.
    """
    numbers: dict[int, None] = {}
    unknown = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal unknown
        if match["numbers"] is None:
            return match[0]
        named = _expanded(match["numbers"])
        known = [n for n in named if 1 <= n <= count]
        unknown += len(named) - len(known)
        numbers.update(dict.fromkeys(known))
        space = " " if known and match[0][0] in " \t" else ""
        return space + "".join(f"[{n}]" for n in known)

    resolved = _MARK.sub(replaced, text).strip()
    return CitedText(resolved, tuple(numbers), unknown)


def without_marks(text: str) -> str:
    """A resolved `text` without its marks: what it states."""
    return _CANONICAL.sub(lambda m: m[0] if m["number"] is None else "", text).strip()


def _expanded(numbers: str) -> list[int]:
    """`1-3, 5` as 1, 2, 3, 5; each once, in this order."""
    found: list[int] = []
    for first, last, single in _RANGE.findall(numbers):
        found += range(int(first), int(last) + 1) if first and int(first) <= int(last) else []
        found += [int(n) for n in (single,) if n]
        found += [int(first), int(last)] if first and int(first) > int(last) else []
    return list(dict.fromkeys(found))


_URL = r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()（）\[\]【】「」，。；、！？]+(?:\([^\s()]*\)[^\s<>\"'`()（）\[\]，。；、]*)*"
_LINK = re.compile(
    rf"!?\[(?P<label>[^\]\n]{{0,500}})\]\(\s*<?(?P<target>[^)\s>]{{1,2000}})>?[^)\n]{{0,200}}\)"
    rf"|<(?P<auto>{_URL})>|(?P<bare>{_URL})",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?*_~|"


class AllowedLinks:
    """What an answer may link: pages, what stands in the question, and where the API is called."""

    def __init__(
        self, pages: Iterable[str], question: str, hosts: Iterable[str], shown: Iterable[str]
    ) -> None:
        """`hosts` are the platform's own: an address there may be stated where its path is in `shown`,
        the texts that the answer rests on.
        """
        self._pages = {_shape(page) for page in pages if page}
        self._asked = {_shape(found) for found in urls(question)}
        self._hosts = tuple(host.lower() for host in hosts)
        self._shown = "\n".join(shown)

    def allows(self, url: str) -> bool:
        """Whether `url` may stay."""
        return _shape(url) in self._pages | self._asked or self._is_called(url)

    def close(self, text: str) -> tuple[str, int]:
        """`text` without the links that may not stay, and how many they were; a label stays as text."""
        refused = 0

        def replaced(match: re.Match[str]) -> str:
            nonlocal refused
            url, tail = _cut(match["target"] or match["auto"] or match["bare"])
            label = match["label"]
            if label and re.fullmatch(r"\^?\d{1,3}", label):
                refused += not self.allows(url)
                return f"[{label}]"  # a citation that was made a link
            if self.allows(url):
                return match[0]
            refused += 1
            return label if label is not None else tail

        return _LINK.sub(replaced, text), refused

    def _is_called(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").lower()
        except ValueError:  # such as half an IPv6 address
            return False
        if parts.scheme not in ("http", "https") or parts.fragment:
            return False
        ours = any(host == known or host.endswith(f".{known}") for known in self._hosts)
        path = parts.path.rstrip("/")
        return ours and (self._shows(path) if path else not parts.query)

    def _shows(self, path: str) -> bool:
        return bool(re.search(rf"{re.escape(path)}(?![\w/.-]*\w)", self._shown))


def urls(text: str) -> list[str]:
    """The addresses in `text`, as they stand there."""
    found = (m["target"] or m["auto"] or m["bare"] for m in _LINK.finditer(text))
    return [_cut(url)[0] for url in found]


def _cut(url: str) -> tuple[str, str]:
    """`url` without the punctuation of the sentence that it ends, and that punctuation."""
    kept = url.rstrip(_TRAILING)
    return kept, url[len(kept) :]


def _shape(url: str) -> str:
    """What two ways to write one address have in common."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/")
