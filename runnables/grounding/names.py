"""Names that are no facts about a platform: those of languages, standards and the trade, and examples.
Plain words that are names for where they stand: before `=`, in a first cell, as a key, beside 字段.
"""

import builtins
import keyword
import mimetypes
import re
import sys
from collections.abc import Iterator
from http import HTTPMethod, HTTPStatus

from runnables.grounding.mention import Mention, MentionKind

METHODS = "|".join(HTTPMethod)
"""The HTTP methods, for a pattern."""

_HEADERS = {
    "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-security-policy", "content-type", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive",
    "last-modified", "max-forwards", "proxy-authenticate", "proxy-authorization", "retry-after",
    "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "www-authenticate",
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
}  # fmt: skip
_TECHNIQUES = {
    "ASCII", "HTTPS", "HTML", "JSON", "JSONP", "YAML", "CORS", "CRUD", "REST", "HMAC", "UUID", "GUID",
    "OAUTH", "CSV", "XML", "PDF", "PNG", "JPEG", "GIF", "ZIP", "SHA", "RSA", "AES", "TLS", "SSL", "UTC",
    "GMT", "URL", "URI", "API", "SDK", "SQL", "DNS", "TCP", "UDP", "SSH", "POSIX", "LINUX", "MYSQL",
    "NGINX", "REDIS", "BASE64",
}  # fmt: skip
_SQL = {
    "SELECT", "INSERT", "WHERE", "UNIQUE", "INDEX", "TABLE", "BEGIN", "COMMIT", "ROLLBACK", "VARCHAR",
    "BIGINT", "DECIMAL", "DATETIME", "TIMESTAMP", "BOOLEAN",
}  # fmt: skip
TYPES = {
    "string", "integer", "number", "boolean", "object", "array", "null", "true", "false", "long",
    "double", "int32", "int64", "void", "undefined", "const", "let", "var", "function", "switch",
    "catch", "throw", "new", "this", "query", "body", "path", "header", "url", "http", "https", "form",
}  # fmt: skip
"""Of values, with other words that stand in a first cell or beside 字段 and name no field."""

LANGUAGE_WORDS = (
    {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, *TYPES}
    | {"setTimeout", "setInterval", "parseInt", "parseFloat", "encodeURIComponent", "encodeURI"}
    | {"decodeURIComponent", "decodeURI", "macOS"}
)
"""Python's words, and those of others that are spelled as a platform's names are."""

_STATUS_WORDS = {word for status in HTTPStatus for word in status.name.split("_")}
_STRESSED = {
    "MUST", "SHALL", "SHOULD", "REQUIRED", "RECOMMENDED", "OPTIONAL", "NEVER", "ALWAYS", "NOTE",
    "IMPORTANT", "WARNING", "CAUTION",
}  # fmt: skip
"""As in RFC 2119 and in Markdown's alerts."""
CAPITALS_OF_PROSE = _STATUS_WORDS | _STRESSED
"""Written so in prose, where a value would be quoted or said to be one: NOT FOUND, MUST."""

_EXTENSIONS = {e[1:] for e in (*mimetypes.types_map, *mimetypes.encodings_map)} | {
    "cfg", "conf", "env", "gitignore", "go", "ini", "java", "jsonl", "lock", "log", "md", "mdx", "php",
    "rb", "rs", "toml", "ts", "tsx", "yaml", "yml",
}  # fmt: skip
_TOP_DOMAINS = {"com", "cn", "org", "net", "io", "dev", "ai", "app", "gov", "edu"}

_PLACEHOLDER = re.compile(r"^(?:your|my)[_.-]|^(?:YOUR|MY)_|xxx|XXX")
_RANDOM = re.compile(r"\d{5}|(?=[a-f]{0,7}\d)(?=\d{0,7}[a-f])[0-9a-f]{8}")
"""Five digits in a row, or eight hexadecimal ones that are neither all digits nor all letters."""


def is_standard(word: str) -> bool:
    """Whether it belongs to programming languages, HTTP, the trade or the reader, not to a platform."""
    return (
        word in LANGUAGE_WORDS
        or word.upper() in _TECHNIQUES
        or is_method(word)
        or word in _SQL
        or word.lower() in _HEADERS
        or _PLACEHOLDER.search(word) is not None
    )


def is_method(word: str) -> bool:
    """Whether it is an HTTP method, in any case: `requests.get` has one, too."""
    return word.upper() in HTTPMethod.__members__


def is_example(word: str) -> bool:
    """Whether it stands for a value of the reader's own, or is made of random characters."""
    return _PLACEHOLDER.search(word) is not None or _RANDOM.search(word) is not None


def is_file_or_site(name: str) -> bool:
    """Whether a dotted name ends as those of files and sites do."""
    last = name.rpartition(".")[2]
    return last in _EXTENSIONS or last in _TOP_DOMAINS


_JSON_PAIR = re.compile(
    r"\"([A-Za-z_][\w.-]*)\"\s{0,4}:\s{0,4}(\"[^\"\n]*\"|-?\d[\d.]*)?", re.ASCII
)
_TELLING_VALUE = re.compile(r"\"(?:[A-Z][A-Z_]+|[a-z]+(?:[_.][a-z-]+)+)\"")
"""A value in JSON that is one of a list, such as a status or an event; any other is an example."""

_PAIR = re.compile(
    r"(?<![\w.=<>!?$-])([A-Za-z_][\w.-]*)(?:\[\])?=(?![=>~])[\"']?([a-z]{3,}(?![\w.-]))?", re.ASCII
)
"""A key and, where it is one word, its value; no comparison and no arrow."""

_FIRST_CELL = re.compile(r"^\s{0,3}\|[ `]{0,3}([A-Za-z_]\w*)[ `]{0,3}\|", re.ASCII | re.MULTILINE)
_NOUN = "字段|参数|请求头|响应头|属性"
_ENGLISH_NOUN = "fields?|param(?:eter)?s?|headers?|propert(?:y|ies)|attributes?"
_NAMED = re.compile(
    rf"(?<![\w.:-])([A-Za-z][\w-]+)[ `]{{0,2}}(?:{_NOUN})"
    rf"|(?:{_NOUN})[ `]{{0,2}}([A-Za-z][\w-]++)(?![.:]\w)"
    rf"|`([A-Za-z][\w-]+)` (?:{_ENGLISH_NOUN})\b|\b(?:{_ENGLISH_NOUN}) `([A-Za-z][\w-]+)`",
    re.ASCII,
)
"""In English a code span only, for there any word may stand before "field"."""


def take_json_keys(text: str) -> tuple[str, list[Mention]]:
    """`text` without the values in JSON that are examples, of the same length; and the keys."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        key, value = match[1], match[2] or ""
        if not is_example(key):
            found.append(Mention("word", key, match.start(1)))
        if not value or _TELLING_VALUE.fullmatch(value) or "code" in key.lower():
            return match[0]
        return match[0][: -len(value)] + " " * len(value)

    return _JSON_PAIR.sub(take, text), found


def placed_names(text: str) -> Iterator[Mention]:
    """The words that stand where only names stand; keys in JSON are `take_json_keys`'s."""
    for pattern in (_PAIR, _FIRST_CELL, _NAMED):
        for match in pattern.finditer(text):
            for group, word in enumerate(match.groups(), 1):
                if word and word not in TYPES and not is_example(word):
                    kind: MentionKind = "name" if "-" in word else "word"
                    yield Mention(kind, word, match.start(group))
