"""Finds where a Markdown page states the method and path of an API operation.

A statement is a heading (`POST /v1/x`), a table or labelled lines (`Method: POST`), or a request line of
its own. An example of a call, such as a curl command, counts only on a page that states nothing.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast
from urllib.parse import urlsplit

from ingestion.sources.api_columns import parts_of, text_of
from ingestion.text.markdown_blocks import MarkdownBlock, parse_table

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]

METHODS = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"

MAX_LABEL_CHARS = 24
"""Maximum length, in characters, of the text next to a call in a paragraph that only labels the call."""

MAX_FACT_CHARS = 1_000
"""Maximum length of a block whose labelled lines are read; longer blocks are prose."""

_BASE_VARIABLE = r"\$?\{\{?[\w.-]+\}?\}(?=/)"
"""A variable for the address of the server, as in Postman: `{{baseUrl}}/v1/x`."""
_TARGET = rf"(?:(?:https?://|{_BASE_VARIABLE}|/)(?:<[\w-]+>|[^\s`|<>\"')，。])*)"
CALL = re.compile(
    rf"(?<![\w/])(?:[\[【(（]\s*)?({METHODS})(?:\*\*|[`\s:|\]】)）]|&nbsp;|<[^>]*>)+({_TARGET})"
)
_METHOD_ALONE = re.compile(rf"(?<![\w/])({METHODS}|get|post|put|patch|delete)(?![\w/])")
_MAY_BE_METHOD = re.compile(
    r"[GPDHO](?:ET|OST|UT|ATCH|ELETE|EAD|PTIONS)(?![\w/])"
    r"|[gpd](?:et|ost|ut|atch|elete)[`*\s]*(?:$|[|</(（,，;；.。{]|http)",
    re.MULTILINE,
)
"""Finds pages worth reading: a method in lower case must end its cell, line or clause, or precede a URL."""
_TARGET_ALONE = re.compile(_TARGET)
_BARE_CALL = re.compile(rf"({METHODS})[\s`*:|]+({_TARGET})", re.IGNORECASE)
"""A call without other text; only then may the method be in lower case."""
_URL_LABEL = re.compile(
    r"(?:[a-z]+\s+){0,2}(?:url|uri|path|endpoint|address)|route"
    r"|(?:https?\s*)?[\u4e00-\u9fff]{0,4}\s*(?:url|uri|地址|路径|链接)|接口",
    re.IGNORECASE,
)
_METHOD_LABEL = re.compile(
    r"(?:[a-z]+\s+){0,2}(?:method|verb)|(?:request|http)\s*type"
    r"|(?:http\s*)?[\u4e00-\u9fff]{0,4}(?:方式|方法|类型|method)",
    re.IGNORECASE,
)
_FACT_WORD = re.compile(
    "ur[li]|path|endpoint|address|route|method|verb|type|地址|路径|链接|接口|方式|方法|类型"
)
"""A word that each label of a URL or a method contains, in lower case."""
_LABELLED_LINE = re.compile(
    r"^[\s>*\-+•]*(?:(?:\*\*|__|`)?\s*([^:：|*`]{1,24}?)\s*(?:\*\*|__|`)?\s*[:：]\s*(?:\*\*|__)?"
    r"|\*\*\s*([^:：|*`]{1,24})\*\*)\s*(\S.*)$"
)
_CODE_LANGUAGE = re.compile(r"\s*(?:`{3,}|~{3,})\s*\{?(?!https?\b|te?xt\b|plain)\w")
"""The opening of a code block in a language: `path: '/'` in it is a property."""
_HAS_LABEL = re.compile(r"[^:：]{1,40}[:：]|\W*\*\*")
_CURL = re.compile(r"^\s*(?:\$\s*)?curl\b", re.MULTILINE)
_CURL_METHOD = re.compile(rf"(?:-X|--request)\s*=?\s*['\"]?({METHODS})\b", re.IGNORECASE)
_CURL_DATA = re.compile(r"\s(?:-d|--data(?:-raw|-binary|-urlencode)?|--json|-F|--form)\b")
_CURL_URL = re.compile(r"https?://[^\s'\"\\`]+")
_REQUEST_LINE = re.compile(rf"^\s*({METHODS})\s+({_TARGET})")
DECLARED_CALL = re.compile(rf"(?:^|\s)({METHODS})\s+(\S+)", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{[^}]*\}|(?<=/):[A-Za-z_]\w*|<[^>]*>")


@dataclass(frozen=True)
class Mark:
    """A place where a page gives the method and the URL of an operation."""

    method: Method
    url: str
    block: int
    """Index of the block."""
    is_stated: bool
    """Whether the page states it; otherwise it is an example of a call."""
    is_declared: bool = False
    """Whether the front matter states it: the page is the reference of this operation."""


def find_marks(blocks: Sequence[MarkdownBlock], declared: str) -> list[Mark]:
    """Return the first mark of each operation. `declared` is an operation in the front matter."""
    has_method = any(
        _MAY_BE_METHOD.search(block.text) and _METHOD_ALONE.search(block.text) for block in blocks
    )
    found = [*_stated_marks(blocks), *_overview_marks(blocks)] if has_method else []
    if match := DECLARED_CALL.search(declared):
        found.insert(0, replace(_mark(match[1], match[2], 0), is_declared=True))
    if not found and has_method:
        examples = list(_example_marks(blocks))
        paths = {(mark.method, path_of(mark.url)) for mark in examples}
        found = examples if len(paths) == 1 else []  # a tutorial calls several operations
    first: dict[tuple[str, str], Mark] = {}
    for mark in found:
        first.setdefault((mark.method, path_of(mark.url)), mark)
    return sorted(first.values(), key=lambda mark: mark.block)


def split_by_mark(
    blocks: Sequence[MarkdownBlock], marks: Sequence[Mark]
) -> list[tuple[Mark, int, int]]:
    """Return each mark with the range of blocks that belong to it: all blocks if it is the only one."""
    if len(marks) <= 1:
        return [(mark, 0, len(blocks)) for mark in marks]
    # Headings of other levels are within operations: the first operation has none above it.
    known = {block.level for block in blocks[: marks[0].block + 1]} - {0}
    starts = [
        _start(blocks, before.block + 1, mark.block, known) for before, mark in pairwise(marks)
    ]
    levels = [blocks[start].level for start in starts if blocks[start].kind == "heading"]
    starts.insert(0, _first_start(blocks, marks[0].block, min(levels, default=0)))
    ends = [*starts[1:], len(blocks)]
    return [
        (mark, start, _end(blocks, start, end))
        for mark, start, end in zip(marks, starts, ends, strict=True)
    ]


def path_names(url: str) -> list[str]:
    """Return the names of the placeholders in the path of a URL."""
    path = urlsplit(url).path if "://" in url else url
    return [match.strip("{}:<> ") for match in _PLACEHOLDER.findall(path)]


def path_of(url: str) -> str:
    """Return the path of a URL with every placeholder as `{}`."""
    path = urlsplit(url).path if "://" in url else url
    return _PLACEHOLDER.sub("{}", path).rstrip("/")


def _mark(method: str, url: str, block: int, is_stated: bool = True) -> Mark:
    url = re.sub(f"^{_BASE_VARIABLE}", "", re.sub(r"\*(\{[^}]*\})\*", r"\1", url))
    url = re.sub(r"\{([\w.]+)#[^{}]*\}", r"{\1}", url)  # a link in a placeholder
    url = re.sub(r"\\([_\-.{}])", r"\1", url).rstrip(".,;:。，；*`").split("?")[0]
    return Mark(cast(Method, method.upper()), url, block, is_stated)


def _stated_marks(blocks: Sequence[MarkdownBlock]) -> Iterator[Mark]:
    facts = _LabelledFacts()
    for index, block in enumerate(blocks):
        is_heading = block.kind == "heading"
        if is_heading and block.level <= 2 and not is_fact_label(block.title):
            facts = _LabelledFacts()
        if call := _call(block):
            yield _mark(call[1], call[2], index)
        elif target := _only_target(block):
            yield from facts.read([("URL", target)], index)
        else:
            yield from facts.read(_pairs(block, facts), index)
        facts.label = block.title if is_heading else _bold_label(block)


def _call(block: MarkdownBlock) -> re.Match[str] | None:
    """Return the call that a block states with its method."""
    if block.kind == "heading":
        return CALL.search(block.text)
    if block.kind == "fence":
        lines = _code_lines(block)
        return _REQUEST_LINE.match(lines[0]) if len(lines) == 1 else None
    return _only_call(block)


def is_fact_label(text: str) -> bool:
    """Return whether a label announces the URL or the method of an operation."""
    return _matches(_URL_LABEL, text) or _matches(_METHOD_LABEL, text)


def _matches(pattern: re.Pattern[str], label: str) -> bool:
    # Most labels of a page are neither: a search is cheaper than splitting them into parts.
    return _has_fact_word(label) and any(pattern.fullmatch(part) for part in parts_of(label))


def _has_fact_word(text: str) -> bool:
    # A search in lower case is several times as fast as one that ignores case.
    return _FACT_WORD.search(text.lower()) is not None


def _bold_label(block: MarkdownBlock) -> str:
    """Return the text of a paragraph that is only a bold label."""
    match = re.fullmatch(r"\s*\*\*([^*]{1,24})\*\*[:：]?\s*", block.text)
    return match[1] if match else ""


def _pairs(block: MarkdownBlock, facts: "_LabelledFacts") -> list[tuple[str, str]]:
    """Return label and value of each row or line; a block under a label is the label's value."""
    if block.kind == "heading":
        return labelled_pairs(MarkdownBlock("other", block.title))
    if block.kind == "fence" and _CODE_LANGUAGE.match(block.text):
        return []
    if block.kind != "table" and is_fact_label(facts.label):
        return [(facts.label, block.text)]
    if not _has_fact_word(block.text if block.kind == "table" else block.text[:MAX_FACT_CHARS]):
        return []
    return _table_pairs(block) if block.kind == "table" else labelled_pairs(block)


