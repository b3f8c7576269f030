"""Rewrites the Markdown of an answer.

The functions resolve, renumber and remove citation marks (`[1]`, `[1-3]`), remove links that are not
allowed, remove the sentences that contain given facts (names, paths, codes), and replace program code
with spaces.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ingestion.text.sentences import split_sentences
from runnables.grounding.addresses import PATH, URL
from runnables.grounding.names import ANY_METHOD

_CODE = r"```.*?(?:```|\Z)|`[^`\n]*`"
_NOT_A_MARK = rf"{_CODE}|(?<=[A-Za-z_])\[\d+\](?=\.[a-z_])"
"""Code, or an array index as in `orders[0].id`. Neither contains citation marks."""

_NUMBERS = r"\d{1,3}(?:\s{0,3}[-–—~～至,，、;；]\s{0,3}\d{1,3})*"
_MARK = re.compile(
    rf"{_NOT_A_MARK}|[ \t]*(?:\[\^?|［|【)\s{{0,3}}(?P<numbers>{_NUMBERS})\s{{0,3}}"
    r"(?:†[^\]】］\n]{0,40})?[\]］】]",
    re.DOTALL,
)
_RANGE_OR_NUMBER = re.compile(r"(?P<first>\d+)(?:\s*[-–—~～至]\s*(?P<last>\d+))?")
_CANONICAL_MARK = re.compile(rf"{_NOT_A_MARK}|\[(?P<number>\d{{1,3}})\]", re.DOTALL)


_URL = r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`()（）\[\]【】「」，。；、！？]+(?:\([^\s()]*\)[^\s<>\"'`()（）\[\]，。；、]*)*"
_LINK = re.compile(
    rf"!?\[(?P<label>[^\]\n]{{0,500}}+)\]\(\s*+<?(?P<target>[^)\s>]{{1,2000}}+)>?[^)\n]{{0,200}}+\)"
    rf"|<(?P<auto>{_URL})>|(?P<bare>{_URL})",
    re.IGNORECASE,
)
_ANCHOR = re.compile(
    rf"{_CODE}|<a\s[^<>]{{0,200}}?href=[\"']?(?P<target>[^\"'\s<>]{{0,2000}})(?=[\"'\s>])[^<>]{{0,200}}>"
    r"(?P<label>[^\[\]\n]{0,500}?)</a>",
    re.IGNORECASE | re.DOTALL,
)
_DEFINITION = re.compile(
    rf"^ {{0,3}}\[(?P<name>[^\[\]\n]{{1,100}})\]:[ \t]*<?(?P<url>{_URL})>?"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^)\n]*\)))?[ \t]*(?:\n|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
"""The definition of a reference link, such as `[ref]: https://example.com "title"`."""

_REMOVED = "\0"
"""Marks the place of a removed URL."""

_AROUND_REMOVED = re.compile(
    r"[ \t]{0,3}(?:\(\0\)|（\0）|`\0`|\*\*\0\*\*|\"\0\"|“\0”|「\0」)"
    r"|^[ \t]{0,3}(?:[-*•]|#{1,6}|\d{1,2}[.)])[ \t]{0,3}\0[ \t]*(?:\n|\Z)"
    r"|[ \t]{0,3}\0(?=[.,;:!?)\]`\"。，；：！？、）」”]|[ \t]*$)"
    r"|(?<![^\s(（])\0[ \t]+"
    r"|\0",
    re.MULTILINE,
)
"""The place of a removed URL, with empty brackets, an empty list item or a superfluous space."""

_CITATION_LABEL = re.compile(r"\^?\d{1,3}")
_TRAILING_PUNCTUATION = ".,;:!?*_~|"

_FENCE_WITH_LANGUAGE = re.compile(r"\s{0,3}(?:```+|~~~+)\s*(\w*)")
_DATA_LANGUAGES = {
    "", "json", "json5", "jsonc", "http", "text", "txt", "yaml", "yml", "xml", "md", "markdown",
}  # fmt: skip
"""Languages of code fences that contain data or text instead of a program."""

_API_TOKEN = re.compile(rf"\"[^\"\n]*\"|'[^'\n]*'|\b(?:{ANY_METHOD})\b|{URL}|{PATH}", re.ASCII)
"""A string, an HTTP method or an address: the parts of a program that concern the API."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INDIVISIBLE = re.compile(r"\s*(?:[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})")
"""Start of a list item, a table row or a fence."""


@dataclass(frozen=True)
class CitedText:
    """A text whose citation marks all have the form `[n]` and refer to existing chunks."""

    text: str
    numbers: tuple[int, ...]
    """Distinct numbers of the cited chunks, in order of their first mark."""
    unknown_count: int
    """Count of numbers that were removed because no chunk has them."""


