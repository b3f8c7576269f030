"""Citation marks in what a model wrote: `[1]`, `[1][2]`, `[1-3]`, `[1, 2]`, `【1】`, `［1］`."""

import re
from dataclasses import dataclass

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
