"""Which links an answer may contain: retrieved pages, URLs of the question, documented API endpoints."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_URL = r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()（）\[\]【】「」，。；、！？]+(?:\([^\s()]*\)[^\s<>\"'`()（）\[\]，。；、]*)*"
_LINK = re.compile(
    rf"!?\[(?P<label>[^\]\n]{{0,500}})\]\(\s*<?(?P<target>[^)\s>]{{1,2000}})>?[^)\n]{{0,200}}\)"
    rf"|<(?P<auto>{_URL})>|(?P<bare>{_URL})",
    re.IGNORECASE,
)
_CITATION_LABEL = re.compile(r"\^?\d{1,3}")
_TRAILING_PUNCTUATION = ".,;:!?*_~|"


class LinkPolicy:
    """Decides which links of an answer are kept."""

    def __init__(
        self, pages: Iterable[str], question: str, hosts: Iterable[str], texts: Iterable[str]
    ) -> None:
        """Allow `pages`, the URLs in `question`, and documented endpoints of the platform.

        `hosts` are the platform's own hosts, subdomains included. A URL there is allowed if its path
        occurs in `texts`, the chunks that the answer is based on.
        """
        self._allowed = {_normalise(page) for page in pages if page}
        self._allowed |= {_normalise(url) for url in extract_urls(question)}
        self._hosts = tuple(host.lower() for host in hosts)
        self._text = "\n".join(texts)

    def allows(self, url: str) -> bool:
        """Whether an answer may contain `url`."""
        return _normalise(url) in self._allowed or self._is_documented_endpoint(url)

    def remove_disallowed(self, text: str) -> tuple[str, int]:
        """Return `text` without disallowed links, and how many there were; their labels stay as text."""
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
    """Return the URLs in `text` as written, in order."""
    return [_split_punctuation(_link_url(match))[0] for match in _LINK.finditer(text)]


def _link_url(match: re.Match[str]) -> str:
    return match["target"] or match["auto"] or match["bare"]


def _split_punctuation(url: str) -> tuple[str, str]:
    """`url` and the punctuation of the sentence that follows it."""
    stripped = url.rstrip(_TRAILING_PUNCTUATION)
    return stripped, url[len(stripped) :]


def _normalise(url: str) -> str:
    """`url` with scheme and host in lower case and without a trailing slash."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/")
