"""Resolution of citation marks (`[1]`, `[1-3]`, `【1】`), and removal of links that are not allowed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_NOT_A_MARK = r"```.*?(?:```|\Z)|`[^`\n]*`|(?<=[A-Za-z_])\[\d+\](?=\.[a-z_])"
"""Code, and an array index such as `orders[0].id`."""

_NUMBERS = r"\d{1,3}(?:\s{0,3}[-–—~～至,，、;；]\s{0,3}\d{1,3})*"
_MARK = re.compile(
    rf"{_NOT_A_MARK}|[ \t]*(?:\[\^?|［|【)\s{{0,3}}(?P<numbers>{_NUMBERS})\s{{0,3}}"
    r"(?:†[^\]】］\n]{0,40})?[\]］】]",
    re.DOTALL,
)
_RANGE_OR_NUMBER = re.compile(r"(?P<first>\d+)\s*[-–—~～至]\s*(?P<last>\d+)|(?P<single>\d+)")
_CANONICAL_MARK = re.compile(rf"{_NOT_A_MARK}|\[(?P<number>\d{{1,3}})\]", re.DOTALL)


_URL = r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()（）\[\]【】「」，。；、！？]+(?:\([^\s()]*\)[^\s<>\"'`()（）\[\]，。；、]*)*"
_LINK = re.compile(
    rf"!?\[(?P<label>[^\]\n]{{0,500}})\]\(\s*<?(?P<target>[^)\s>]{{1,2000}})>?[^)\n]{{0,200}}\)"
    rf"|<(?P<auto>{_URL})>|(?P<bare>{_URL})",
    re.IGNORECASE,
)
_CITATION_LABEL = re.compile(r"\^?\d{1,3}")
_TRAILING_PUNCTUATION = ".,;:!?*_~|"


@dataclass(frozen=True)
class CitedText:
    """A text whose citation marks all have the form `[n]` and refer to existing chunks."""

    text: str
    numbers: tuple[int, ...]
    """Distinct numbers of the cited chunks, in order of their first mark."""
    unknown: int
    """How many numbers were removed because no chunk has them."""


def resolve_citations(text: str, count: int) -> CitedText:
    """Rewrite the citation marks in `text` to the form `[n]`, for chunks numbered 1 to `count`.

    Numbers without a chunk are removed.
    """
    numbers: dict[int, None] = {}
    unknown = 0

    def resolve(match: re.Match[str]) -> str:
        nonlocal unknown
        if match["numbers"] is None:
            return match[0]
        cited = _expand_numbers(match["numbers"])
        valid = [number for number in cited if 1 <= number <= count]
        unknown += len(cited) - len(valid)
        numbers.update(dict.fromkeys(valid))
        space = " " if valid and match[0][0] in " \t" else ""
        return space + "".join(f"[{number}]" for number in valid)

    resolved = _MARK.sub(resolve, text).strip()
    return CitedText(resolved, tuple(numbers), unknown)


def strip_citations(text: str) -> str:
    """Return `text`, the text of a CitedText, without its citation marks."""
    return _CANONICAL_MARK.sub(
        lambda match: match[0] if match["number"] is None else "", text
    ).strip()


def _expand_numbers(numbers: str) -> list[int]:
    """Return the distinct numbers in `numbers`, in order: 1, 2, 3 and 5 for `1-3, 5`."""
    expanded: dict[int, None] = {}
    for match in _RANGE_OR_NUMBER.finditer(numbers):
        expanded.update(dict.fromkeys(_expand_range(match)))
    return list(expanded)


def _expand_range(match: re.Match[str]) -> list[int]:
    if match["single"]:
        return [int(match["single"])]
    first, last = int(match["first"]), int(match["last"])
    return list(range(first, last + 1)) if first <= last else [first, last]


class LinkPolicy:
    """Decides which links an answer may contain."""

    def __init__(
        self, pages: Iterable[str], question: str, hosts: Iterable[str], texts: Iterable[str]
    ) -> None:
        """Allow `pages`, the URLs in `question`, and documented endpoints of the platform.

        `hosts` are the platform's own hosts; their subdomains count as well. A URL on one of them is
        allowed if its path occurs in `texts`, the texts of the chunks that the answer is based on.
        """
        self._allowed = {_normalise(page) for page in pages if page}
        self._allowed |= {_normalise(url) for url in extract_urls(question)}
        self._hosts = tuple(host.lower() for host in hosts)
        self._text = "\n".join(texts)

    def allows(self, url: str) -> bool:
        """Return whether an answer may contain `url`."""
        return _normalise(url) in self._allowed or self._is_documented_endpoint(url)

    def remove_disallowed(self, text: str) -> tuple[str, int]:
        """Replace disallowed links with their labels; return the text and the number of these links."""
        removed = 0

        def replace(match: re.Match[str]) -> str:
            nonlocal removed
            url, punctuation = _split_punctuation(_link_url(match))
            label, is_allowed = match["label"], self.allows(url)
            removed += not is_allowed
            if label and _CITATION_LABEL.fullmatch(label):
                return f"[{label}]"  # a citation mark written as a link
            if is_allowed:
                return match[0]
            return label if label is not None else punctuation

        return _LINK.sub(replace, text), removed

    def _is_documented_endpoint(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").lower()
        except ValueError:  # such as an incomplete IPv6 address
            return False
        if parts.scheme not in ("http", "https") or parts.fragment:
            return False
        if not any(host == own or host.endswith(f".{own}") for own in self._hosts):
            return False
        path = parts.path.rstrip("/")
        return self._mentions_path(path) if path else not parts.query

    def _mentions_path(self, path: str) -> bool:
        return bool(re.search(rf"{re.escape(path)}(?![\w/.-]*\w)", self._text))


def extract_urls(text: str) -> list[str]:
    """Return the URLs in `text`, as written and in order."""
    return [_split_punctuation(_link_url(match))[0] for match in _LINK.finditer(text)]


def _link_url(match: re.Match[str]) -> str:
    return match["target"] or match["auto"] or match["bare"]


def _split_punctuation(url: str) -> tuple[str, str]:
    """Split `url` into the URL itself and the punctuation of the sentence after it."""
    stripped = url.rstrip(_TRAILING_PUNCTUATION)
    return stripped, url[len(stripped) :]


def _normalise(url: str) -> str:
    """Return `url` with scheme and host in lower case and without a trailing slash."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/")
