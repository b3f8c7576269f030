"""What a question asks for, and which sections of an API document usually say it."""

import re
from collections.abc import Mapping
from typing import Literal

from runnables.question.extract_details import error_codes
from schemas.document import SectionKind
from schemas.question import StructuredQuestion

Need = Literal[
    "error",
    "permission",
    "parameter",
    "common",
    "header",
    "response",
    "quantity",
    "endpoint",
    "comparison",
    "steps",
]  # fmt: skip

CALL_NEEDS: frozenset[Need] = frozenset({"endpoint", "steps", "parameter"})
"""Needs for which an answer about an API says what a call needs."""

_PATTERNS: Mapping[Need, re.Pattern[str]] = {
    "error": re.compile(
        r"错误|报错|异常|失败|状态码"
        r"|\b(?:err(?:or)?s?|fail(?:s|ed|ure|ing)?|exceptions?|status codes?)\b",
        re.I,
    ),
    "permission": re.compile(
        r"权限|授权|\b(?:permissions?|scopes?|roles?|access level|allowed to)\b", re.I
    ),
    "response": re.compile(
        r"返回|出参|响应|回包|\b(?:responses?|returns?|returned|output|comes? back)\b", re.I
    ),
    "parameter": re.compile(
        r"参数|字段|入参|必填|必传|请求[体头]|传|填|取值|枚举|可选"
        r"|\b(?:param(?:eter)?s?|fields?|arguments?|required|optional|mandatory|body|headers?|values?|flags?"
        r"|options?|settings?|default)\b",
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
    "steps": re.compile(
        r"怎么|怎样|如何|咋|步骤|流程|\bhow\s+(?:do|to|can|should|would)\b|\bsteps\b", re.I
    ),
}  # fmt: skip

_SECTIONS: Mapping[SectionKind, frozenset[Need]] = {
    "request_url": frozenset({"endpoint", "steps"}),
    "request_parameters": frozenset({"parameter", "quantity", "steps"}),
    "response_parameters": frozenset({"response"}),
    "public_parameters": frozenset({"common"}),
    "request_headers": frozenset({"header"}),
    "error_codes": frozenset({"error"}),
    "permission_package": frozenset({"permission"}),
}


def needs_of(text: str, structured: StructuredQuestion | None = None) -> frozenset[Need]:
    """Return everything that the question asks for; empty if its words do not say it."""
    needs = {need for need, pattern in _PATTERNS.items() if pattern.search(text)}
    if (structured and structured.error) or error_codes(text):
        needs.add("error")
    return frozenset(needs)


def fits(kind: SectionKind, needs: frozenset[Need]) -> bool:
    """Return whether a section of this kind usually says what is asked for."""
    return bool(_SECTIONS.get(kind, frozenset()) & needs)
