"""The kinds of quantities that a question asks for, and whether a text states one of such a kind."""

import re
from collections.abc import Mapping
from typing import Literal

AskedQuantity = Literal["time", "size", "length", "count", "money"]

_WORD = r"[一二两三四五六七八九十百千万]+|\b(?:one|two|three|five|six|ten|thirty)\b"
_NUMBER = rf"(?:\d[\d,.]*|{_WORD})\s*(?:个)?\s*"

_ASKED: Mapping[AskedQuantity, re.Pattern[str]] = {
    "time": re.compile(
        r"多久|多长|几(?:秒|分钟|小时|天|个月)|有效期|过期|超时|间隔|每隔|什么时候|何时"
        r"|\b(?:how (?:long|often|soon|old)|when|expir\w*|time ?outs?|ttl|retention|valid (?:for|until)"
        r"|lifetime|interval|duration|deadline|keep|kept)\b",
        re.IGNORECASE,
    ),
    "size": re.compile(
        r"多大|大小|体积|\b(?:how (?:big|large)|sizes?|largest|biggest|too (?:big|large))\b|\d ?[kmg]b\b",
        re.IGNORECASE,
    ),
    "length": re.compile(
        r"多长|长度|(?:多少|几)个?字|\b(?:how long|lengths?|characters?|chars?|longest)\b",
        re.IGNORECASE,
    ),
    "count": re.compile(
        r"多少|几[个次条张人项层级]|最多|上限|频率|qps|限流|限制"
        r"|\b(?:how (?:many|often|much|fast)|max(?:imum)?|limits?|limited|rate|quotas?|most|at once"
        r"|batch)\b",
        re.IGNORECASE,
    ),
    "money": re.compile(
        r"多少钱|费用|收费|价格|\b(?:prices?|pricing|costs?|charged?|fees?)\b", re.IGNORECASE
    ),
}

_STATED: Mapping[AskedQuantity, re.Pattern[str]] = {
    "time": re.compile(
        _NUMBER
        + r"(?:ms\b|毫秒|s\b|sec|秒|min|分钟|h\b|hour|小时|day|天|日|week|周|month|月|year|年)",
        re.IGNORECASE,
    ),
    "size": re.compile(r"\d[\d.,]*\s*(?:[kmgt]i?b?\b|字节|bytes?|兆)", re.IGNORECASE),
    "length": re.compile(
        _NUMBER + r"(?:字符|字|位|characters?|chars?|bytes?|字节|tokens?)", re.IGNORECASE
    ),
    "count": re.compile(
        _NUMBER
        + r"(?:[次个条张人项层级倍名]|qps|requests?|calls?|times|items?|members?|users?|entries"
        r"|results|files?|per\b|/\s?(?:秒|s\b|sec|min|分钟|h\b|hour|day|天))"
        r"|(?:最多|上限|max\w*|at most|up to|limit\w*|不超过|≤|<=)\D{0,12}\d",
        re.IGNORECASE,
    ),
    "money": re.compile(r"[¥$€]\s?\d|\d\s?(?:元|分|美元|usd|cny|rmb|credits?)", re.IGNORECASE),
}


def asked_quantities(question: str) -> frozenset[AskedQuantity]:
    """Return the kinds of quantities that `question` asks for; empty for most questions."""
    return frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))


def states_quantity(text: str, kinds: frozenset[AskedQuantity]) -> bool:
    """Return whether `text` contains a number with a unit of one of the `kinds`."""
    return any(_STATED[kind].search(text) for kind in kinds)
