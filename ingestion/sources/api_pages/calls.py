"""Finds API calls in the headings, lines and code of a Markdown page. A call is a method with a URL."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile
from typing import Literal, NamedTuple, cast, get_args

from ingestion.sources.api_pages.columns import text_of
from ingestion.text.markdown_blocks import MarkdownBlock

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
"""The methods that are searched for on pages. TRACE is left out: on a page, it is usually a log level."""

ANY_METHOD = "|".join(get_args(Method))

MAX_LABEL_CHARS = 24
"""Maximum number of characters in a text that only labels the call next to it."""

MAX_LABEL_WORDS = 4
"""Maximum number of words in a text that only labels a call.

A longer text is part of a sentence: `2 requests a second on GET /v1/x`.
"""

MAX_CAPTION_CHARS = 60
"""Maximum number of characters in a paragraph that announces the block below it."""

MAX_FACT_CHARS = 1_000
"""Number of characters at the start of a block that are searched for lines such as `Method: POST`.

It is also the maximum length of a block that is read as a URL, or as a call with a description.
"""

_BASE_VARIABLE = r"\$?\{\{?[\w.-]+\}?\}(?=/)"
"""A variable for the address of the server, as in Postman: `{{baseUrl}}/v1/x`."""
TARGET = rf"(?:(?:https?://|{_BASE_VARIABLE}|/)(?:<(?!br>)[\w-]+>|[^\s`|<>\"')，。])*)"
"""A URL, or a path that begins with a slash or with a variable for the server."""
CALL = re.compile(
    rf"(?<![\w/])(?:[\[【(（]\s*)?({ANY_METHOD})(?:\*\*|[`\s:|\]】)）]|→|[-=]>|&nbsp;|<(?=https?:)|<[^>]{{0,200}}>)+({TARGET})"
)
"""A method (group 1) and a URL or path (group 2), with spaces, markup or an arrow between them."""
METHOD_ALONE = re.compile(
    rf"(?<![\w/])({ANY_METHOD}|get|post|put|patch|delete)(?!\w|/(?!(?:{ANY_METHOD}|get|post)\b))"
)
"""A method outside a path. In `GET/POST`, only `GET` matches."""
_MAY_BE_METHOD = re.compile(
    r"[GPDHO](?:ET|OST|UT|ATCH|ELETE|EAD|PTIONS)(?![\w/])"
    r"|[gpd](?:et|ost|ut|atch|elete)[`*\s]*(?:$|[|</(（,，;；.。{]|http)",
    re.MULTILINE,
)
"""A possible method. In lower case, a method counts only before a URL or at the end of a clause or line."""
TARGET_ALONE = re.compile(TARGET)
_RELATIVE_PATH = (
    r"(?<![A-Za-z0-9_.:/-])(?!(?:(?i:localhost|ip|\w*(?:host|domain|endpoint|url)|your[\w-]*)|[A-Z_]+)/)"
    r"[A-Za-z][A-Za-z0-9_-]*(?:\.(?:php|do|aspx?|jsp|cgi))?(?=/[\w{:<])"
)
"""The first segment of a path without a leading slash, such as `v4` in `v4/group/create`.

