"""What a question asks for: its needs, and the kinds of quantities.

A need is a kind of content that the question asks for, such as error codes or steps. A quantity is a kind
of number that the question asks for, such as a time or a size.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from runnables.question.error_codes import error_codes
from runnables.question.query_analysis import asks_about_code
from schemas.document import SectionKind
from schemas.question import StructuredQuestion

Need = Literal[
    "error", "permission", "parameter", "common", "header", "response", "quantity", "endpoint",
    "comparison", "difference", "steps", "field", "returned", "meaning",
]  # fmt: skip
"""A kind of content that a question asks for. These names are similar:

- `parameter` is a parameter of a request. `field` is a field, column, type or value, also of a response.
  `common` is a parameter that all calls share.
- `response` is anything about a response. `returned` is what a call returns: "which fields does it return".
- `comparison` is any choice or comparison, such as "A or B". `difference` is how two things differ.
"""

AskedQuantity = Literal["time", "size", "length", "count", "money"]

CALL_NEEDS: frozenset[Need] = frozenset({"endpoint", "steps", "parameter"})
"""If a question has one of these needs, an answer that quotes an API may add its required parameters."""

_PATTERNS: Mapping[Need, re.Pattern[str]] = {
    "error": re.compile(
        r"错误|报错|异常|失败|状态码|返回\s*[a-z][\w.-]*\s*(?:怎么|是什么|什么意思|啥|如何|的?原因)"
        r"|\b(?:err(?:or)?s?|fail(?:s|ed|ure|ing)?|exceptions?|status codes?)\b",
        re.I,
    ),
    "permission": re.compile(
        r"权限|\b(?:permissions?|scopes?|roles?|access level)\b", re.I
    ),
    "response": re.compile(
        r"返回|出参|响应|回包|\b(?:responses?|returns?|returned|output|comes? back)\b"
        r"|(?<!\d)20\d\s*(?:还是|or)\s*20\d(?!\d)",  # which success status
        re.I,
    ),
    "parameter": re.compile(
        r"参数|字段|入参|必填|必传|请求[体头]|(?<![上宣流透])传(?![输送递感真统播]|\s?\d+\s?[kmg]b?(?![a-z]))|填|取值|枚举|可选"
        r"|\b(?:param(?:eter)?s?|fields?|arguments?|required|optional|mandatory|body|headers?|values?|flags?"
        r"|options?|settings?|default)\b",
        re.I,
    ),
    "field": re.compile(
        r"字段|[哪那]一?列|取值|枚举|类型|状态"
        r"|\b(?:fields?|columns?|types?|enums?|attributes?|propert(?:y|ies)|values?|status(?:es)?)\b",
        re.I,
    ),
    "returned": re.compile(
        r"返回(?:的|了|哪些|什么)*(?:字段|值|参数|哪些|什么)"
        r"|\b(?:response|returned) (?:field|value|parameter)s?\b|\b(?:what|which)\b.{1,80}\breturns?\b",
        re.I,
    ),
    "common": re.compile(r"公共|通用|\b(?:common|public|every call|all (?:apis|calls))\b", re.I),
    "header": re.compile(r"请求头|消息头|(?<![a-z])headers?(?![a-z])", re.I),
    "quantity": re.compile(
        r"多少|多久|多长|多大|几|上限|下限|最[多少大小长短]|限制|限流|频率|封顶|间隔|有效期|默认"
        r"|\b(?:how (?:many|much|long|often|fast|big|large|old|soon)|limits?|max(?:imum)?|min(?:imum)?|most"
        r"|largest|biggest|longest|fewest|least|quota|rate|timeout|expires?|cost|size)\b",
        re.I,
    ),
    "endpoint": re.compile(
        r"接口|哪个\s*api|地址|\b(?:endpoints?|apis?|urls?|routes?|methods?|call)\b", re.I
    ),
    "comparison": re.compile(
        r"区别|不同|差别|相比|对比|还是|\b(?:differ(?:s|ent|ence)?|versus|vs|compared?|or)\b", re.I
    ),
    "difference": re.compile(
        r"区别|不同|差别|差异|差在|不一样|一样吗"
        r"|\b(?:differ(?:s|ent|ence)?|versus|vs|(?:behave|work)s? the same|the same as)\b",
        re.I,
    ),
    "meaning": re.compile(
        r"什么意思|啥意思|含义|是什么(?:错误?|异常|原因|问题)|\bmean(?:s|ing)?\b"
        r"|\bwhat (?:is|are) (?:the )?error",
        re.I,
    ),
    "steps": re.compile(
        r"怎么|怎样|如何|咋|步骤|流程|\bhow\s+(?:do|to|can|should|would)\b|\bsteps\b", re.I
    ),
}  # fmt: skip

_SECTIONS: Mapping[SectionKind, frozenset[Need]] = {
    "request_url": frozenset({"endpoint", "steps"}),
    "request_parameters": frozenset({"parameter", "quantity", "steps"}),
    "response_parameters": frozenset({"response", "field"}),
    "public_parameters": frozenset({"common"}),
    "request_headers": frozenset({"header"}),
    "error_codes": frozenset({"error"}),
    "permission_package": frozenset({"permission"}),
}


_NAMED_VALUE = (
    r"[\"'`“]?(?:(?i:(?:access|refresh|auth|bearer)?[ _]?token)|(?=[a-z]+[A-Z]|[A-Za-z]+_)[A-Za-z]\w*)"
    r"[\"'`”]?(?![\w.(/])"
)
_ASKS_FOR_SOURCE = re.compile(
    rf"(?:怎么样?|怎样|如何|咋|哪里|哪儿)(?:才?能|可以|去)?(?:拿到?|获取|获得|得到|取得|取)\s?{_NAMED_VALUE}"
    rf"|(?<![\w./]){_NAMED_VALUE}\s?(?:是|要|应该|该|在)?(?:从|去|到)?(?:哪里|哪儿?|怎么|怎样|如何|咋)"
    r"(?:获取|获得|得到|取得|拿|取|来)"
    rf"|\b(?i:(?:how|where) (?:do|can|should|would) (?:i|we) (?:get|obtain|fetch|find)(?: an?| the| my)?)"
    rf" {_NAMED_VALUE}",
    re.ASCII,
)
"""Asks where a named value comes from, such as "how do I get an access token" and orderId 从哪来."""


# The lookbehind keeps a search linear: a long word is tried from its first character only.
_PATH = re.compile(
    r"(?<![\w.:{}-])[\w.:{}-]*+(?:/[\w.:{}-]++)+(?:/?\?[\w.%[\]-]+=[\w.%[\]{}<>:,=&+-]*)?", re.ASCII
)
"""A path with its query, or only the host and path of a URL with its query."""


def needs_of(text: str, structured: StructuredQuestion | None = None) -> frozenset[Need]:
    """Return the needs of a question; empty if its words show none.

    Words in paths and in the queries of URLs are ignored.

    A question such as "how do I get an access token" asks where a named value comes from. It asks what an
    API returns, not how to call the APIs that need the value.

    In "which fields does it return", "fields" does not ask about the parameters of a request. In "returns
    40014" and "which errors does it return", "return" does not ask about the fields of a response.
    """
    needs = _needs_in(text)
    if "error" in needs or (structured and structured.error):
        return needs - {"response", "returned"} | {"error"}
    return needs


@lru_cache(maxsize=1_000)
def _needs_in(text: str) -> frozenset[Need]:
    """Return the needs that the words of a question show.

    Cached, because several pipeline steps analyse the same question.
    """
    words = _PATH.sub(" ", text)
    needs = {need for need, pattern in _PATTERNS.items() if pattern.search(words)}
    if not _PATTERNS["parameter"].search(_PATTERNS["returned"].sub(" ", words)):
        needs.discard("parameter")
    if _ASKS_FOR_SOURCE.search(text):
        needs = needs - {"steps", "parameter"} | {"returned", "response"}
    if error_codes(text) or asks_about_code(text):
        needs.add("error")
    return frozenset(needs)


_ASKS_FOR_DEFINITION = re.compile(
    r"(?:what(?:['’]s| is| are) (?:an? |the )?|(?:什么|啥)(?:是|叫))(?P<term>[^\s?？,，、的].{1,40}?)\W*"
    r"|(?P<subject>[^\s?？,，、的][^的]{1,20}?)(?:是|指的?是?)(?:什么|啥)(?:东西)?\W*",
    re.IGNORECASE,
)
"""Matches a question for the definition of a term, such as "what is a webhook?"."""


def term_to_define(question: str) -> str:
    """Return the term whose definition `question` asks for, such as "webhook"; empty if there is none."""
    match = _ASKS_FOR_DEFINITION.fullmatch(question.strip())
    return match["term"] or match["subject"] if match else ""


@lru_cache(maxsize=1_000)
def _definition_pattern(term: str) -> re.Pattern[str]:
    name = r"[\s-]+".join(map(re.escape, term.split()))
    return re.compile(
        rf"(?:\A|[.:;!?]\s|[。：；！？\n])\W*(?:an? |the )?{name}\W*(?:[(（][^()（）]*[)）]\W*)?"
        r"(?:(?:is|are)\s+(?:an?|the|one|any)\s|refers? to\s|(?:是|指)(?!否|不是|什么))",
        re.IGNORECASE,
    )


def states_definition(text: str, term: str) -> bool:
    """Return whether a sentence of `text` begins like a definition of `term`: "A webhook is a ..."."""
    return bool(term) and _definition_pattern(term).search(text) is not None


def fits(kind: SectionKind, needs: frozenset[Need]) -> bool:
    """Return whether a section of this kind usually meets one of `needs`."""
    return bool(_SECTIONS.get(kind, frozenset()) & needs)


_NUMBER_WORD = (
    r"[一二两三四五六七八九十百千万]+"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|sixty|ninety)\b"
)
_NUMBER = rf"(?:\d[\d,.]*|{_NUMBER_WORD})\s*(?:个)?\s*"

_PRICE = r"how much (?:is|are|for|does .{1,40} cost)\b"
"""Asks for a price, unlike "how much" in other questions, which asks for a count."""

_ASKED: Mapping[AskedQuantity, re.Pattern[str]] = {
    "time": re.compile(
        r"多久|多长|几(?:秒|分钟|小时|天|个月)|有效期|过期|超时|间隔|每隔|什么时候|何时"
        r"|\b(?:how (?:long|often|soon|old)|when|expir\w*|time ?outs?|ttl|retention|valid (?:for|until)"
        r"|lifetime|interval|duration|deadline|keep|kept)\b",
        re.IGNORECASE,
    ),
    "size": re.compile(
        r"多大|最大|大小|体积|\d ?(?:[kmg]b|(?-i:M))(?![A-Za-z0-9_])"
        r"|\b(?:how (?:big|large)|sizes?|largest|biggest|too (?:big|large))\b",
        re.IGNORECASE,
    ),
    "length": re.compile(
        r"多长|长度|(?:多少|几)个?字|\b(?:how long|lengths?|characters?|chars?|longest)\b",
        re.IGNORECASE,
    ),
    "count": re.compile(
        r"多少(?!钱)|几[个次条张人项层级]|最多|上限|频率|qps|限流|限制"
        rf"|\b(?:how (?:many|often|fast)|(?!{_PRICE})how much|max(?:imum)?|limits?|limited|rate"
        r"|quotas?|most|at once|batch)\b",
        re.IGNORECASE,
    ),
    "money": re.compile(
        r"多少钱|费用|收费|价格"
        rf"|\b(?:prices?|pricing|costs?|charged?|fees?|{_PRICE})\b",
        re.IGNORECASE,
    ),
}
"""Matches the words of a question that ask for a quantity."""

_STATED: Mapping[AskedQuantity, re.Pattern[str]] = {
    "time": re.compile(
        _NUMBER
        + r"(?:ms\b|毫秒|s\b|sec|秒|min|分钟|h\b|hour|小时|day|天|日|week|周|month|月|year|年)"
        r"|每(?:秒|分钟|小时|天|日|周|月|年)"
        r"|\b(?:hourly|daily|weekly|monthly|(?:every|once an?) (?:minute|hour|day|week|month))\b",
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
"""Matches a quantity in the text of a document."""


def asked_quantities(question: str) -> frozenset[AskedQuantity]:
    """Return the kinds of quantities that `question` asks for; empty for most questions."""
    return frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))


def states_quantity(text: str, kinds: frozenset[AskedQuantity]) -> bool:
    """Return whether `text` contains a quantity of one of `kinds`, such as "5 MB" or "at most 5"."""
    return any(_STATED[kind].search(text) for kind in kinds)