def resolve_citations(text: str, count: int) -> CitedText:
    """Rewrite the citation marks in `text` to the form `[n]`, for chunks numbered 1 to `count`.

    Numbers without a chunk are removed. A list that contains 0, such as `[0, 1]`, is not a mark.
    """
    numbers: dict[int, None] = {}
    unknown_count = 0

    def resolve(match: re.Match[str]) -> str:
        nonlocal unknown_count
        if match["numbers"] is None:
            return match[0]
        cited = _expand_numbers(match["numbers"])
        if 0 in cited and len(cited) > 1:
            return match[0]
        valid = [number for number in cited if 1 <= number <= count]
        unknown_count += len(cited) - len(valid)
        numbers.update(dict.fromkeys(valid))
        space = " " if valid and match[0][0] in " \t" else ""
        return space + "".join(f"[{number}]" for number in valid)

    resolved = _MARK.sub(resolve, text).strip()
    return CitedText(resolved, tuple(numbers), unknown_count)


def last_citation(text: str) -> int | None:
    """Return the number of the last mark `[n]` in `text`, or None if there is no mark."""
    numbers = [match["number"] for match in _CANONICAL_MARK.finditer(text) if match["number"]]
    return int(numbers[-1]) if numbers else None


def strip_citations(text: str) -> str:
    """Return `text`, the text of a CitedText, without its citation marks."""
    return _CANONICAL_MARK.sub(
        lambda match: match[0] if match["number"] is None else "", text
    ).strip()


def renumber_citations(text: str, number_of: Callable[[int], int | None]) -> str:
    """Return `text`, the text of a CitedText, with the numbers that `number_of` returns.

    A mark for which `number_of` returns None is unchanged. Equal marks that directly follow each other
    become one.
    """
    previous: tuple[int, int] | None = None

    def renumber(match: re.Match[str]) -> str:
        nonlocal previous
        if match["number"] is None:
            return match[0]
        number = number_of(int(match["number"]))
        if number is None:
            return match[0]
        is_repeated = previous == (match.start(), number)
        previous = match.end(), number
        return "" if is_repeated else f"[{number}]"

    return _CANONICAL_MARK.sub(renumber, text)


def _expand_numbers(numbers: str) -> list[int]:
    """Return the distinct numbers in `numbers`, in order: 1, 2, 3 and 5 for `1-3, 5`."""
    expanded: dict[int, None] = {}
    for match in _RANGE_OR_NUMBER.finditer(numbers):
        first, last = int(match["first"]), int(match["last"] or match["first"])
        is_range = first <= last  # `3-1` is not
        expanded.update(dict.fromkeys(range(first, last + 1) if is_range else (first, last)))
    return list(expanded)


class LinkPolicy:
    """Decides which links an answer may contain."""

    def __init__(
        self, pages: Iterable[str], question: str, hosts: Iterable[str], texts: Iterable[str]
    ) -> None:
        """Allow `pages`, the URLs in `question`, and documented endpoints of the platform.

        `hosts` are the platform's own hosts; their subdomains count as well. An endpoint on one of the
        hosts is documented if its path occurs in `texts`, the texts of the chunks behind the answer. A URL
        without path and query, such as `https://acme.com/`, needs no documentation. A URL with a fragment
        is not an endpoint.
        """
        self._allowed = {_normalise(page) for page in pages if page}
        self._allowed |= {_normalise(url) for url in extract_urls(question)}
        self._hosts = tuple(host.lower() for host in hosts)
        self._text = "\n".join(texts)

    def allows(self, url: str) -> bool:
        """Return whether an answer may contain `url`."""
        return _normalise(url) in self._allowed or self._is_documented_endpoint(url)

    def remove_disallowed(self, text: str) -> tuple[str, int]:
        """Return `text` with labels instead of disallowed links, and the number of disallowed links.

        A disallowed URL without a label is replaced by its path if a chunk contains the path. Otherwise, it
        is removed, with empty brackets and superfluous spaces around it. Any link whose label is a number
        becomes a citation mark.
        """
        text, removed = self._remove_definitions(_ANCHOR.sub(_to_markdown_link, text))

        def replace(match: re.Match[str]) -> str:
            nonlocal removed
            url, punctuation = _split_punctuation(_link_url(match))
            label, is_allowed = match["label"], self.allows(url)
            removed += not is_allowed
            if label and _CITATION_LABEL.fullmatch(label):
                return f"[{label}]"  # a citation mark written as a link
            if is_allowed:
                return match[0]
            if label is None:
                return (self._documented_path(url) or _REMOVED) + punctuation
            return label or _REMOVED

        replaced = _LINK.sub(replace, text.replace(_REMOVED, ""))
        return _AROUND_REMOVED.sub("", replaced), removed

    def _remove_definitions(self, text: str) -> tuple[str, int]:
        """Return `text` without the definitions of disallowed reference links, and their number.

        Each use of such a link, `[text][ref]` or `[ref]`, is replaced by its label.
        """
        disallowed = [d for d in _DEFINITION.finditer(text) if not self.allows(d["url"])]
        for definition in disallowed:
            text = text.replace(definition[0], "")
        for name in {definition["name"] for definition in disallowed}:
            if not _CITATION_LABEL.fullmatch(name):
                label = rf"(?:([^\[\]\n]{{1,500}})\]\[)?({re.escape(name)})"
                reference = rf"{_CODE}|(?<!\w)!?\[{label}\](?:\[\])?"
                text = re.sub(reference, lambda m: m[1] or m[2] or m[0], text, flags=re.I)
        return text, len(disallowed)

    def _documented_path(self, url: str) -> str:
        """Return the path of `url` if the chunks contain it; empty otherwise."""
        try:
            path = urlsplit(url).path.rstrip("/")
        except ValueError:  # such as an incomplete IPv6 address
            return ""
        return path if path and self._mentions_path(path) else ""

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
    """Return the targets of links and the bare URLs in `text`, as written and in order."""
    return [_split_punctuation(_link_url(match))[0] for match in _LINK.finditer(text)]


