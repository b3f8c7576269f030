"""Citation marks in model output: `[1]`, `[1][2]`, `[1-3]`, `[1, 2]`, `【1】`, `［1］`."""

import re
from dataclasses import dataclass

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


@dataclass(frozen=True)
class CitedText:
    """A text whose citation marks all have the form `[n]`, n being the number of an existing chunk."""

    text: str
    numbers: tuple[int, ...]
    """Numbers of the cited chunks in the order of their first mark, each once."""
    unknown: int
    """How many numbers were removed because no chunk has them."""


def resolve_citations(text: str, count: int) -> CitedText:
    """Return `text` with its marks resolved to chunks numbered 1 to `count`.

    Numbers without a chunk are removed; they are not mapped to another chunk.
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
    """Return a resolved `text` without its citation marks."""
    return _CANONICAL_MARK.sub(lambda m: m[0] if m["number"] is None else "", text).strip()


def _expand_numbers(numbers: str) -> list[int]:
    """`1-3, 5` as 1, 2, 3, 5; each once, in this order."""
    expanded: dict[int, None] = {}
    for match in _RANGE_OR_NUMBER.finditer(numbers):
        expanded.update(dict.fromkeys(_expand_range(match)))
    return list(expanded)


def _expand_range(match: re.Match[str]) -> list[int]:
    if match["single"]:
        return [int(match["single"])]
    first, last = int(match["first"]), int(match["last"])
    return list(range(first, last + 1)) if first <= last else [first, last]
