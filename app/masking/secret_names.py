"""Recognises the names of secrets, and decides whether the value after a name is a secret.

Names can be parameters, headers, variables or words in prose.
"""

import re
from enum import Enum, IntEnum
from functools import lru_cache

from app.masking.text_spans import ENCODED, has_digit, is_chosen_password, is_random


class SecretKind(Enum):
    """The kind of value that a name stands for. Each kind has its own rules of plausibility."""

    KEY = "key"
    SECRET = "secret"
    PASSWORD = "password"
    TOKEN = "token"
    SIGN = "sign"
    OPAQUE = "opaque"
    """The value is a secret only if it looks random.

    For example, the value of `code` may be a status, and the value of `key` the name of a field.
    """
    ONE_TIME = "one-time"
    AUTHORIZATION = "authorization"
    COOKIE = "cookie"
    PERSONAL = "personal"
    PUBLIC = "public"
    """Never a secret. Order numbers, trace ids and digests are not masked, because support needs them."""


_LATIN = {
    SecretKind.COOKIE: r"cookie|setcookie",
    SecretKind.AUTHORIZATION: r"(?:x|proxy)?authorization",
    SecretKind.ONE_TIME: r"otp|totp|vcode|captcha|passcode|pin(?:code|number)?|cvc2?|cvv2?"
    r"|(?:verify|verification|sms|mfa|2fa|security|recovery|backup)code",
    SecretKind.PERSONAL: r"\w*(?:phone|mobile|telephone|e?mail)(?:no|num|number|address)?"
    r"|tel(?:no|number)?|fax"
    r"|\w*(?:idcard|identitycard|bankcard)(?:no|num|number)?"
    r"|(?:identity|idcard|id|card|bankaccount|passport|socialsecurity)(?:no|num|number)|passport|iban|ssn",
    SecretKind.PASSWORD: r"\w*(?:password|passwort|kennwort|passwd|passphrase|pwd)|pw|pass"
    r"|(?:db|mysql|redis|smtp|mail|ftp|login|user|root|admin|require)pass",
    SecretKind.SECRET: r"\w*(?:secret|credentials?)"
    r"|\w*(?:secret|private|aes|des|rsa|encrypt|encryption|sign|signing|signature|hmac|license|master)key",
    SecretKind.TOKEN: r"\w*(?:token|jwt|sessionkey|sessionid)|(?:user|shop|top)?session|phpsessid|sessid"
    r"|\w*(?:auth|authorization|grant)code|xauth",
    SecretKind.SIGN: r"(?:\w*signature|sig|sign(?:ed)?(?:value|str|string|result)?)",
    SecretKind.KEY: r"\w*(?:apikey|accesskey|accesskeyid|privatekeyid"
    r"|secretid|accessid|clientkey|consumerkey|authkey)",
    SecretKind.OPAQUE: r"code|key|auth|bearer|x?hmac|\w*ticket|ak|sk|webhook",
    SecretKind.PUBLIC: r"\w*(?:appkey|publickey|publishablekey|cert|certificate)"
    r"|(?:app|client|open|union|corp|mch|msg|k|r|u|trace|request|req|log|span|order"
    r"|trade|refund|waybill|shipment|tracking|item|sku"
    r"|product|shop|task|batch|out)?(?:id|no|sn|number|uuid|digest|hash|checksum)"
    r"|trace|request|traceparent|etag|commit|blob|tree|revision|fingerprint|md5|sha1|sha256|sha512"
    r"|serial|cursor|state|challenge|ifnonematch|image|container|timestamp|nonce(?:str)?|amount",
}
"""Maps each kind to a pattern for its names in Latin letters, in lower case and without separators.

If a name matches several patterns, the first one counts.
"""
_CHINESE = {
    SecretKind.PERSONAL: "手机号码|手机号|手机|联系电话|电话号码|电话|固话|座机|邮箱地址|邮箱|电子邮件|电邮"
    "|证件号码|证件号|身份证号码|身份证号|身份证字号|身份证|身分证号码|身分证号|身分证字号|身分证|银行卡号|银行卡|卡号|护照号码|护照号|护照|通行证号码|通行证号|通行证|台胞证"
    "|社保号码|社保号",
    SecretKind.ONE_TIME: "短信验证码|安全码|验证码|校验码|动态码|动态口令",
    SecretKind.PASSWORD: "密码|口令|通行码",
    SecretKind.SECRET: "密钥|秘钥|密匙|私钥|金钥",
    SecretKind.TOKEN: "访问令牌|刷新令牌|令牌|权杖|授权码|会话密钥|凭证|凭据",
    SecretKind.SIGN: "签名值|签名串|签名结果|签名",
    SecretKind.PUBLIC: "订单编号|订单号|运单号|快递单号|单号|流水号|流水|编号|请求号|请求标识|商品编码"
    "|日志号|序列号|标识|链路|摘要|哈希|校验和|公钥|证书|游标|时间戳",
}
"""Maps kinds to their Chinese names, separated by `|`."""
_LATIN_KINDS = [(kind, re.compile(pattern)) for kind, pattern in _LATIN.items()]
_CHINESE_KINDS = {word: kind for kind, words in _CHINESE.items() for word in words.split("|")}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FINAL_NUMBER = re.compile(r"[-_][0-9]+$")
"""The number at the end of a name such as X-Hub-Signature-256."""
_MAX_NAME_WORDS = 4
"""Maximum number of words to check at the end of a name such as client_app_secret_key."""

