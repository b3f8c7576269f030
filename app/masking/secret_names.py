"""Recognises the names of secrets, which can be parameters, headers, variables or words in prose."""

import re
from enum import Enum
from functools import lru_cache

from app.masking.text_spans import ENCODED


class SecretKind(Enum):
    """The kind of value that a name stands for. Each kind has its own rules of plausibility."""

    KEY = "key"
    SECRET = "secret"
    PASSWORD = "password"
    TOKEN = "token"
    SIGN = "sign"
    OPAQUE = "opaque"
    """A secret only if it looks random, because `code` may be a result and `key` the name of a field."""
    ONE_TIME = "one-time"
    AUTHORIZATION = "authorization"
    COOKIE = "cookie"
    PERSONAL = "personal"
    PUBLIC = "public"
    """Never a secret, such as order numbers, trace ids and digests, which support needs."""


_LATIN = {
    SecretKind.COOKIE: r"cookie|setcookie",
    SecretKind.AUTHORIZATION: r"(?:x|proxy)?authorization",
    SecretKind.ONE_TIME: r"otp|totp|vcode|captcha|passcode"
    r"|(?:verify|verification|sms|mfa|2fa|security)code",
    SecretKind.PERSONAL: r"\w*(?:phone|mobile|telephone|e?mail)(?:no|num|number|address)?"
    r"|tel(?:no|number)?|fax"
    r"|\w*(?:idcard|identitycard|bankcard)(?:no|num|number)?"
    r"|(?:identity|idcard|id|card|bankaccount)(?:no|num|number)",
    SecretKind.PASSWORD: r"\w*(?:password|passwd|passphrase|pwd)"
    r"|(?:db|mysql|redis|smtp|user|root|admin)pass",
    SecretKind.SECRET: r"\w*(?:secret|credentials?)"
    r"|\w*(?:secret|private|aes|des|rsa|encrypt|encryption|sign|signing|signature|hmac|license|master)key",
    SecretKind.TOKEN: r"\w*(?:token|jwt|sessionkey|sessionid)|(?:user|shop|top)?session|phpsessid|sessid"
    r"|\w*(?:auth|authorization|grant)code",
    SecretKind.SIGN: r"(?:\w*signature|sig|sign(?:ed)?(?:value|str|string|result)?)",
    SecretKind.KEY: r"\w*(?:appkey|apikey|accesskey|accesskeyid"
    r"|secretid|accessid|clientkey|consumerkey|authkey)",
    SecretKind.OPAQUE: r"code|key|\w*ticket|ak|sk|webhook",
    SecretKind.PUBLIC: r"(?:trace|request|req|log|span|order"
    r"|trade|refund|waybill|shipment|tracking|item|sku"
    r"|product|shop|task|batch|out)?(?:id|no|sn|number|uuid|digest|hash|checksum)"
    r"|trace|traceparent|etag|commit|blob|tree|revision|fingerprint|md5|sha1|sha256|sha512"
    r"|timestamp|nonce|amount",
}
_CHINESE = {
    SecretKind.PERSONAL: "手机号码|手机号|手机|联系电话|电话号码|电话|固话|座机|邮箱地址|邮箱|电子邮件"
    "|身份证号码|身份证号|身份证|银行卡号|银行卡|卡号",
    SecretKind.ONE_TIME: "短信验证码|验证码|校验码|动态码|动态口令",
    SecretKind.PASSWORD: "密码|口令",
    SecretKind.SECRET: "密钥|秘钥|私钥",
    SecretKind.TOKEN: "访问令牌|刷新令牌|令牌|授权码|会话密钥|凭证|凭据",
    SecretKind.SIGN: "签名值|签名串|签名结果|签名",
    SecretKind.PUBLIC: "订单编号|订单号|运单号|快递单号|单号|流水号|编号|请求号|请求标识|商品编码"
    "|摘要|哈希|时间戳",
}
_LATIN_KINDS = [(kind, re.compile(pattern)) for kind, pattern in _LATIN.items()]
_CHINESE_KINDS = {word: kind for kind, words in _CHINESE.items() for word in words.split("|")}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_NAME_WORDS = 4
"""Maximum number of words to check at the end of a name such as client_app_secret_key."""

_PEOPLE = {"user", "username", "account", "login", "member", "contact", "receiver", "sender"}
"""Words for people, whose ids and numbers may be telephone numbers."""

_PLAIN = re.compile(r"(?:(?=.{1,12}$)|(?!.*\d))[^\W\d][\w $-]{0,60}")
"""A name that cannot contain a secret itself, unlike a long name with a digit."""

NAME_TOKENS = re.compile(
    rf"{ENCODED}"
    r"|(?P<name>(?:app|api|access|secret|session|private|client|signing|encryption|trace|request|order"
    r"|phone|mobile|verification|security|sms|bank|card|auth)[ ]"
    r"(?:key|secret|token|code|id|no|number|card)\b"
    r"|[A-Za-z_][A-Za-z0-9_.$-]{0,79}(?<=[A-Za-z0-9_])"
    rf"|{'|'.join(sorted(_CHINESE_KINDS, key=len, reverse=True))})",
    re.IGNORECASE,
)
"""Matches a possible `name`, or an encoded character, which ends a name."""


@lru_cache(maxsize=1_024)
def secret_kind(name: str) -> SecretKind | None:
    """Return the kind of value that `name` stands for, or None if it is not a known name.

    The spelling does not matter: app_key, appKey, X-App-Key and config.APPKEY have the same kind.
    """
    if (chinese := _CHINESE_KINDS.get(name)) is not None:
        return chinese
    words = [word.lower() for word in _WORD.findall(name)][-_MAX_NAME_WORDS:]
    endings = ["".join(words[start:]) for start in range(len(words))]
    for kind, pattern in _LATIN_KINDS:
        if any(pattern.fullmatch(ending) for ending in endings):
            return None if kind is SecretKind.PUBLIC and _PEOPLE.intersection(words) else kind
    return None


def names_secret(name: str) -> bool:
    """Return whether `name` stands for a secret."""
    return secret_kind(name) not in (None, SecretKind.PUBLIC)


def unqualified_name(name: str) -> str:
    """Return the last part of a dotted name, which is used as the label of a mask.

    If that part might itself contain a secret, return "secret".
    """
    last = name.rpartition(".")[2]
    return last if _PLAIN.fullmatch(last) else "secret"