The name of a host, such as `api.example.com` or a placeholder for it, is not such a segment.
"""
_LABELLED_TARGET = re.compile(rf"(?P<first>{_RELATIVE_PATH})?({TARGET})")
_BARE_CALL = re.compile(rf"({ANY_METHOD})(?:[\s`*:|→]|[-=]>)+({TARGET})", re.IGNORECASE)
"""A call without other text. Unlike `CALL`, it also matches a method in lower case."""
OPENING_CALL = re.compile(
    rf"^[ \t>*]*+(?:(?P<label>[^:：\n`/。，,]{{1,{MAX_LABEL_CHARS}}}[:：])[\s*`]*+|[ \t*`]*+)"
    rf"{CALL.pattern}[`*\])）]*",
    re.MULTILINE,
)
"""A call at the start of a line, alone or after a short label."""
_CLAUSE_START = re.compile(r"[ \t]{0,9}(?:$|<br\s*/?>|[\n，,;；。(（|｜·—–:：]|-\s)")
"""A separator between a call and a clause about it. Without one, the call is part of a sentence."""
_TITLED_METHOD = re.compile(rf"(?:{ANY_METHOD}) / (?=\w)")
"""A method and a slash before the name of an operation: `POST / Place an order`."""
_RESPONSE_LINE = re.compile(rf"\W*[1-5]\d\d[\s`*:|–—-]+(?:{ANY_METHOD})\b")
"""The start of a text about a response, as in a log: `403 GET /v1/x`."""
_CURL = re.compile(r"^[ \t]*(?:\$\s*)?curl\b", re.MULTILINE)
_CURL_METHOD = re.compile(rf"(?:-X|--request)\s*=?\s*['\"]?({ANY_METHOD})\b", re.IGNORECASE)
_CURL_DATA = re.compile(r"\s(?:-d|--data(?:-raw|-binary|-urlencode)?|--json|-F|--form)\b")
_QUOTED = r"'[^']*'|\"(?:[^\"\\]|\\.)*+\""
_CURL_VALUE = re.compile(
    r"\s(?:-[dFHxeAbuo]|--(?:data(?:-raw|-binary|-urlencode)?|json|form|header|proxy|referer|user-agent"
    rf"|cookie|user|output))(?:=|(?:\s|\\\n)*+)(?:{_QUOTED}|[^\s'\"]++(?:{_QUOTED})?)"
)
"""An option of a curl command with its value. The value may contain URLs other than that of the call."""
_CURL_URL = re.compile(r"https?://[^\s'\"\\`]+")
_CURL_ARGUMENT = re.compile(rf"(?:(?<=[\s'\"])|(?<=--url=)){_CURL_URL.pattern}")
"""A URL that is an argument of its own or the value of `--url`, not a part of another argument."""
_REQUEST_LINE = re.compile(rf"^\s*({ANY_METHOD})\s+({TARGET})")
_OTHER_METHOD_LINE = re.compile(r"\s*[A-Z]{3,10}\s+(?:https?://\S+|/\S*)\s*")
"""A line like a request line, with a method that is not in `Method`: `SEARCH /v1/x`."""
_HEADER_LINE = re.compile(r"\A\s*[A-Za-z][\w-]{1,60}:\s")
_BODY_HEADER = re.compile(r"\s*(?:Content-Type|Host):\s", re.IGNORECASE)
"""A header line that describes the body or the server, unlike `Authorization` and `Accept`."""
_BOLD = re.compile(r"\*\*[^*\n]{1,60}\*\*")
_SENTENCE_LINE = re.compile(r"\A\s*(?:[\u4e00-\u9fff]|[A-Z][a-z]+(?: [a-z]+){2,})")
"""The start of a line of prose in a code block."""
_JSON_EXAMPLE = re.compile(r"^\s*[{\[]", re.MULTILINE)
_HTTP_VERSION = re.compile(r"\sHTTP/\d")
DECLARED_CALL = re.compile(rf"(?:^|\s)({ANY_METHOD})\s+(\S+)", re.IGNORECASE)
"""A call in the front matter of a page, such as `post /v1/messages`."""
_ACTION_QUERY = re.compile(r"(?:\A|(?<=&))(?:Action|(?<!&)action)=[A-Za-z][\w.-]*(?=&|\Z)")
"""A query parameter that names the operation, as in RPC-style APIs: `Action=CreateOrder`."""
_OPERATION_QUERY = re.compile(
    r"\A(?:method|op|cmd|command|service|act)=[A-Za-z][\w.-]*(?=&|\Z)", re.IGNORECASE
)
"""The first query parameter if it names the operation: `/api?method=order.create`."""
_COMMON_PATH = re.compile(
    r"(?:https?://[^/]*)?(?:/?|.*(?:\.(?:php|do|aspx?|jsp|cgi)|/(?:api|rest|rpc|gateway|router))/?)"
)
"""A URL that several operations may share, such as `/index.php` or `/api`."""
_ORIGIN = re.compile(r"\w[\w+.-]*://[^/]*")
_PLACEHOLDER = re.compile(r"\$?\{[^}]*\}|(?<=/):[A-Za-z_]\w*|<[^>]*>|(?<=/)\[[A-Za-z_][\w-]*\]")


class Call(NamedTuple):
    """A method and a URL."""

    method: Method
    url: str

    @property
    def key(self) -> tuple[str, str]:
        """The method and the path with placeholders as `{}`. Calls of one operation have the same key."""
        return self.method, path_of(self.url)


def call_of(method: str, url: str) -> Call:
    """Return a call with the method in upper case and a cleaned URL.

    Markup, a variable for the server's address, the query and the fragment are removed from the URL. A
    query parameter that names the operation stays: `/?Action=CreateOrder`.
    """
    url = re.sub(f"^{_BASE_VARIABLE}", "", re.sub(r"\*(\{[^}]*\})\*", r"\1", url))
    url = re.sub(r"\{([\w.]+)#[^{}]*\}", r"{\1}", url)  # `{name#anchor}`
    url = re.sub(r"\\([_\-.{}])", r"\1", url).replace("#{", "{")  # `#{name}` as in Ruby
    url, _, query = url.rstrip(".,;:。，；*`").partition("?")
    url = url.partition("#")[0]
    if "(" in url and ")" not in url:  # the start of a remark: `/v1/orders(HMAC SHA256)`
        url = url.partition("(")[0]
    if "]" in url and "[" not in url:  # the text of a link: `[/v1/orders](/v1/orders)`
        url = url.partition("]")[0]
    operation = _ACTION_QUERY.search(query)
    if operation is None and _COMMON_PATH.fullmatch(url):
        operation = _OPERATION_QUERY.search(query)
    if operation:
        url = f"{url}?{operation[0]}"
    return Call(cast(Method, method.upper()), url)


def path_names(url: str) -> list[str]:
    """Return the names of the placeholders in the path of a URL."""
    names = (match.strip("${}[]:<> ") for match in _PLACEHOLDER.findall(split_origin(url)[1]))
    return [name.partition(":")[0] for name in names]  # without the pattern of `{id:[0-9]+}`


def path_of(url: str) -> str:
    """Return the path of a URL with every placeholder as `{}`."""
    return _PLACEHOLDER.sub("{}", split_origin(url)[1]).rstrip("/")


def split_origin(url: str) -> tuple[str, str]:
    """Return the origin and the path of a URL. The origin is empty if the URL has none.

    The host need not be valid: it may be a placeholder such as `[domain]`.
    """
    origin = _ORIGIN.match(url)
    return (origin[0], url[origin.end() :]) if origin else ("", url)


def labelled_target(value: str) -> str:
    """Return the URL or path in the text after a label such as "URL"; empty if there is none.

    A path without a leading slash gets one: `/v4/group/create` for `v4/group/create`.
    """
    found = _LABELLED_TARGET.search(value)
    if found is None:
        return ""
    return f"/{found[0]}" if found["first"] else found[0]


class CallTemplates:
    """Calls whose URLs may contain placeholders. `matches` compares a call with these templates."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._parts: dict[tuple[str, int, str], list[list[str]]] = {}
        """The reversed segments of the paths.

        The key consists of the method and of the last segment that is not a placeholder, with the index of
        this segment from the end. For example, `GET /v1/orders/{id}` has the key `("GET", 1, "orders")` and
        the value `[["{}", "orders", "v1"]]`.
        """
        for method, path in {call.key for call in calls}:
            parts = path.strip("/").split("/")[::-1]
            literal = next((item for item in enumerate(parts) if item[1] != "{}"), None)
            if literal is not None:
                self._parts.setdefault((method, *literal), []).append(parts)

    def matches(self, call: Call) -> bool:
        """Return whether a call matches one of the templates.

        A placeholder in a template matches any segment. A template may lack the first segments of the path,
        because they can be part of the server's address.
        """
        method, path = call.key
        values = path.strip("/").split("/")[::-1]
        candidates = [self._parts.get((method, *item), []) for item in enumerate(values)]
        return any(
            len(values) >= len(parts)
            and all(part in (value, "{}") for value, part in zip(values, parts, strict=False))
            for parts in chain(*candidates)
        )


