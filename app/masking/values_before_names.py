"""Finds secrets by the name after them, as in "we use … as the signing key" or "用 … 作为密钥".

The module is separate from `named_values.py` because the value has to be found before its name is known.
"""

import re
from collections.abc import Iterator

from app.masking.secret_names import (
    NAME_TOKENS,
    SecretKind,
    is_plausible_without_separator,
    secret_kind,
    unqualified_name,
)
from app.masking.text_spans import TextSpan, is_chosen_password, match_end

_VALUE_AND_LINK = re.compile(
    r"(?<![!-~])[\"'`(<\[]?"
    r"(?P<value>(?=[!-~]{0,255}[0-9])[A-Za-z0-9!@#$^*+][!-&(-;=?-_a-z{|}~]{5,255}?)"
    r"[\"'`)>\]”’」』】》）›]?"
    r"(?:[ ]?(?:作为|当作|当成|当做|当|做|设置?[为成]|[填写][为到入]|就?是)|[ ](?:as|is|was)(?=[ ]))",
)
"""A word with a digit, and the words that link it to a name after it."""

_QUALIFIERS = re.compile(
    r"(?:[ ](?:my|our|his|her|their|your|its|the|a|an|this|that|new|old|current|own)){0,4}[ ]?"
    r"(?:[我你他她咱们的该本新旧]|公司|平台|应用|系统|后台|登[录陆入]|支付|管理员|用户|账[号户]){0,4}[ ]?"
)
"""The words between the link and the name, such as "my" or 我们的."""
_UNMASKED_KINDS = (None, SecretKind.PUBLIC, SecretKind.PERSONAL)
"""The kinds that are not masked here. Personal data are recognised by their format."""
_WORD = re.compile(r"[a-z]{1,12}[ ]")
_MAX_WORDS = 2
"""Maximum number of English words between the qualifiers and the name: "shop" in "as the shop secret"."""

_NOUN = re.compile(
    r"[-_ ]?(?:policy|grant|type|field|header|param|name|endpoint|algorithm|url|rule|hash|manager|format"
    r"|length|page|flow|store|cipher|version|method|id\b|prefix|suffix|part|size|server|service|tool"
    r"|class|resource|call\b|expiry|library|package|dependency"
    r"|字段|参数|算法|编码|管理|模式|类型|长度|校验|服务|工具|规则|控件|策略|框|库|名|文件|接口|方式|前缀|后缀|头)",
    re.IGNORECASE,
)
"""A word after the name which shows that the name is part of another term, such as "token endpoint"."""

_NOT_SECRET = re.compile(
    r".*\d\.\d.*"  # a version
    r"|.*(?:19|20)\d\d[-/.]\d{1,2}[-/.]\d.*"  # a date
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"  # a dotted identifier
    r"|@[\w.-]+/.*"  # a scoped package
)


def find_values_before_names(text: str) -> Iterator[TextSpan]:
    """Yield the secrets in `text` that precede their names."""
    for match in _VALUE_AND_LINK.finditer(text):
        name = _name_at(text, match_end(_QUALIFIERS, text, match.end()))
        kind = secret_kind(name) if name else None
        if kind not in _UNMASKED_KINDS and _is_secret(kind, match["value"]):
            yield TextSpan(*match.span("value"), unqualified_name(name))


def _name_at(text: str, position: int) -> str:
    """Return the name of a secret that starts at `position`, or at most `_MAX_WORDS` words later.

    Returns "" if no name starts there, or if the name is part of another term such as "token endpoint".
    """
    for _ in range(_MAX_WORDS + 1):
        name = NAME_TOKENS.match(text, position)
        if name and name["name"] and secret_kind(name["name"]):
            return "" if _NOUN.match(text, name.end()) else name["name"]
        word = _WORD.match(text, position)
        if word is None:
            break
        position = word.end()
    return ""


def _is_secret(kind: SecretKind, value: str) -> bool:
    if _NOT_SECRET.fullmatch(value) or not is_plausible_without_separator(kind, value):
        return False
    return kind is not SecretKind.PASSWORD or value.isdigit() or is_chosen_password(value)