_PEOPLE = {
    "user", "username", "account", "login", "member", "contact", "receiver", "sender",
    "my", "his", "her", "their", "our",
}  # fmt: skip
"""Words for people, whose ids and numbers may be telephone numbers."""

_PUBLIC_QUALIFIERS = {
    "key": {
        "idempotency", "cache", "dedupe", "sort", "primary", "partition", "foreign", "object", "routing",
    },
    "token": {"page", "next", "continuation", "sync"},
    "secret": {"existing"},  # existingSecret: the name of a Kubernetes secret
    "sign": {"to"},  # string_to_sign
}  # fmt: skip
"""Maps the last word of a name to words that make the name public, as `page` does in page_token."""

_NAME_WITHOUT_SECRET = re.compile(r"(?:(?=.{1,12}$)|(?!.*\d))[^\W\d][\w $-]{0,60}")
"""A name that contains no secret itself, because it is short or has no digit."""

NAME_TOKENS = re.compile(
    rf"(?=[A-Za-z_%\\一-龥])(?:{ENCODED}"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.$-]{0,79}(?<=[A-Za-z0-9_])"
    r"(?:[ ](?:key|secret|token|code|id|no|number|card|security number)\b|[ ]?码)?"
    rf"|{'|'.join(sorted(_CHINESE_KINDS, key=len, reverse=True))}))",
    re.IGNORECASE,
)
"""Matches a possible `name` or an escape sequence.

Escape sequences are matched so that their letters do not become part of a name. The lookahead makes the
search faster, because it rejects most characters that cannot start a match.
"""


@lru_cache(maxsize=1_024)
def secret_kind(name: str) -> SecretKind | None:
    """Return the kind of value that `name` stands for, or None if the name is not known.

    Case and separators usually do not matter: app_key, appKey, X-App-Key and config.APPKEY have the same
    kind. For the ids and numbers of people, such as user_id, the result is None instead of PUBLIC. Their
    values may be telephone numbers, which are not searched for in the values of PUBLIC names.
    """
    if (chinese := _CHINESE_KINDS.get(name)) is not None:
        return chinese
    name = _FINAL_NUMBER.sub("", name)
    words = [word.lower() for word in _WORD.findall(name)][-_MAX_NAME_WORDS:]
    if words and _PUBLIC_QUALIFIERS.get(words[-1], set()).intersection(words):
        return SecretKind.PUBLIC
    endings = ["".join(words[start:]) for start in range(len(words))]
    for ending in endings:  # the longest first: `appkey` is public, `key` may be a secret
        for kind, pattern in _LATIN_KINDS:
            if pattern.fullmatch(ending):
                return None if kind is SecretKind.PUBLIC and _PEOPLE.intersection(words) else kind
    return None