def may_have_calls(blocks: Sequence[MarkdownBlock]) -> bool:
    """Return whether a page contains a method or a curl command, and so may contain a call."""
    return any(
        (_MAY_BE_METHOD.search(block.text) and METHOD_ALONE.search(block.text))
        or (block.kind == "fence" and "curl" in block.text)
        for block in blocks
    )


def may_omit_method(blocks: Sequence[MarkdownBlock]) -> bool:
    """Return whether a page without a method may describe an operation: it has a URL and a table."""
    has_url = any("://" in block.text for block in blocks if block.kind != "heading")
    return has_url and any(block.kind == "table" for block in blocks)


def is_json_example(block: MarkdownBlock) -> bool:
    """Return whether a block is code with a JSON object or array."""
    return block.kind == "fence" and _JSON_EXAMPLE.search(block.text) is not None


def stated_calls(block: MarkdownBlock) -> list[Call]:
    """Return the calls that a block states.

    A code block of request lines may state several calls. A request line with a method that is not in
    `Method`, such as `SEARCH /v1/x`, is ignored. The header `Content-Type` and a body may follow a single
    request line without an HTTP version; other headers, such as `Authorization`, make it an example. A
    block without code states at most one call. A text about a response, such as the heading "403 GET
    /v1/x" of an error, states none.
    """
    if block.kind == "fence":
        lines = code_lines(block)
        matches = [match for line in lines if (match := _REQUEST_LINE.match(line))]
        is_message = len(lines) > 1 and any(map(_HTTP_VERSION.search, lines))
        others = [
            line
            for line in lines
            if not (_REQUEST_LINE.match(line) or _OTHER_METHOD_LINE.fullmatch(line))
        ]
        headers = list(takewhile(_HEADER_LINE.match, lines[1:]))
        has_body = (
            headers and all(map(_BODY_HEADER.match, headers)) and _REQUEST_LINE.match(lines[0])
        )
        is_described = has_body or all(map(_SENTENCE_LINE.match, others))
        if is_message or (others and (len(matches) > 1 or not is_described)):
            return []
        return [call_of(match[1], match[2]) for match in matches]
    if _RESPONSE_LINE.match(block.text):
        return []
    if block.kind == "heading":
        found = CALL.search(_TITLED_METHOD.sub("", block.text))
    else:
        found = _only_call(block) or _opening_call(block)
    if found and found[2] == "/" and len(METHOD_ALONE.findall(block.text)) > 1:
        return []  # `GET / POST` are two methods
    return [call_of(found[1], found[2])] if found else []


