"""What a text names of a platform, by shape: paths, fields, headers, values, error codes, permissions.

Nothing is looked up here. A name that only looks like one, such as a library's, is left out where the
text alone tells; where it takes the documents to tell, `Mention.foreign` says so.
"""

import builtins
import keyword
import mimetypes
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import Literal

from ingestion.words import quiet_jieba

Kind = Literal["target", "name", "word", "number", "permission"]

RUN = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\[[A-Za-z0-9_]*\])?[.:-][A-Za-z0-9_]+)*(?:\[\w*\])?", re.ASCII
)
"""A name with everything that may join its parts."""
METHODS = "|".join(HTTPMethod)
URL = r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%{}-]+"
PATH = r"(?<![A-Za-z0-9_/.:<*-])/[A-Za-z0-9{<:$][\w.{}<>:$*~-]*(?:/[\w.{}<>:$*~-]+)*/?"

_GAP = (
    r"[\s`'\"*,，:：]{0,4}(?:(?:requests?|calls?|to|on|against|at|the|endpoint|path|url|"
    r"方法|方式|请求|接口|调用|到|提交|发送|访问|地址|为|是)[\s`'\"*:：]{0,3}){0,4}"
)
_TARGET = re.compile(
    rf"(?:(?<![A-Za-z_])(?P<before>{METHODS})(?![A-Za-z_]){_GAP})?(?P<target>{URL}|{PATH})"
    rf"(?P<query>\?[\w.=&%{{}}<>-]*)?"
    rf"(?:[`'\"\s]{{0,3}}(?:[（(]|with|using|via|by|用|以|采用|使用)\s?(?:HTTP|an?)?[\s`]{{0,2}}"
    rf"(?P<after>{METHODS})(?![A-Za-z_]))?",
    re.ASCII,
)
_FENCE = re.compile(r"\s{0,3}(?:```+|~~~+)\s*(\w*)")
_DATA = {
    "", "json", "json5", "jsonc", "http", "text", "txt", "yaml", "yml", "xml", "md", "markdown",
}  # fmt: skip
"""What fences are called that hold no program."""
_KEPT_OF_CODE = re.compile(
    rf"\"[^\"\n]*\"|'[^'\n]*'|\b(?:{METHODS})\b|{URL}|{PATH}", re.ASCII
)  # fmt: skip
_JSON_PAIR = re.compile(
    r"\"([A-Za-z_][\w.-]*)\"\s{0,4}:\s{0,4}(\"[^\"\n]*\"|-?\d[\d.]*)?", re.ASCII
)
_TELLING_VALUE = re.compile(r"\"(?:[A-Z][A-Z_]+|[a-z]+(?:[_.][a-z-]+)+)\"")
_PAIR = re.compile(
    r"(?<![\w.=<>!?$-])([A-Za-z_][\w.-]*)(?:\[\])?=(?![=>~])[\"']?([a-z]{3,}(?![\w.-]))?", re.ASCII
)
_FIRST_CELL = re.compile(r"^\s{0,3}\|[ `]{0,3}([A-Za-z_]\w*)[ `]{0,3}\|", re.ASCII | re.MULTILINE)
_NOUN = "字段|参数|请求头|响应头|属性"
_ENGLISH_NOUN = "fields?|param(?:eter)?s?|headers?|propert(?:y|ies)|attributes?"
_NAMED = re.compile(
    rf"(?<![\w.:-])([A-Za-z][\w-]+)[ `]{{0,2}}(?:{_NOUN})"
    rf"|(?:{_NOUN})[ `]{{0,2}}([A-Za-z][\w-]++)(?![.:]\w)"
    rf"|`([A-Za-z][\w-]+)` (?:{_ENGLISH_NOUN})\b|\b(?:{_ENGLISH_NOUN}) `([A-Za-z][\w-]+)`",
    re.ASCII,
)
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_NUMBER = re.compile(r"(?<![\w.,/=$¥￥+-])(?<!\d:)\d{4,6}(?!\w|[.,:/-]\d|[*×]|\s?[%％])", re.ASCII)
_CELL_BEFORE = re.compile(r"^\s{0,3}\|[ `*]{0,3}$", re.MULTILINE)
_UNIT = re.compile(
    r"\s?(?:[个条次元分秒毫天年月日时字笔页份张件位人倍行端]|[A-Za-z]+s\b|CNY|USD|[KMG]B\b|fen\b)"
)
_CODE_BEFORE = re.compile(
    r"(?:codes?|errors?|错误码|返回码|状态码|报错|错误)[^0-9，。,.;；\n]{0,8}$", re.I
)
_ANSWER_BEFORE = re.compile(
    r"(?:返回|报|收到|得到|提示|碰到|遇到|出现|看到|以|\b(?:gets?|got|sees?|receives?d?|raises?|throws?|"
    r"answers?|returns?|gives?|with|as|in|by))"
    r"[\s`\"'“的是为了到]{0,4}$"
)
_VALUE_BEFORE = re.compile(
    r"(?:=|填|传|选|设为|设成|变为|变成|状态[为是]|值[为是]|取值|"
    r"\bset to|\bbecomes?|\bturns?|\breads?|\bstatus(?: is)?)"
    r"[\s\"'“「`]{0,3}$"
)
_QUOTED_BEFORE = re.compile(r"[\"'“「`]$")
_VARIABLE = re.compile(r"环境变量|environment variable|env var|\benviron\b|\bgetenv\b", re.I)
_FOR_EXAMPLE = re.compile(
    r"(?:例如|比如|譬如|如|叫|such as|like|e\.g\.,?|called|named)[\s`\"'“]{0,3}$", re.I
)

