"""Names that state nothing about a platform: programming languages, standards, examples, files."""

import builtins
import keyword
import mimetypes
import re
import sys
from http import HTTPMethod, HTTPStatus

METHODS = "|".join(HTTPMethod)
"""The HTTP methods as alternatives of a regular expression."""

_HEADERS = {
    "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-security-policy", "content-type", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive",
    "last-modified", "max-forwards", "proxy-authenticate", "proxy-authorization", "retry-after",
    "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "www-authenticate",
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
}  # fmt: skip
_TECHNOLOGIES = {
    "ASCII", "HTTPS", "HTML", "JSON", "JSONP", "YAML", "CORS", "CRUD", "REST", "HMAC", "UUID", "GUID",
    "OAUTH", "CSV", "XML", "PDF", "PNG", "JPEG", "GIF", "ZIP", "SHA", "RSA", "AES", "TLS", "SSL", "UTC",
    "GMT", "URL", "URI", "API", "SDK", "SQL", "DNS", "TCP", "UDP", "SSH", "POSIX", "LINUX", "MYSQL",
    "NGINX", "REDIS", "BASE64",
}  # fmt: skip
_SQL = {
    "SELECT", "INSERT", "WHERE", "UNIQUE", "INDEX", "TABLE", "BEGIN", "COMMIT", "ROLLBACK", "VARCHAR",
    "BIGINT", "DECIMAL", "DATETIME", "TIMESTAMP", "BOOLEAN",
}  # fmt: skip
TYPE_WORDS = {
    "string", "integer", "number", "boolean", "object", "array", "null", "true", "false", "long",
    "double", "int32", "int64", "void", "undefined", "const", "let", "var", "function", "switch",
    "catch", "throw", "new", "this", "query", "body", "path", "header", "url", "http", "https", "form",
}  # fmt: skip
"""Data types, and other words that occur where field names do but name no field."""

LANGUAGE_WORDS = (
    {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, *TYPE_WORDS}
    | {"setTimeout", "setInterval", "parseInt", "parseFloat", "encodeURIComponent", "encodeURI"}
    | {"decodeURIComponent", "decodeURI", "macOS"}
)
"""Words of Python, and words of other languages that are spelled like names of a platform."""

_STATUS_WORDS = {word for status in HTTPStatus for word in status.name.split("_")}
_EMPHASISED = {
    "MUST", "SHALL", "SHOULD", "REQUIRED", "RECOMMENDED", "OPTIONAL", "NEVER", "ALWAYS", "NOTE",
    "IMPORTANT", "WARNING", "CAUTION",
}  # fmt: skip
"""Keywords of RFC 2119 and of Markdown alerts."""
CAPITALISED_PROSE = _STATUS_WORDS | _EMPHASISED
"""Words that prose writes in capitals, such as NOT FOUND and MUST; a value would be quoted."""

_EXTENSIONS = {e[1:] for e in (*mimetypes.types_map, *mimetypes.encodings_map)} | {
    "cfg", "conf", "env", "gitignore", "go", "ini", "java", "jsonl", "lock", "log", "md", "mdx", "php",
    "rb", "rs", "toml", "ts", "tsx", "yaml", "yml",
}  # fmt: skip
_TOP_DOMAINS = {"com", "cn", "org", "net", "io", "dev", "ai", "app", "gov", "edu"}

_PLACEHOLDER = re.compile(r"^(?:your|my)[_.-]|^(?:YOUR|MY)_|xxx|XXX")
_RANDOM = re.compile(r"\d{5}|(?=[a-f]{0,7}\d)(?=\d{0,7}[a-f])[0-9a-f]{8}")
"""Five digits in a row, or eight hexadecimal digits with both digits and letters."""


def is_standard(word: str) -> bool:
    """Whether `word` is a placeholder or belongs to a programming language, HTTP or another technology."""
    return (
        word in LANGUAGE_WORDS
        or word.upper() in _TECHNOLOGIES
        or is_method(word)
        or word in _SQL
        or word.lower() in _HEADERS
        or _PLACEHOLDER.search(word) is not None
    )


def is_method(word: str) -> bool:
    """Whether `word` is an HTTP method in any case; `get` in `requests.get` is one."""
    return word.upper() in HTTPMethod.__members__


def is_example(word: str) -> bool:
    """Whether `word` is a placeholder for a value of the reader, or consists of random characters."""
    return _PLACEHOLDER.search(word) is not None or _RANDOM.search(word) is not None


def is_file_or_domain(name: str) -> bool:
    """Whether a dotted name ends with a file extension or a top-level domain."""
    last = name.rpartition(".")[2]
    return last in _EXTENSIONS or last in _TOP_DOMAINS