def names_secret(name: str) -> bool:
    """Return whether `name` stands for a secret or for personal data."""
    return secret_kind(name) not in (None, SecretKind.PUBLIC)


def unqualified_name(name: str) -> str:
    """Return the part of `name` after its last dot or space, as the label that replaces the value.

    If that part might itself contain a secret, return "secret".
    """
    last = name.rpartition(".")[2].rpartition(" ")[2]
    return last if _NAME_WITHOUT_SECRET.fullmatch(last) else "secret"


class SyntaxConfidence(IntEnum):
    """How strongly the syntax around a text indicates that the text is a value."""

    SENTENCE = 0
    """In a sentence, a table row or the arguments of a call, as in `put("token", "…")`."""
    LABELLED = 1
    """After a colon, where both values and explanations occur."""
    ASSIGNED = 2
    """After an assignment, an option or a tag, as in "token=…", "--token …" and "<token>…"."""
    QUOTED = 3
    """A quoted literal that is assigned, as in token = "…"."""


# The patterns from here to `_PERSONAL` are matched with a whole value, or with a word of a passphrase.
_PLACEHOLDER = re.compile(
    r"[<{\[(‹$].*|%\w+%?|[#@!](?:\{.*|[A-Za-z_.]*|\d+)|\?[A-Za-z ]+|[xX*.#_-]+|.*(?-i:EXAMPLE).*"
    r"|.*(?:\*{3}|x{4}|[-_]x{3}$|\.{2}$|\.{3}|…|‹|›|\$\{|\{\{|[<{]\w+[>}]).*"
    r"|(?:your|my|some|the|test|demo|example|sample)?[-_ ]?"
    r"(?:app|api|access|secret|client|user|new|old|refresh)?[-_ ]?"
    r"(?:key|secret|token|password|passwd|pass|pwd|sign|signature|session|value)"
    r"|.*@(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|test|invalid)"  # reserved domains
    r"|(?:your|my|some|insert|replace|enter|put|change|redacted|masked|hidden)(?:[-_ ].*|me)?",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"(?:true|false|null|none|nil|undefined|nan|yes|no|on|off|ok|empty|blank"
    r"|str(?:ing)?|int(?:eger)?|long|number|bool(?:ean)?|object|array|list|map|text|bytes|varchar|uuid|jwt|type"
    r"|optional|mandatory|deprecated|missing|invalid|valid|expired|wrong|incorrect|correct|error|failed|failure"
    r"|success|unauthorized|forbidden|denied|mismatch|unknown|header|query|body|path|form|cookie|param(?:eter)?"
    r"|refresh(?:ed)?|generated?|returned|issued|revoked|basic|bearer|digest|oauth\d?(?:\.\d)?|isv|this|that|what|how|why|when|not"
    r"|uppercase|lowercase|upper|lower|encrypted|encoded|plain|same|different|changed|required\W?|login|user|admin)"
    r"|(?:hmac|md5|sha|rsa|aes|des|sm[234]|[ehpr]s(?:256|384|512)|hex|base64|utf|gbk|ascii|pkcs|pbkdf|bcrypt|scrypt|argon|ecdsa|ed25519|rfc)[-_/a-z0-9]{0,24}"
    r"|\d+(?:\.\d+)?(?:ms|s|sec|min|m|h|d|days?|hours?|minutes?|bits?|bytes?|chars?|位|%)"
    r"|(?:[0-9A-F]{2}:){7,}[0-9A-F]{2}"  # the fingerprint of a certificate
    r"|\d{1,3}[-~]\d{1,3}|v?\d+(?:\.\d+){1,3}",
    re.IGNORECASE,
)
_URL_OR_PATH = re.compile(
    r"[a-z]{2,10}://.*|/[a-z_]+(?:/[a-z_.-]+)*/?|[\w./-]+\.(?:pem|key|crt|cer|p12|pfx|jks)",
    re.IGNORECASE,
)
_PATH = re.compile(r"[~.]{0,2}/(?:[\w.@-]+/)+[\w.@-]*")
_NAME = re.compile(r"[A-Za-z_]+(?:-[A-Za-z]+)*")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*")
_SOURCE_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\+)[A-Za-z_]\w*)*;?")
_MEMBER = re.compile(r"[a-z][A-Za-z_]*(?:\.[A-Za-z_]+){1,6}(?:[!;]|\(\))?")
_WORDS = re.compile(r"[A-Za-z]+(?:[._-][A-Za-z]+)*")
_PERSONAL = re.compile(
    r"(?:\+|%2B)?[\d() -]{5,24}[\dXx]|[A-Z]{1,2}\d{7,20}|[^\s@]+(?:@|%40)[^\s@]+"
)