def _to_markdown_link(match: re.Match[str]) -> str:
    is_code = match["label"] is None
    return match[0] if is_code else f"[{match['label']}]({match['target'] or '#'})"


def _link_url(match: re.Match[str]) -> str:
    return match["target"] or match["auto"] or match["bare"]


def _split_punctuation(url: str) -> tuple[str, str]:
    """Split `url` into the URL itself and the punctuation of the sentence after it."""
    stripped = url.rstrip(_TRAILING_PUNCTUATION)
    return stripped, url[len(stripped) :]


def _normalise(url: str) -> str:
    """Return `url` with scheme and host in lower case and without trailing slashes.

    A URL without `://` is converted to lower case as a whole.
    """
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{separator}{host.lower()}{slash}{path}".rstrip("/")


def blank_program_code(text: str) -> str:
    """Return `text` with fenced program code blanked out, except strings, HTTP methods and addresses.

    Variable names in program code are not claims about the platform.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    language: str | None = None
    for line in text.split("\n"):
        fence = _FENCE_WITH_LANGUAGE.match(line)
        if fence:
            language = fence[1].lower() if language is None else None
        is_kept = not fence and (language is None or language in _DATA_LANGUAGES)
        lines.append(line if is_kept else _blank_line(line))
    return "\n".join(lines)


def _blank_line(line: str) -> str:
    blanked = [" "] * len(line)
    for match in _API_TOKEN.finditer(line):
        blanked[match.start() : match.end()] = match[0]
    return "".join(blanked)


def remove_sentences_with(statement: str, facts: Sequence[str]) -> str:
    """Return `statement` without the sentences that contain one of `facts`.

    A code fence, a table row and the first line of a list item count as one sentence each. Citation marks
    belong to the sentence before them. The result is empty if no word is left.
    """
    patterns = [
        re.compile(rf"(?<![A-Za-z0-9_]){re.escape(fact)}(?![A-Za-z0-9_])") for fact in facts if fact
    ]
    kept = [
        sentence
        for sentence in split_markdown(statement)
        if not any(pattern.search(sentence) for pattern in patterns)
    ]
    text = "".join(kept).strip()
    return text if re.search(r"\w", strip_citations(text)) else ""


def split_markdown(text: str) -> Iterator[str]:
    """Yield the sentences, list items, table rows and code fences of `text`. No character is left out."""
    prose: list[str] = []
    for block in _blocks(text):
        if _INDIVISIBLE.match(block):
            yield from split_sentences("".join(prose))
            prose = []
            yield block
        else:
            prose.append(block)
    yield from split_sentences("".join(prose))


def _blocks(text: str) -> Iterator[str]:
    """Yield each code fence as a whole and each other line, including line ends."""
    fence = ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        marker = _FENCE.match(line)
        lines.append(line)
        if not fence and marker:
            fence = marker[1]
        elif fence and marker and marker[1].startswith(fence) and not line.strip(" `~\r\n"):
            fence = ""
        if not fence:
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines)