_SNAKE = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[a-z]{2,}[0-9]*[A-Z][A-Za-z0-9]*")
_SCOPE = re.compile(r"[a-z][a-z_]+(?::[a-z][a-z_]+)+")
_HEADER = re.compile(r"(?:[A-Z][A-Za-z0-9]*-)+[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"[vV]\d+(?:[.-]\w+)*")
_RANDOM = re.compile(r"\d{5}|(?=[a-f]{0,7}\d)(?=\d{0,7}[a-f])[0-9a-f]{8}")
_PLACEHOLDER = re.compile(r"^(?:your|my)[_.-]|^(?:YOUR|MY)_|xxx|XXX")
_LIBRARY = re.compile(r"\s?`?\s?(?:\blibrar|\bmodule|\bframework|库|模块|框架)")

_STANDARD_HEADERS = {
    "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-security-policy", "content-type", "if-match",
    "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive",
    "last-modified", "max-forwards", "proxy-authenticate", "proxy-authorization", "retry-after",
    "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "www-authenticate",
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
}  # fmt: skip
_TYPES = {
    "string", "integer", "number", "boolean", "object", "array", "null", "true", "false", "long",
    "double", "int32", "int64", "void", "undefined", "const", "let", "var", "function", "switch",
    "catch", "throw", "new", "this", "query", "body", "path", "header", "url", "http", "https", "form",
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
_STRESSED = {
    "MUST", "SHALL", "SHOULD", "REQUIRED", "RECOMMENDED", "OPTIONAL", "NEVER", "ALWAYS", "NOTE",
    "IMPORTANT", "WARNING", "CAUTION",
}  # fmt: skip
"""As in RFC 2119 and in Markdown's alerts."""
_LANGUAGE_WORDS = (
    {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, *_TYPES}
    | {"setTimeout", "setInterval", "parseInt", "parseFloat", "encodeURIComponent", "encodeURI"}
    | {"decodeURIComponent", "decodeURI", "macOS"}
)
_STATUS_WORDS = {word for status in HTTPStatus for word in status.name.split("_")}
_CAPITALS_OF_PROSE = _STATUS_WORDS | _STRESSED
_EXTENSIONS = {e[1:] for e in (*mimetypes.types_map, *mimetypes.encodings_map)} | {
    "cfg", "conf", "env", "gitignore", "go", "ini", "java", "jsonl", "lock", "log", "md", "mdx", "php",
    "rb", "rs", "toml", "ts", "tsx", "yaml", "yml",
}  # fmt: skip
_FOLDERS = {"etc", "usr", "var", "tmp", "home", "opt", "dev", "root", "mnt", "proc", "path"}
_TOP_DOMAINS = {"com", "cn", "org", "net", "io", "dev", "ai", "app", "gov", "edu"}

_PERMISSION = re.compile(
    r"权限[包组]|(?<=[A-Za-z0-9] )(?:[Pp]ermission )?Package\b|(?<=[A-Za-z0-9] )permission package\b"
)
"""What the names of permissions end with."""
_TITLE_WORDS = re.compile(r"(?:\b[A-Z][A-Za-z0-9-]*\s)+$")
_HAN_BEFORE = re.compile(r"[\u4e00-\u9fff]+$")
_NO_PART_OF_A_NAME = {
    *"的了个各该此这那哪某一二两三四五六七八九十几多每有无没缺需须用归属是为和与或及先再还要在由对给把被将其新旧",
    *"种类只仅即就通过等都也不未到上下从向能可会应则若但而且所本它",
    "哪个", "这个", "那个", "一个", "某个", "各个", "没有", "缺少", "缺失", "需要", "必需", "所需",
    "申请", "开通", "获得", "获取", "取得", "具备", "具有", "拥有", "属于", "对应", "相应", "相关",
    "必要", "其他", "其它", "所有", "全部", "任何", "任意", "通过", "查看", "选择", "勾选", "添加",
    "应用", "接口", "平台", "敏感", "只有", "包含",
    "The", "A", "An", "This", "That", "Each", "Your", "No", "Permission", "If", "Without", "With", "Add",
    "Apply", "Request", "Get", "For",
}  # fmt: skip


@dataclass(frozen=True)
class Mention:
    """A name as it stands in a text."""

    kind: Kind
    text: str
    start: int
    target: str = ""
    """Of a target: the url or path alone."""
    method: str = ""
    """Of a target: the HTTP method that stands with it."""
    foreign: bool = False
    """Whether it may be a file, a site, a library's code or the reader's own, and so no fact."""
    stated: bool = True
    """Of a number: whether the text calls it a code; else only its likeness to known codes can."""
    words: tuple[str, ...] = ()
    """Of a permission: its words in lower case, the last one first."""


def mentions(text: str) -> list[Mention]:
    """What `text` names, in order; nothing in it is looked up."""
    text = _blanked(_MAIL, without_programs(text))
    text, of_json = _json_pairs(text)
    text, targets = _targets(text)
    found = [
        *of_json,
        *targets,
        *_words(text),
        *_runs(text),
        *_numbers(text),
        *permissions(text),
    ]
    return sorted(found, key=lambda mention: mention.start)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)


def without_programs(text: str) -> str:
    """`text`, of whose fenced program code only strings, methods and addresses are left.

    What a program calls its own variables is no fact.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    language: str | None = None
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence:
            language = fence[1].lower() if language is None else None
        keeps = language is None or language in _DATA
        lines.append(line if keeps and not fence else _kept(line))
    return "\n".join(lines)


def _kept(line: str) -> str:
    kept = [" "] * len(line)
    for match in _KEPT_OF_CODE.finditer(line):
        kept[match.start() : match.end()] = match[0]
    return "".join(kept)


def _json_pairs(text: str) -> tuple[str, list[Mention]]:
    """`text` without the values that are examples, and the keys."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        key, value = match[1], match[2] or ""
        if not _is_example(key):
            found.append(Mention("word", key, match.start(1)))
        if not value or _TELLING_VALUE.fullmatch(value) or "code" in key.lower():
            return match[0]
        return match[0][: -len(value)] + " " * len(value)

    return _JSON_PAIR.sub(take, text), found


def _targets(text: str) -> tuple[str, list[Mention]]:
    """`text` without urls and paths, but with their queries; and these."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        target = match["target"].rstrip(".,;:!?*-")
        start, end = match.start("target"), match.start("target") + len(target)
        method = match["before"] or match["after"] or ""
        in_code = text[start - 1 : start] == "`" and text[end : end + 1] == "`"
        if target.count("/") == 1 and not (method or in_code):
            return match[0]
        first = match.start() if match["before"] else start
        last = match.end() if match["after"] else end
        elsewhere = _is_elsewhere(target)
        found.append(Mention("target", text[first:last], first, target, method, foreign=elsewhere))
        whole = match[0]
        question = whole.find("?")
        return " " * len(whole) if question < 0 else " " * question + whole[question:]

    return _TARGET.sub(take, text), found


def _is_elsewhere(target: str) -> bool:
    """Whether it is on the reader's own machine: a loopback or made-up host, a path of the file system."""
    host = target.partition("://")[2]
    if host:
        return host.startswith(("localhost", "127.0.0.1", "0.0.0.0", "your", "my-", "<", "{"))
    first = target.split("/")[1]
    return first in _FOLDERS


def _words(text: str) -> Iterator[Mention]:
    """Plain words that stand where only names stand: before `=`, in a first cell, beside 字段."""
    for pattern in (_PAIR, _FIRST_CELL, _NAMED):
        for match in pattern.finditer(text):
            for group, word in enumerate(match.groups(), 1):
                if word and word not in _TYPES and not _is_example(word):
                    kind: Kind = "name" if "-" in word else "word"
                    yield Mention(kind, word, match.start(group))


def _is_example(word: str) -> bool:
    return _PLACEHOLDER.search(word) is not None or _RANDOM.search(word) is not None


def is_standard(word: str) -> bool:
    """Whether it belongs to programming languages, HTTP or the trade, not to a platform."""
    return (
        word in _LANGUAGE_WORDS
        or word.upper() in _TECHNIQUES
        or word.upper() in HTTPMethod.__members__
        or word in _SQL
        or word.lower() in _STANDARD_HEADERS
        or _PLACEHOLDER.search(word) is not None
    )


def _runs(text: str) -> Iterator[Mention]:
    for match in RUN.finditer(text):
        start, end = match.span()
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        if (
            before and ((before.isascii() and before.isalnum()) or before in "@$%\\*~")
        ) or after == "*":
            continue
        run = match[0]
        if not run.endswith("]"):
            run = run.rstrip("_") or run
        shown = run.partition(":")[0]  # behind it may be a code
        if not _RANDOM.search(shown) and not _VERSION.fullmatch(run) and not is_standard(run):
            yield from _of_run(text, run, start, before == after == "`")


def _of_run(text: str, run: str, start: int, in_code: bool) -> Iterator[Mention]:
    """What `run` names, whole or by its parts."""
    if "." in run:
        if in_code or not _is_loose(run):
            foreign = _is_foreign(run, text[start + len(run) : start + len(run) + 1])
            yield Mention("name", run, start, foreign=foreign)
    elif _SCOPE.fullmatch(run) or _is_header(text, run, start, in_code) or (in_code and "-" in run):
        yield Mention("name", run, start)
    elif not (in_code and _LIBRARY.match(text, start + len(run))):
        yield from _of_parts(text, run, start, in_code)


def _of_parts(text: str, run: str, start: int, in_code: bool) -> Iterator[Mention]:
    """The parts of `run` that are names; in a code span, words but those of languages and classes."""
    for part in re.finditer(r"[A-Za-z_]\w*(?:\[\w*\])?", run):
        word, at = part[0], start + part.start()
        plain = in_code and not is_standard(word) and not _is_class(word)
        if not _RANDOM.search(word) and (plain or _is_name(text, word, at)):
            yield _word(text, word, at)


def _word(text: str, word: str, start: int) -> Mention:
    near = text[max(0, start - 40) : start + len(word) + 20]
    is_variable = word.isupper() and "_" in word and _VARIABLE.search(near) is not None
    return Mention("word", word, start, foreign=is_variable)


def _is_loose(run: str) -> bool:
    """Whether its dot is a full stop: initials, or a sentence that begins without a blank."""
    parts = run.split(".")
    return all(len(part) == 1 for part in parts) or (len(parts) == 2 and parts[1].istitle())


def _is_foreign(run: str, after: str) -> bool:
    """Whether it looks like a file, a site, or a library's code."""
    first, *_, last = run.split(".")
    return (
        last in _EXTENSIONS
        or last in _TOP_DOMAINS
        or first in _LANGUAGE_WORDS
        or first[:1].isupper()
        or last.upper() in HTTPMethod.__members__
        or after == "("
        or ("[" not in run and is_spelled(last))
    )


def _is_class(run: str) -> bool:
    return run[:1].isupper() and not run.isupper() and "_" not in run and "-" not in run


def _is_header(text: str, run: str, start: int, in_code: bool) -> bool:
    around = text[max(0, start - 20) : start + len(run) + 20].lower()
    said = in_code or run.startswith("X-") or "header" in around or "头" in around
    return said and _HEADER.fullmatch(run) is not None


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether `word` is written as no word of a language is."""
    if is_standard(word) or word.startswith("__"):
        return False
    if word.isupper() and word.isalpha():
        is_value = _QUOTED_BEFORE.search(text[max(0, start - 1) : start]) or _before(
            _VALUE_BEFORE, text, start
        )
        return len(word) > 2 if is_value else len(word) > 4 and word not in _CAPITALS_OF_PROSE
    if word.isupper() and _before(_FOR_EXAMPLE, text, start) and _word(text, word, start).foreign:
        return False  # an example of what the reader may call an environment variable
    return is_spelled(word)


def is_spelled(word: str) -> bool:
    """Whether it is spelled as only names are: snake_case or camelCase."""
    word = word.partition("[")[0].strip("_")
    return bool(_SNAKE.fullmatch(word) or _CAMEL.fullmatch(word))


def _before(pattern: re.Pattern[str], text: str, start: int) -> bool:
    return pattern.search(text[max(0, start - 20) : start]) is not None


def _numbers(text: str) -> Iterator[Mention]:
    """Numbers of four to six digits that are, or may be, error codes."""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        alone = text[max(0, start - 1) : start] == "`" == text[end : end + 1]
        called = alone or any(_before(p, text, start) for p in (_CODE_BEFORE, _CELL_BEFORE))
        if not called and _UNIT.match(text, end):
            continue
        answered = int(match[0]) % 1000 != 0 and len(match[0]) > 4
        stated = called or (answered and _before(_ANSWER_BEFORE, text, start))
        yield Mention("number", match[0], start, stated=stated)


def permissions(text: str) -> Iterator[Mention]:
    """What stands before 权限包 or Package and names it; "this package" does not."""
    for match in _PERMISSION.finditer(text):
        words = list(_name_words(text, match.start()))
        if words:
            blank = text[match.start() - 1] == " "
            start = match.start() - sum(len(word) + blank for word in words)
            said = (match[0].lower(), *(word.lower() for word in words))
            yield Mention("permission", text[start : match.end()], start, words=said)


def _name_words(text: str, end: int) -> Iterator[str]:
    """The words before `end` that may belong to a name which ends there, the last one first."""
    if text[end - 1 : end] == " ":
        before = _TITLE_WORDS.search(text[max(0, end - 60) : end])
        words = before[0].split() if before else []
    else:
        han = _HAN_BEFORE.search(text[max(0, end - 14) : end])
        words = quiet_jieba().lcut(han[0], HMM=False) if han else []
    for word in reversed(words):
        if word in _NO_PART_OF_A_NAME:
            return
        yield word
