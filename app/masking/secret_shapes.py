"""Finds secrets by their format or the words around them, even without a name such as `password=`."""

import re
from collections.abc import Iterator

from app.masking.secret_names import NAME_TOKENS, is_placeholder, names_secret
from app.masking.text_spans import QUOTE, TextSpan, blank_out, is_product_name, is_random, match_end

_PEM_GAP = r"(?:\s|\\{1,4}[nr]|[\"'`+,>|\\])"
"""A character or an escaped line break between the lines of a PEM key, for example in source code."""

_SHAPES = [
    (
        "private_key",
        re.compile(
            rf"-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_PEM_GAP}{{0,80}}+"
            rf"(?:[A-Za-z-]{{4,20}}: [^\n\\]{{0,80}}{_PEM_GAP}{{1,80}}+){{0,4}}"
            rf"[A-Za-z0-9/+=]{{12,}}+(?:{_PEM_GAP}{{1,80}}+[A-Za-z0-9/+=]{{12,}}+)*+"
            rf"(?:(?:{_PEM_GAP}{{1,80}}+[A-Za-z0-9/+=]{{1,11}})?{_PEM_GAP}{{0,80}}"
            r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
    ),
    # https://user:password@host, and https://token@host
    ("password", re.compile(r"://[^\s:/@\"'<>‹]{0,80}:(?P<value>[^\s/@\"'<>‹]{1,200})@")),
    ("password", re.compile(r"://(?P<value>(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,200})@")),
    (
        "password",
        re.compile(
            r"curl\b[^\n]{0,400}?[\s\"'](?:-u|--user)(?:[\"'],\s{0,4}|[ =])?[\"']?[^\s:\"'‹,]{1,80}:"
            r"(?P<value>[^\s\"'‹]{1,200})"
        ),
    ),
    (
        "password",
        re.compile(
            r"(?:(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?\s-p"
            r"|(?:redis-cli\b[^\n]{0,200}?\s-a|docker\slogin\b[^\n]{0,200}?\s-p|sshpass\s-p)[ ]?[\"']?"
            r"|sqlplus\s[^\s/]{1,60}/(?=[^\s@]{1,60}@))"
            r"(?P<value>[^\s\"'‹]{3,200})"
        ),
    ),
    (
        "password",  # auth=("user", "password")
        re.compile(
            rf"auth\s{{0,3}}[=:]\s{{0,3}}[\[(]\s{{0,3}}{QUOTE}[^\s\"']{{1,80}}{QUOTE}\s{{0,3}},"
            rf"\s{{0,3}}{QUOTE}(?P<value>[^\s\"'‹›]{{1,200}})"
        ),
    ),
    (
        "password",  # new BasicAuth("user", "password")
        re.compile(
            rf"(?i:auth(?:enticat(?:ion|e))?|credentials?|login|[._]connect)\(\s{{0,3}}{QUOTE}[^\s\"']{{1,80}}{QUOTE}"
            rf"\s{{0,3}},\s{{0,3}}{QUOTE}(?P<value>(?=[^\s\"'‹›]{{0,200}}\d)[^\s\"'‹›/]{{6,200}}){QUOTE}"
        ),
    ),
    (
        "password",  # log in as user:password
        re.compile(
            r"(?i:\b(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?(?:in|on)|\blogin)[ ](?i:as|with)[ ]"
            r"[\w.@-]{1,60}:(?P<value>(?=[^\s]{0,60}\d\S{0,60}\d)[A-Za-z][^\s\"'`,;，。；、‹›]{6,60})"
        ),
    ),
    (
        "jwt",
        re.compile(
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
        ),
    ),
    (
        "authorization",
        re.compile(
            r"\b(?:Bearer|Basic)\s{1,4}"
            r"(?P<value>(?=[A-Za-z._~+/-]{0,200}[0-9=])[A-Za-z0-9._~+/-]{8,}={0,2})"
        ),
    ),
    (
        "key",
        re.compile(
            r"(?<![A-Za-z0-9])(?:"
            r"(?:sk|rk|ak|at|rt|npm|gh[opsur]|github_pat|gl[a-z]{1,4}t|xox[abeprs]|whsec|shp[a-z]{2})[-_]"
            r"(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{14,}"
            r"|(?:A[KS]IA|LTAI|AKID|AKLT|AIza|GOCSPX-|PMAK-|NRAK-|ya29\.|SG\.|hvs\.)"
            r"(?=[A-Za-z_.-]{0,60}[0-9])[A-Za-z0-9_.-]{12,}(?<![.-])"
            r"|hf_[A-Za-z]{30,}|[0-9a-f]{32}-us\d{1,2}|\d{8,10}:AA[A-Za-z0-9_-]{30,})"
        ),
    ),
    (
        "webhook",
        re.compile(
            r"hooks?(?=[./])[A-Za-z0-9_./-]{0,80}?(?:/|\?key=)"
            r"(?P<value>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:@[A-Za-z0-9@_/-]{1,300})?"
            r"|[A-Z0-9]{8,12}/[A-Z0-9]{8,12}/[A-Za-z0-9]{20,}|\d{15,20}/[A-Za-z0-9_-]{40,})"
        ),
    ),
]
"""Labels and patterns of secrets. If a pattern has a group, only the text of the group is the secret."""

_LOGIN = re.compile(
    r"登[录陆不]|[口密][令码]|账[号户]|\b(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?(?:in|on)\b"
    r"|\b(?:login|passwords?|credentials?)\b",
    re.IGNORECASE,
)
_TYPED = re.compile(
    r"(?:[用输试填入从][了的]?|\b(?:with|using|typed?|enter(?:ed)?|tried)[ ]|(?<=[\w)])[ ]?/)[ ]?"
    r"(?P<value>[A-Za-z0-9][!#-%*+.0-9?-\[\]-_a-z~-]{7,60})",
    re.IGNORECASE,
)
"""A string that someone may have entered to log in, as in "log in with …" or "admin / …"."""

_VERSION = re.compile(r"[A-Za-z]+[-_ ]?v?[0-9.]+")

_DIGEST_NAME = re.compile(
    r"(?<![A-Za-z])(?<!hmac[-_])(?:sha-?(?:1|256|384|512)|md5|checksum|digest|commit|revision|git\b)(?!\()"
    r"|摘要|校验和|哈希",
    re.IGNORECASE,
)

_SIGNED_STRING = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.&=:+-]{23,4000}")
_WORD = re.compile(r"[A-Za-z]{4}")
_MIN_WRAPPER_CHARS = 8
_MAX_WRAPPER_CHARS = 128
"""Minimum and maximum length, in characters, of a secret that begins and ends a string to sign.

For example, a1b2c3d4 in the string a1b2c3d4page1size2a1b2c3d4.
"""
_MAX_MEAN_RUN_OF_WRAPPER_CHARS = 2.2
"""Maximum mean length, in characters, of the runs (see `is_random`) in such a secret.

A run is a group of letters of one case, or of digits. The limit distinguishes secrets from the names of
parameters, whose runs are longer. `is_random` allows longer runs if three or more of them are digits.
"""

