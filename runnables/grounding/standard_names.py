"""Names that are no facts about a platform: those of languages, standards and the trade, and examples."""

import builtins
import keyword
import mimetypes
import re
import sys
from http import HTTPMethod, HTTPStatus

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