class _LabelledFacts:
    """A method and a URL that a page gives under labels, one after the other."""

    def __init__(self) -> None:
        self.label = ""
        """The heading or bold text right before a block."""
        self._method = ""
        self._url = ""

    def read(self, pairs: Sequence[tuple[str, str]], block: int) -> Iterator[Mark]:
        """Yield a mark once both are known."""
        for label, value in pairs:
            is_url, is_method = _matches(_URL_LABEL, label), _matches(_METHOD_LABEL, label)
            call = CALL.search(value) if is_url or is_method else None
            if call and call[2] != "/":  # `GET / POST` are two methods
                self._method, self._url = call[1], call[2]
            elif is_method and (method := _METHOD_ALONE.search(value)):
                self._method = method[1]
            elif is_url and (target := _TARGET_ALONE.search(value)):
                self._url = target[0]
            if self._method and self._url:
                yield _mark(self._method, self._url, block)
                self._method = self._url = ""


def _only_target(block: MarkdownBlock) -> str:
    """Return the URL of a code block or quotation that contains nothing else."""
    if block.kind not in ("fence", "other") or len(block.text) > MAX_FACT_CHARS:
        return ""
    text = re.sub(r"^[>\s]*(?:`{3,}.*)?", "", block.text, flags=re.MULTILINE).strip()
    return text if _TARGET_ALONE.fullmatch(text) else ""