_CONTENT_DIGEST = re.compile(
    r"(?:body|payload|content|file|archive|package|正文|内容|请求体|报文|文件)"
    r"[^\n]{0,20}(?:md5|sha-?\d{1,3}|digest|checksum)[^\n,;\"'，。；]{0,16}$"
    r"|(?:md5|sha-?\d{1,3}|digest|checksum)[^\n,;\"'，。；]{0,16}"
    r"(?:body|payload|content|file|archive|package|正文|内容|请求体|报文|文件)[^\n,;\"'，。；]{0,8}$",
    re.IGNORECASE,
)
"""The words before the digest of a text or a file, as in "the md5 of the body is …"."""

_MAX_CONTEXT_CHARS = 400
"""Maximum number of characters before and after a string that are searched for words about the string."""

_SECRET_TOPIC = re.compile(
    r"sign|hmac|bearer|jwt|secret|token|key|cred|auth|passw|pwd|(?<![A-Za-z])[as]k(?![A-Za-z])|[签密钥]|令牌|凭[证据]|口令|鉴权",
    re.IGNORECASE,
)
"""A word that suggests that a random string in the same line is a secret."""

_KEY_WORD = re.compile(r"(?<![A-Za-z])(?:bearer|jwt|hmac[.\w]{0,20}[( ])", re.IGNORECASE)
"""A word that suggests a key. A random string in its line or in the next line does not count as a digest.

The exception is the digest of a text or a file (`_CONTENT_DIGEST`).
"""