def labelled_request(block: MarkdownBlock, above: MarkdownBlock) -> Call | None:
    """Return the call of a code block that consists of a request line and a body or headers; else None.

    The request line must not have an HTTP version, because a message with a version is an example (see
    `message_call`). `above` is the block before `block`; it must be a heading, a label or a bold title.
    """
    is_titled = above.kind == "heading" or is_label(above) or _BOLD.fullmatch(above.text.strip())
    is_announced = block.kind == "fence" and is_titled
    lines = code_lines(block) if is_announced else []
    match = _REQUEST_LINE.match(lines[0]) if len(lines) > 1 else None
    if match is None or _HTTP_VERSION.search(lines[0]):
        return None
    is_request = lines[1].lstrip().startswith("{") or _HEADER_LINE.match(lines[1])
    return call_of(match[1], match[2]) if is_request else None


def is_label(block: MarkdownBlock) -> bool:
    """Return whether a block is a short paragraph that announces the block below it: "Restore:"."""
    text = block.text.rstrip(" *")
    return (
        block.kind == "paragraph" and len(text) <= MAX_CAPTION_CHARS and text.endswith((":", "："))
    )


def only_target(block: MarkdownBlock) -> str:
    """Return the URL of a code block or quotation that contains only a URL; empty for other blocks."""
    if block.kind not in ("fence", "other") or len(block.text) > MAX_FACT_CHARS:
        return ""
    text = re.sub(r"^[>\s]*(?:`{3,}.*)?", "", block.text, flags=re.MULTILINE).strip()
    return text if TARGET_ALONE.fullmatch(text) else ""


def _only_call(block: MarkdownBlock) -> re.Match[str] | None:
    """Return the call of a paragraph, quotation or list with only a call and, possibly, a short label."""
    if block.kind == "paragraph" and (bare := _BARE_CALL.fullmatch(block.text.strip(" `*"))):
        return bare
    call = CALL.search(block.text)
    if call is None or block.kind not in ("paragraph", "other", "list"):
        return None
    rest = text_of(block.text).replace(call[1], "", 1).replace(text_of(call[2]), "", 1)
    rest = rest.strip(" `*:：")
    is_short = len(rest) <= MAX_LABEL_CHARS and len(rest.split()) <= MAX_LABEL_WORDS
    return call if is_short and not re.search(r"[.。!?！？,，]", rest) else None


def _opening_call(block: MarkdownBlock) -> re.Match[str] | None:
    """Return the call of a paragraph or quotation if a line begins with the call and describes it.

    Returns None if the block contains several calls.
    """
    if block.kind not in ("paragraph", "other") or len(block.text) > MAX_FACT_CHARS:
        return None
    if len(CALL.findall(block.text)) != 1 or not (found := OPENING_CALL.search(block.text)):
        return None
    is_clause = _CLAUSE_START.match(block.text, found.end())
    return CALL.search(block.text) if is_clause else None


def code_lines(block: MarkdownBlock) -> list[str]:
    """Return the lines of a code block without its fences and blank lines."""
    fences = ("```", "~~~")
    lines = block.text.splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith(fences)]


def example_call(block: MarkdownBlock) -> Call | None:
    """Return the call of a curl command or HTTP message in a code block; None for other blocks."""
    if block.kind != "fence":
        return None
    if _CURL.search(block.text) and (
        target := _CURL_ARGUMENT.search(_CURL_VALUE.sub("", block.text))
        or _CURL_URL.search(block.text)
    ):
        stated = _CURL_METHOD.search(block.text)
        default = "POST" if _CURL_DATA.search(block.text) else "GET"
        return call_of(stated[1] if stated else default, target[0])
    return message_call(block)


def message_call(block: MarkdownBlock) -> Call | None:
    """Return the call of an HTTP message in a code block; None for other blocks.

    A request line without an HTTP version is a message if headers follow it or the block is marked `http`.
    """
    if block.kind != "fence":
        return None
    lines = code_lines(block)
    match = _REQUEST_LINE.match(lines[0]) if lines else None
    opening = block.text.partition("\n")[0].lower()
    has_headers = len(lines) > 1 and _HEADER_LINE.match(lines[1])
    if match and (has_headers or "http" in opening or _HTTP_VERSION.search(lines[0])):
        return call_of(match[1], match[2])
    return None