def _only_call(block: MarkdownBlock) -> re.Match[str] | None:
    """Return the call of a paragraph that contains nothing else, apart from a short label."""
    if block.kind == "paragraph" and (bare := _BARE_CALL.fullmatch(block.text.strip(" `*"))):
        return bare
    call = CALL.search(block.text)
    if call is None or block.kind not in ("paragraph", "other", "list"):
        return None
    rest = text_of(block.text).replace(call[1], "", 1).replace(text_of(call[2]), "", 1)
    rest = rest.strip(" `*:：")
    is_label = len(rest) <= MAX_LABEL_CHARS and not re.search(r"[.。!?！？,，]", rest)
    return call if is_label else None


def _code_lines(block: MarkdownBlock) -> list[str]:
    """Return the lines of a code block without its fences and blank lines."""
    fences = ("```", "~~~")
    lines = block.text.splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith(fences)]


def _example_request(block: MarkdownBlock, index: int) -> Mark | None:
    """Return the request line of an HTTP message in a code block."""
    lines = _code_lines(block)
    match = _REQUEST_LINE.match(lines[0]) if lines else None
    opening = block.text.partition("\n")[0].lower()
    if match is None or ("http" not in opening and not re.search(r"\sHTTP/\d", lines[0])):
        return None
    return _mark(match[1], match[2], index, is_stated=False)