_SECRET_PREFIX = re.compile(
    r"[A-Za-z_-]*(?:key|secret|token|api|pat|sk)[A-Za-z0-9]{0,3}[_-]", re.IGNORECASE
)
_PREFIX = re.compile(r"(?:[a-z]{1,12}[0-9]?[_-]){1,3}(?=[A-Za-z0-9]+$)")
_MIN_CHARS_WITHOUT_TOPIC = 32
"""Minimum length, in characters, of a random string that counts as a secret without a `_SECRET_TOPIC`.

Without a prefix, the string must also contain several capitals and several lower-case letters. After a
prefix such as pi_, the rest of the string must be longer than this minimum. A string that begins with a
`_SECRET_PREFIX`, such as api_, may be shorter.
"""

_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]{0,40}(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY)-----[A-Za-z0-9/+=\s\\]{0,8000}+"
    r"|ssh-[a-z0-9]{2,10} [A-Za-z0-9/+=]{20,}|;base64,[A-Za-z0-9/+=]{1,}"
)
"""Certificates, public keys, and the content of data URLs."""

_HEX = re.compile(r"(?<![A-Za-z0-9_])[0-9A-Fa-f]{32,}(?![A-Za-z0-9])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}(?:={1,2}|(?:%3D){1,2})?", re.IGNORECASE)
_PIECE = re.compile(r"[A-Za-z0-9+]+")
_UUID = re.compile(
    r"(?<![A-Za-z0-9-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![A-Za-z0-9-])", re.IGNORECASE
)
_FILE = re.compile(r"\.[A-Za-z]{2,5}\b")

_CLIENT = re.compile(
    r"(?:Client|Credentials?|Auth|Signer|SDK|Sdk|SecretKeySpec"
    r"|[Mm]d5|MD5|[Ss]ha\d{1,3}|SHA\d{1,3}|(?i:hmac\w{0,12}(?:\.\w{1,12})?|jwt\.\w{1,12}))"
    r"\({1,3}(?P<arguments>[^)\n]{0,400})"
)
_ARGUMENT = re.compile(rf"{QUOTE}(?P<value>(?=[A-Za-z_-]{{0,60}}\d)[A-Za-z0-9_-]{{6,200}}){QUOTE}")


def find_secrets_by_shape(text: str) -> Iterator[TextSpan]:
    """Yield each secret in `text` that is recognisable by its format or the words around it.

    Spans may overlap.
    """
    for label, pattern in _SHAPES:
        positions = [match.span(match.lastgroup or 0) for match in pattern.finditer(text)]
        spans = [
            TextSpan(start, end, label)
            for start, end in positions
            if not is_placeholder(text[start:end])
        ]
        text = blank_out(text, spans)
        yield from spans
    yield from _sdk_credentials(text)
    yield from _typed_passwords(text)
    yield from _secrets_around_parameters(text)
    yield from _random_strings(text)


def _sdk_credentials(text: str) -> Iterator[TextSpan]:
    """Yield the credentials in the arguments of an SDK client or a hash function.

    For example, Client(url, "id", "secret") and md5("secret" + text).
    """
    for call in _CLIENT.finditer(text):
        for argument in _ARGUMENT.finditer(text, *call.span("arguments")):
            if is_random(argument["value"], min_chars=12):
                yield TextSpan(*argument.span("value"), "credential")


def _typed_passwords(text: str) -> Iterator[TextSpan]:
    """Yield words that a person would choose as a password, in lines about a login."""
    for match in _TYPED.finditer(text):
        value = match["value"]
        is_one_case = value.islower() or value.isupper()
        is_password_like = not is_one_case and sum(map(str.isdigit, value)) >= 2
        if (
            is_password_like
            and not _VERSION.fullmatch(value)
            and not is_product_name(value)
            and _LOGIN.search(_lines_around(text, match))
        ):
            yield TextSpan(*match.span("value"), "password")