_CHARACTER_CLASS = re.compile(r"[aA0]-[zZfF9]|\\[dwsx]")
_ENCLOSED_ONE_TIME_CODE = re.compile(r"\d{4,8}")
_CAPITALISED_WORD = re.compile(r"[A-Z][a-z]{3,}")
_ONE_TIME_CODE = re.compile(r"\d{3,10}|(?=\D*\d)[A-Za-z0-9-]{4,10}")

_MIN_CHARS = {
    SecretKind.KEY: 4,
    SecretKind.SECRET: 4,
    SecretKind.PASSWORD: 3,
    SecretKind.TOKEN: 4,
    SecretKind.SIGN: 8,
    SecretKind.AUTHORIZATION: 6,
    SecretKind.COOKIE: 4,
}
"""Minimum length of a secret by kind, in characters."""

_MAX_CHECKED_CHARS = 256
"""Maximum length of a value that is checked in detail, in characters."""

_MIN_LETTERS_ONLY_CHARS = 8
"""Minimum length, in characters, of an assigned secret without digits; does not apply to `_WORD_KINDS`."""

_WORD_KINDS = {SecretKind.SECRET, SecretKind.PASSWORD}
"""The kinds of secrets for which people choose words."""


def is_plausible(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    """Return whether `value` can be a secret of `kind`.

    For example, placeholders, types, URLs and unquoted source code are not plausible.
    """
    if len(value) > _MAX_CHECKED_CHARS:
        return kind is SecretKind.COOKIE or (value.isascii() and " " not in value)
    if _is_placeholder_or_explanation(value):
        return False
    if kind is SecretKind.PERSONAL:
        return _PERSONAL.fullmatch(value) is not None
    if kind is SecretKind.ONE_TIME:
        return _ONE_TIME_CODE.fullmatch(value) is not None
    if kind is SecretKind.OPAQUE:
        return " " not in value and is_random(value, min_chars=12)
    if confidence < SyntaxConfidence.QUOTED and _is_source_code(value):
        return False
    if " " in value and kind not in (SecretKind.COOKIE, SecretKind.AUTHORIZATION):
        return (
            kind in _WORD_KINDS and confidence is SyntaxConfidence.QUOTED and _is_passphrase(value)
        )
    return len(value) >= _MIN_CHARS[kind] and _has_secret_characters(kind, value, confidence)


def is_placeholder(value: str) -> bool:
    """Return whether `value` is a placeholder: for example, <token> or an e-mail address at example.com."""
    return _PLACEHOLDER.fullmatch(value) is not None


def _is_placeholder_or_explanation(value: str) -> bool:
    """Return whether `value` is a placeholder, an explanation, a URL or path, or the name of a secret."""
    if any(pattern.fullmatch(value) for pattern in (_PLACEHOLDER, _EXPLANATION, _URL_OR_PATH)):
        return True
    if _PATH.fullmatch(value) and not is_random(value):
        return True
    return _NAME.fullmatch(value) is not None and names_secret(value)


def is_plausible_without_separator(kind: SecretKind, value: str) -> bool:
    """Return whether `value` can be a secret of `kind` right after its name, as in "password hunter22"."""
    if not is_plausible(kind, value, SyntaxConfidence.SENTENCE):
        return False
    if kind in (SecretKind.PERSONAL, SecretKind.ONE_TIME):
        return True
    if kind is SecretKind.PASSWORD and value.isdigit():
        return len(value) >= 6
    if kind is not SecretKind.PASSWORD and any(map(names_secret, _CAPITALISED_WORD.findall(value))):
        return False  # a name such as TokenV2Header
    if kind in (SecretKind.KEY, SecretKind.PASSWORD) and len(value) >= 8:
        return has_digit(value)
    return is_random(value, min_chars=12)


def is_plausible_enclosed(kind: SecretKind, value: str, opening: str) -> bool:
    """Return whether `value` can be a secret of `kind` between `opening` and its closing mark.

    The name or a separator is right before the opening mark, as in `password "hunter22"`. In round brackets
    and Chinese book title marks (《》), explanations such as (RFC-6749) are frequent, so the rules are
    stricter.
    """
    if kind is SecretKind.ONE_TIME:
        return _ENCLOSED_ONE_TIME_CODE.fullmatch(value) is not None
    if not is_plausible(kind, value, SyntaxConfidence.SENTENCE):
        return False
    if kind is SecretKind.PERSONAL:
        return True
    if opening == "[" and _CHARACTER_CLASS.search(value):
        return False  # a regular expression
    if is_random(value, min_chars=8):
        return True
    if opening in "{<":
        return False  # a placeholder
    if kind in _WORD_KINDS and is_chosen_password(value):
        return True
    return (opening not in "（(《〈" or value.isdigit()) and is_plausible_without_separator(
        kind, value
    )


def is_plausible_below(kind: SecretKind, value: str) -> bool:
    """Return whether `value` can be a secret of `kind` if it is alone on a line below its name.

    The text may be a list of field names, in which the next word is another name. The value must therefore
    be random. A password may instead look as if a person chose it, but must then contain a capital letter.
    """
    if not is_plausible(kind, value, SyntaxConfidence.SENTENCE):
        return False
    return is_random(value, min_chars=12) or (
        kind is SecretKind.PASSWORD and is_chosen_password(value) and not value.islower()
    )


def _has_secret_characters(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    if not value.isascii():
        return kind in _WORD_KINDS and has_digit(value)
    if value.isdigit():
        return _is_secret_number(kind, value, confidence)
    if has_digit(value):
        return confidence > SyntaxConfidence.SENTENCE or len(value) >= 6
    if confidence is SyntaxConfidence.SENTENCE:
        return is_random(value)
    if kind in _WORD_KINDS:
        return True
    if confidence is SyntaxConfidence.LABELLED:
        return is_random(value, min_chars=12)
    if len(value) < _MIN_LETTERS_ONLY_CHARS:
        return False
    return not _WORDS.fullmatch(value) or is_random(value, min_chars=_MIN_LETTERS_ONLY_CHARS)


def _is_secret_number(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    """Return whether a number is a secret rather than a duration or an error code."""
    if kind in (SecretKind.KEY, SecretKind.PASSWORD, SecretKind.SECRET):
        return confidence > SyntaxConfidence.SENTENCE or len(value) >= 6
    return len(value) >= (6 if confidence >= SyntaxConfidence.ASSIGNED else 8)


def _is_source_code(value: str) -> bool:
    """Return whether `value` is source code, such as md5(text), config.token or appSecret+params."""
    if _CALL.fullmatch(value) or _MEMBER.fullmatch(value):
        return True
    if not _SOURCE_CODE.fullmatch(value):
        return False
    parts = re.split(r"\W+|\d+$", value)
    return any(names_secret(part) for part in parts if not has_digit(part))


def _is_passphrase(value: str) -> bool:
    words = value.split()
    return len(words) <= 5 and has_digit(value) and not any(map(_EXPLANATION.fullmatch, words))