def _example_marks(blocks: Sequence[MarkdownBlock]) -> Iterator[Mark]:
    for index, block in enumerate(blocks):
        if block.kind != "fence":
            continue
        if _CURL.search(block.text) and (target := _CURL_URL.search(block.text)):
            stated = _CURL_METHOD.search(block.text)
            default = "POST" if _CURL_DATA.search(block.text) else "GET"
            yield _mark(stated[1] if stated else default, target[0], index, is_stated=False)
        elif request := _example_request(block, index):
            yield request


def _overview_marks(blocks: Sequence[MarkdownBlock]) -> Iterator[Mark]:
    """Yield the calls of a table of contents, each at the heading that its row names."""
    headings = {block.title: i for i, block in enumerate(blocks) if block.kind == "heading"}
    for block in blocks:
        if block.kind == "table" and CALL.search(block.text):
            for row in parse_table(block.text):
                call = next(filter(None, map(CALL.search, row)), None)
                named = next((headings[t] for t in map(text_of, row) if t in headings), None)
                if call and named is not None:
                    yield _mark(call[1], call[2], named)


def _table_pairs(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return label and value of each row; if there is only one, also its cells with their column titles."""
    rows = parse_table(block.text)
    if len(rows) == 2:
        across = list(zip(*rows, strict=False))
        if any(_matches(_URL_LABEL, label) for label, _ in across):
            return [*across, *((row[0], row[1]) for row in rows if len(row) == 2)]
    return [(row[0], row[1]) for row in rows if 2 <= len(row) <= 3]


def labelled_pairs(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return label and value of lines such as `**Method**: POST`."""
    lines = re.split(r"\n|<br\s*/?>|[;；](?=\s*\S+[:：])", block.text[:MAX_FACT_CHARS])
    labelled = (line for line in lines if _HAS_LABEL.match(line))
    matches = filter(None, map(_LABELLED_LINE.match, labelled))
    return [(text_of(match[1] or match[2]), match[3]) for match in matches]


def _start(blocks: Sequence[MarkdownBlock], lowest: int, mark: int, levels: Collection[int]) -> int:
    """Return the last of the highest headings of `levels` from `lowest` to the block of the mark.

    Without levels, it is the heading right above the mark.
    """
    if not levels and mark > lowest and blocks[mark - 1].kind == "heading":
        return mark if is_fact_label(blocks[mark - 1].title) else mark - 1
    headings = [i for i in range(lowest, mark + 1) if blocks[i].level in levels]
    if not headings or blocks[mark].kind == "heading":
        return mark
    level = min(blocks[i].level for i in headings)
    return max(i for i in headings if blocks[i].level == level)


def _end(blocks: Sequence[MarkdownBlock], start: int, end: int) -> int:
    """Return where the section that begins with the heading at `start` ends, at most `end`."""
    level = blocks[start].level
    return next((i for i in range(start + 1, end) if 0 < blocks[i].level < level), end)


def _first_start(blocks: Sequence[MarkdownBlock], mark: int, level: int) -> int:
    """Return the last heading of the level of the other operations, else the start of the page.

    Without such a level, the operations begin where their calls stand.
    """
    if level == 0:
        return mark
    same = [i for i in range(mark + 1) if blocks[i].kind == "heading" and blocks[i].level == level]
    return max(same, default=0)