def _secrets_around_parameters(text: str) -> Iterator[TextSpan]:
    """Yield the secrets that begin and end a string to sign, such as a1b2c3d4page1size2a1b2c3d4."""
    for match in _SIGNED_STRING.finditer(text):
        string = match[0]
        for length in range(min(_MAX_WRAPPER_CHARS, len(string) // 2), _MIN_WRAPPER_CHARS - 1, -1):
            wrapper, between = string[:length], string[length:-length]
            if string.endswith(wrapper):
                if _is_wrapper(wrapper, between):
                    yield TextSpan(match.start(), match.start() + length, "secret")
                    yield TextSpan(match.end() - length, match.end(), "secret")
                break


def _is_wrapper(wrapper: str, parameters: str) -> bool:
    """Return whether `wrapper` is a secret around `parameters`, and not a part that is repeated often."""
    return (
        wrapper.isalnum()
        and wrapper not in parameters
        and _WORD.search(parameters) is not None
        and is_random(wrapper, _MIN_WRAPPER_CHARS, _MAX_MEAN_RUN_OF_WRAPPER_CHARS)
    )


def _is_digest(text: str, match: re.Match[str]) -> bool:
    """Return whether `match` is a digest. One of these conditions is sufficient:

    - The words right before it say that it is the digest of a text or a file, and suggest no secret.
    - Its line or the line before names a digest, and neither line names a secret or a `_KEY_WORD`.
    """
    before = _CONTENT_DIGEST.search(text, max(match.start() - 60, 0), match.start())
    if before and not _SECRET_TOPIC.search(before[0]):
        return True
    lines = _lines_around(text, match, lines_before=1)
    if _KEY_WORD.search(lines):
        return False
    return _DIGEST_NAME.search(lines) is not None and not any(
        names_secret(name["name"]) for name in NAME_TOKENS.finditer(lines) if name["name"]
    )


def _lines_around(text: str, match: re.Match[str], lines_before: int = 0) -> str:
    """Return the line of `match` and the `lines_before` lines before it.

    At most _MAX_CONTEXT_CHARS characters before and after `match` are included.
    """
    before = text[max(match.start() - _MAX_CONTEXT_CHARS, 0) : match.start()]
    after = text[match.end() : match.end() + _MAX_CONTEXT_CHARS]
    lines = before.split("\n")[-1 - lines_before :]
    return "\n".join(lines) + match[0] + after.partition("\n")[0]


def _random_strings(text: str) -> Iterator[TextSpan]:
    """Yield long hexadecimal and base64 strings that are probably secrets.

    Most random strings are ids and digests. A random string is probably a secret if its format or its line
    suggests a secret.
    """
    text = _PUBLIC_BLOCK.sub(lambda match: "\0" * len(match[0]), text)
    uuids = {match.span() for match in _UUID.finditer(text)}
    for pattern in (_HEX, _BASE64):
        for match in pattern.finditer(text):
            if (
                not _is_random_string(match[0])
                or match.span() in uuids
                or is_placeholder(match[0])
                or _FILE.match(text, match.end())
            ):
                continue
            is_secret = _is_secret_without_topic(match[0]) or (
                _SECRET_TOPIC.search(_lines_around(text, match)) is not None
                and _PREFIX.match(match[0]) is None
            )
            if is_secret and not _is_digest(text, match):
                yield TextSpan(*match.span(), "secret")


def _is_secret_without_topic(text: str) -> bool:
    """Return whether the random string `text` is probably a secret, whatever its line is about."""
    if _SECRET_PREFIX.match(text):
        return True
    if (prefix := _PREFIX.match(text)) is not None:
        # ids with a prefix, such as pi_…, are shorter
        return len(text) - prefix.end() > _MIN_CHARS_WITHOUT_TOPIC
    has_several_of_each_case = min(sum(map(str.islower, text)), sum(map(str.isupper, text))) >= 3
    return has_several_of_each_case and len(text) >= _MIN_CHARS_WITHOUT_TOPIC


def _is_random_string(text: str) -> bool:
    """Return whether `text` as a whole and at least one of its parts are random.

    The parts are separated by dashes, slashes and underscores. The check of a long hexadecimal string is
    less strict, because nearly all long hexadecimal strings are random.
    """
    if _HEX.fullmatch(text[match_end(_PREFIX, text, 0) :]):
        return is_random(text, max_mean_run=8)
    pieces = _PIECE.findall(text)
    return any(is_random(piece, min_chars=12) for piece in pieces) and is_random(text)
