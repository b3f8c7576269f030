"""Finds where a Markdown page states a call: the method and the path of an API operation.

A statement is a heading (`POST /v1/x`), a table or labelled lines (`Method: POST`), a line that begins with
the call, or a code block of request lines. Examples of a call, such as curl commands, count only if nothing
else states a call. In names, a fact is the method or the URL of an operation.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from ingestion.sources.api_pages.actions import stated_action
from ingestion.sources.api_pages.calls import (
    ANY_METHOD,
    CALL,
    DECLARED_CALL,
    MAX_CAPTION_CHARS,
    METHOD_ALONE,
    TARGET,
    TARGET_ALONE,
    Call,
    CallTemplates,
    call_of,
    example_call,
    is_json_example,
    labelled_request,
    labelled_target,
    may_have_calls,
    may_omit_method,
    message_call,
    only_target,
    stated_calls,
)
from ingestion.sources.api_pages.columns import columns_of, is_parameter_table, text_of
from ingestion.sources.api_pages.labels import (
    bold_label,
    has_fact_word,
    is_fact_label,
    is_method_label,
    is_url_label,
    labelled_pairs,
)
from ingestion.sources.api_pages.operation import ListedCall, listed_calls
from ingestion.sources.api_pages.roles import location_of, role_of_title
from ingestion.sources.api_pages.servers import (
    PRODUCTION_URL,
    are_one_operation,
    merge_servers,
    pair_of_row,
)
from ingestion.text.markdown_blocks import MarkdownBlock, parse_table

MAX_BLOCKS_BELOW_HEADING = 50
"""Maximum number of blocks between an example and the heading above it."""

_CODE_LANGUAGE = re.compile(r"\A\s*(?:`{3,}|~{3,})[ \t]*\{?(?!https?\b|te?xt\b|plain)\w")
"""The opening of a code block in a programming language. There, `path: '/'` is code, not a label."""
_GRAPHQL_CODE = re.compile(r"\A\s*(?:`{3,}|~{3,})[ \t]*\{?(?:graphql|gql)\b", re.IGNORECASE)
"""The opening of a code block with a GraphQL query."""
_GRAPHQL = re.compile(r"\W*GraphQL(?: \w+)?\W*", re.IGNORECASE)
"""A heading that names only GraphQL, and no operation."""
_METHOD_BLOCK = re.compile(rf"[*`\s]*({ANY_METHOD})[*`\s]*")
_ONLY_CALL = re.compile(rf"[`*\s]*{CALL.pattern}[`*\s]*")
EXAMPLE = re.compile(r"\b(?:examples?|samples?)\b|示例|样例|举例|范例|例子", re.IGNORECASE)
"""A word in the headings and labels of examples."""
_ERRORS = re.compile(
    r"[\W\d]*(?:errors?(?: (?:codes?|handling|messages?|responses?))?"
    r"|错误(?:码|处理|响应)?|异常(?:处理)?)\W*",
    re.IGNORECASE,
)
"""A heading that is only about errors. A request below it shows how a call fails."""
_CALLBACK = re.compile(
    r"回调|\b(?:webhook|callback)s?\b"
    r"|^(?!.*(?:发送|推送|创建|查询|删除|\b(?:send|create|list|get|delete)\b)).*(?:通知|\bnotifications?\b)",
    re.IGNORECASE,
)
"""A heading about requests that the platform sends, but not 发送通知 ("send a notification")."""
_FACT_IN_CODE = re.compile(rf"`(?:(?P<method>{ANY_METHOD})|(?P<url>{TARGET}))`")
"""A method or URL in a code span. A labelled line may give both: "Method: `POST`, path `/v1/x`"."""


@dataclass(frozen=True)
class LocatedCall:
    """A call and the place where a page gives its method and URL."""

    call: Call
    block: int
    """Index of the block."""
    is_stated: bool = True
    """False if the call is from an example, or if the page does not state its method."""
    is_declared: bool = False
    """Whether the front matter states the call. If so, the page is the reference of this operation."""
    listed: tuple[ListedCall, ...] = ()
    """For a list of calls: all calls of the list that share this place, beginning with `call`."""


def locate_calls(blocks: Sequence[MarkdownBlock], declared: str) -> list[LocatedCall]:
    """Return the calls of a page in page order, one per operation.

    Calls of the same list may share one `LocatedCall` (see `LocatedCall.listed`). `declared` is the
    operation that the front matter names; may be empty. The front matter takes precedence over statements
    on the page, and statements over lists of calls. Calls in examples count only if the page has no other
    calls. If a page gives only the URL or the action (see `actions`) of one operation, without its method,
    the result is a call with the method `POST` and with `is_stated=False`.
    """
    match = DECLARED_CALL.search(declared)
    found = [LocatedCall(call_of(match[1], match[2]), 0, is_declared=True)] if match else []
    if may_have_calls(blocks):
        found += _calls_in_statements(blocks)
        stated = {located.call.key for located in found}
        found += _with_joined_tables(_calls_in_lists(blocks, stated), blocks)
        found += _calls_in_overviews(blocks)
        found += _calls_in_requests(blocks) if found else _calls_in_examples(blocks)
    found = _with_action(found or _calls_without_method(blocks), blocks)
    located_calls = _without_examples(_without_graphql(found, blocks), blocks)
    declared_keys = _repeated_declaration(located_calls)
    first: dict[tuple[str, str], LocatedCall] = {}
    for located in located_calls:
        known = first.setdefault(declared_keys.get(located.call.key, located.call.key), located)
        if known.is_declared and "://" in located.call.url:
            # The page repeats the declared call with the address of the server: use this URL.
            first[known.call.key] = replace(known, call=located.call)
    return sorted(first.values(), key=lambda located: located.block)


def _repeated_declaration(
    located_calls: Sequence[LocatedCall],
) -> dict[tuple[str, str], tuple[str, str]]:
    """Map the key of a call to the key of the declared call that it repeats with a base path.

    For example, the front matter declares `POST /messages`, and the only other call on the page is
    `POST https://a.example/v1/messages`. The result is empty for other pages.
    """
    declared = {located.call.key for located in located_calls if located.is_declared}
    others = {located.call.key for located in located_calls} - declared
    if len(declared) != 1 or len(others) != 1:
        return {}
    (key,), (other,) = declared, others
    return {other: key} if other[0] == key[0] and other[1].endswith(key[1]) else {}


def _calls_in_statements(blocks: Sequence[MarkdownBlock]) -> Iterator[LocatedCall]:
    """Yield the calls that headings, lines, code blocks or labelled values (`Method: POST`) state."""
    facts = _LabelledFacts()
    for index, block in enumerate(blocks):
        is_heading = block.kind == "heading"
        if is_heading and block.level <= 2 and not is_fact_label(block.title):
            facts = _LabelledFacts()
        calls = stated_calls(block)
        method = _METHOD_BLOCK.fullmatch(block.text) if block.kind == "paragraph" else None
        if len(calls) == 1 or are_one_operation(calls):
            yield LocatedCall(calls[0], index)
        elif method:  # only a method; the path follows
            yield from facts.read([("method", method[1])], index)
        elif is_heading and facts.is_after_method and TARGET_ALONE.fullmatch(block.title):
            # The call is placed at the method above. If it were placed at the heading, the path in the
            # heading would become the title of the operation.
            yield from facts.read([("URL", block.title)], index - 1)
        elif target := only_target(block) or (facts.is_after_method and _path_alone(block)):
            yield from facts.read([("URL", target)], index)
        elif not calls:
            yield from facts.read(_pairs(blocks, index, facts), index)
            yield from facts.read_example(block)
        facts.label = block.title if is_heading else bold_label(block)
        facts.is_after_method = method is not None


def _path_alone(block: MarkdownBlock) -> str:
    """Return the path of a paragraph that contains nothing else; empty for other blocks."""
    text = block.text.strip("` *\n") if block.kind == "paragraph" else ""
    return text if TARGET_ALONE.fullmatch(text) else ""


def _calls_in_overviews(blocks: Sequence[MarkdownBlock]) -> Iterator[LocatedCall]:
    """Yield each call in a table of contents, placed at the heading that the call's row names."""
    headings = _headings(blocks)
    for block in blocks:
        if block.kind == "table" and CALL.search(block.text):
            for row in parse_table(block.text):
                call = next(filter(None, map(CALL.search, row)), None)
                named = next((headings[t] for t in map(text_of, row) if t in headings), None)
                if call and named is not None:
                    yield LocatedCall(call_of(call[1], call[2]), named)


def _calls_in_lists(
    blocks: Sequence[MarkdownBlock], stated: Collection[tuple[str, str]]
) -> Iterator[LocatedCall]:
    """Yield the calls of blocks with several calls.

    If the name of a call begins with the title of a heading, the call is placed at the heading. The other
    calls of the block share one `LocatedCall`. A row with the call and the name of an earlier row is left
    out, even if its query differs.

    `stated` contains the keys of calls that were found in other places. A block with one of these calls is
    left out, because it only repeats calls.
    """
    headings = _headings(blocks)
    for index, block in enumerate(blocks):
        calls = listed_calls(block) or _calls_of_code(block)
        if len(calls) < 2 or any(listed.call.key in stated for listed in calls):
            continue
        others: list[ListedCall] = []
        distinct: dict[object, ListedCall] = {}
        for listed in calls:
            distinct.setdefault((listed.call.key, listed.name), listed)
        for listed in distinct.values():
            named = (
                at for title, at in headings.items() if f"{listed.name} ".startswith(f"{title} ")
            )
            if (heading := next(named, None)) is not None:
                yield LocatedCall(listed.call, heading, listed=(listed,))
            else:
                others.append(listed)
        if others:
            yield LocatedCall(others[0].call, index, listed=tuple(others))


def _with_joined_tables(
    located_calls: Iterable[LocatedCall], blocks: Sequence[MarkdownBlock]
) -> list[LocatedCall]:
    """Return the calls, with successive tables of one section joined if their calls have no names.

    Such tables list paths of one operation, such as the current and the deprecated ones.
    """
    joined: list[LocatedCall] = []
    for located in located_calls:
        last = joined[-1] if joined else None
        if last and _are_of_one_operation(last, located, blocks):
            joined[-1] = replace(last, listed=(*last.listed, *located.listed))
        else:
            joined.append(located)
    return joined


def _are_of_one_operation(
    first: LocatedCall, second: LocatedCall, blocks: Sequence[MarkdownBlock]
) -> bool:
    has_names = any(listed.name for listed in (*first.listed, *second.listed))
    are_tables = all(blocks[located.block].kind == "table" for located in (first, second))
    between = blocks[first.block : second.block]
    return are_tables and not has_names and all(block.kind != "heading" for block in between)


def _headings(blocks: Sequence[MarkdownBlock]) -> dict[str, int]:
    """Return the index of each heading by its title."""
    return {b.title: i for i, b in enumerate(blocks) if b.kind == "heading" and b.title}


def _calls_of_code(block: MarkdownBlock) -> list[ListedCall]:
    return [ListedCall(call) for call in stated_calls(block)] if block.kind == "fence" else []


def _calls_in_requests(blocks: Sequence[MarkdownBlock]) -> Iterator[LocatedCall]:
    """Yield the calls of code blocks that show a whole request (see `labelled_request`)."""
    for index, (above, block) in enumerate(pairwise(blocks), 1):
        if call := labelled_request(block, above):
            yield LocatedCall(call, index)


def _calls_in_examples(blocks: Sequence[MarkdownBlock]) -> list[LocatedCall]:
    """Return the calls in examples if all examples call the same operation.

    If they call several operations, as in a tutorial, only the HTTP messages right below headings such as
    "Request" count.
    """
    examples = [
        LocatedCall(call, index, is_stated=False)
        for index, block in enumerate(blocks)
        if (call := example_call(block))
    ]
    if len({located.call.key for located in examples}) == 1:
        return examples
    return [located for located in examples if _is_below_request(blocks, located.block)]


def _calls_without_method(blocks: Sequence[MarkdownBlock]) -> list[LocatedCall]:
    """Return a `POST` call of the URL of a page that states one URL and no method.

    The page must describe the body of a request, and give the URL after a label. Such a page may omit the
    method because all operations of the platform use `POST`. The result is empty for other pages, and for
    pages about requests that the platform sends.
    """
    if not (may_omit_method(blocks) and _describes_body(blocks)):
        return []
    urls: dict[str, int] = {}
    facts = _LabelledFacts()
    for index, block in enumerate(blocks):
        pairs = _pairs(blocks, index, facts)
        if target := only_target(block):
            pairs = [(facts.label, target)]
        for label, value in pairs:
            if is_url_label(label) and (url := labelled_target(value)):
                urls.setdefault(call_of("POST", url).url, index)
        facts.label = block.title if block.kind == "heading" else bold_label(block)
    if len(urls) != 1:
        return []
    ((url, position),) = urls.items()
    is_sent_by_platform = any(_CALLBACK.search(block.title) for block in blocks[:position])
    located = LocatedCall(call_of("POST", url), position, is_stated=False)
    return [located] if located.call.key[1] and not is_sent_by_platform else []


def _with_action(found: list[LocatedCall], blocks: Sequence[MarkdownBlock]) -> list[LocatedCall]:
    """Return the calls in `found` with the action of the page in their URLs, if all paths are empty or `/`.

    An action names an operation (see `actions`). For example, `https://a.example/` becomes
    `https://a.example/?Action=CreateRoom`. If `found` is empty, the result is a `POST` call of the action.
    If the page states no action, `found` is returned.
    """
    if any(located.call.key[1] for located in found):
        return found
    action = stated_action(blocks)
    if action is None:
        return found
    query = f"/?Action={action.name}"
    if not found:
        return [LocatedCall(call_of("POST", query), action.block, is_stated=False)]
    return [
        replace(located, call=call_of(located.call.method, located.call.url.rstrip("/") + query))
        for located in found
    ]


def _describes_body(blocks: Sequence[MarkdownBlock]) -> bool:
    """Return whether a page has a table of request parameters, and says that requests have a body.

    The page says so if the heading of the table names the body, or if a JSON example follows a heading
    such as "Request example".
    """
    heading = ""
    has_parameters = has_body = False
    for block in blocks:
        if block.kind == "heading":
            heading = block.title
        elif role_of_title(heading) == "request":
            rows = parse_table(block.text) if block.kind == "table" else []
            is_table = bool(rows) and is_parameter_table(columns_of(rows[0], rows[1:]))
            has_parameters |= is_table
            has_body |= is_json_example(block) or (is_table and location_of(heading) == "body")
    return has_parameters and has_body


def _is_below_request(blocks: Sequence[MarkdownBlock], position: int) -> bool:
    """Return whether a block is an HTTP message right below a heading such as "Request"."""
    title = blocks[position - 1].title if position and message_call(blocks[position]) else ""
    return role_of_title(title) == "request" and not EXAMPLE.search(title)


def _without_examples(
    located_calls: Sequence[LocatedCall], blocks: Sequence[MarkdownBlock]
) -> Sequence[LocatedCall]:
    """Return the calls, except calls in examples that only repeat a call from outside the examples.

    An HTTP message below a call is an example, too, unless a heading is between them.
    """
    examples = {located for located in located_calls if _is_example(blocks, located.block)}
    ordered = sorted(located_calls, key=lambda located: located.block)
    examples |= {
        located
        for before, located in pairwise(ordered)
        if message_call(blocks[located.block])
        and all(block.kind != "heading" for block in blocks[before.block + 1 : located.block])
        and CallTemplates([before.call]).matches(located.call)
    }
    if not examples:
        return located_calls
    templates = CallTemplates(located.call for located in located_calls if located not in examples)
    return [
        located
        for located in located_calls
        if located not in examples or not templates.matches(located.call)
    ]


def _without_graphql(
    located_calls: list[LocatedCall], blocks: Sequence[MarkdownBlock]
) -> list[LocatedCall]:
    """Return the calls, except those below "GraphQL" next to another form of the same operation.

    For example, a section "List boats" has the subsections "REST" and "GraphQL". All GraphQL queries have
    the same URL, so this call is no operation of its own.
    """
    ordered = sorted(located_calls, key=lambda located: located.block)
    dropped = {
        call for before, call in pairwise(ordered) if _is_graphql(blocks, before.block, call.block)
    }
    return [located for located in located_calls if located not in dropped]


def _is_graphql(blocks: Sequence[MarkdownBlock], before: int, position: int) -> bool:
    """Return whether a block is right above a query, below a heading "GraphQL" after the call at `before`.

    Both blocks must be in the same section, other than the whole page.
    """
    headings = [block for block in blocks[before + 1 : position] if block.kind == "heading"]
    below = blocks[position + 1 : position + 2]
    if not (headings and below and _GRAPHQL_CODE.match(below[0].text)):
        return False
    level = headings[-1].level
    is_inside = 2 < level <= min(block.level for block in headings)
    return is_inside and _GRAPHQL.fullmatch(headings[-1].title) is not None


def _is_example(blocks: Sequence[MarkdownBlock], position: int) -> bool:
    """Return whether a block is code or a paragraph below the heading or label of an example.

    Code below a heading such as "Errors" is an example, too.
    """
    if position >= len(blocks) or blocks[position].kind not in ("fence", "paragraph"):
        return False
    above = blocks[max(position - MAX_BLOCKS_BELOW_HEADING, 0) : position][::-1]
    heading = next((block.title for block in above if block.kind == "heading"), "")
    is_labelled = above and above[0].kind == "paragraph" and len(above[0].text) <= MAX_CAPTION_CHARS
    label = above[0].text if is_labelled else ""
    is_failure = blocks[position].kind == "fence" and _ERRORS.fullmatch(heading)
    return bool(EXAMPLE.search(f"{heading} {label}") or is_failure)


def is_call(text: str) -> bool:
    """Return whether a text consists of a method and a URL or path."""
    return _ONLY_CALL.fullmatch(text) is not None


def _pairs(
    blocks: Sequence[MarkdownBlock], index: int, facts: "_LabelledFacts"
) -> list[tuple[str, str]]:
    """Return the pairs of a label and a value in a block, such as "URL" and a path.

    The label may also be above the block. The URLs of one operation on several servers become one pair.
    This pair is left out if a later block gives a labelled path, because the URLs are then only the
    addresses of the servers.
    """
    pairs = _pairs_of_block(blocks[index], facts, blocks[index + 1 : index + 2])
    if any(label == PRODUCTION_URL for label, _ in pairs) and _gives_path(blocks[index + 1 :]):
        return [pair for pair in pairs if pair[0] != PRODUCTION_URL]
    return pairs


def _gives_path(blocks: Iterable[MarkdownBlock]) -> bool:
    """Return whether a labelled path follows before the next section, as in "Path: /v1/x"."""
    for block in blocks:
        if block.kind == "heading" and not is_fact_label(block.title):
            return False
        pairs = _table_pairs(block) if block.kind == "table" else labelled_pairs(block)
        if any(
            is_url_label(label) and value.strip("`* ").startswith("/") for label, value in pairs
        ):
            return True
    return False


def _pairs_of_block(
    block: MarkdownBlock, facts: "_LabelledFacts", below: Sequence[MarkdownBlock]
) -> list[tuple[str, str]]:
    """Return the pairs of a block.

    `below` contains the next block, which may give the URL on another server; empty for the last block.
    """
    if block.kind == "heading":
        return labelled_pairs(MarkdownBlock("other", block.title))
    if block.kind == "fence" and _CODE_LANGUAGE.match(block.text):
        return []
    has_label = has_fact_word(block.text)
    may_state = has_label or "://" in block.text
    if block.kind == "table":
        return _table_pairs(block) if may_state or CALL.search(block.text) else []
    pairs = labelled_pairs(block) if may_state else []
    if len(pairs) == 1 and below and block.kind == below[0].kind == "paragraph":
        merged = merge_servers([*pairs, *labelled_pairs(below[0])])
        pairs = merged if len(merged) == 1 else pairs
    pairs = merge_servers(pairs)
    if not has_label:  # without a label such as "URL", only the URLs of several servers count
        pairs = [pair for pair in pairs if pair[0] == PRODUCTION_URL]
    if is_fact_label(facts.label) and not any(is_fact_label(label) for label, _ in pairs):
        return [(facts.label, block.text)]
    return pairs


class _LabelledFacts:
    """Collects the method and the URL of a call from labelled values in successive blocks."""

    def __init__(self) -> None:
        self.label = ""
        """The heading or bold label right before the current block; empty if there is none."""
        self.is_after_method = False
        """Whether the block before the current one is only a method."""
        self._method = ""
        self._url = ""
        self._url_block = 0

    def read_example(self, block: MarkdownBlock) -> Iterator[LocatedCall]:
        """Yield the call if only its URL is known, and the block is an example that calls this URL."""
        example = example_call(block) if self._url and not self._method else None
        call = call_of(example.method, self._url) if example else None
        if example and call and CallTemplates([call]).matches(example):
            yield LocatedCall(call, self._url_block)
            self._url = ""

    def read(self, pairs: Sequence[tuple[str, str]], block: int) -> Iterator[LocatedCall]:
        """Yield the call as soon as a method and a URL are known."""
        for label, value in pairs:
            is_url, is_method = is_url_label(label), is_method_label(label)
            call = CALL.search(value) if is_url or is_method else None
            if call and call[2] != "/":  # `GET / POST` are two methods
                self._method, self._url = call[1], call[2]
            elif is_method and (method := METHOD_ALONE.search(value)):
                self._method, self._url = method[1], _only_code(value, "url") or self._url
            elif is_url and (target := labelled_target(value)):
                # Of the URLs of one operation on several servers, the first is used.
                if not are_one_operation([call_of("GET", url) for url in (self._url, target)]):
                    self._url, self._url_block = target, block
                self._method = _only_code(value, "method") or self._method
            if self._method and self._url:
                yield LocatedCall(call_of(self._method, self._url), block)
                self._method = self._url = ""


def _only_code(value: str, kind: Literal["method", "url"]) -> str:
    """Return the method or URL in the code spans of a value; empty unless there is exactly one."""
    found = [match[kind] for match in _FACT_IN_CODE.finditer(value) if match[kind]]
    return found[0] if len(found) == 1 else ""


def _table_pairs(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return the labels and values in a table. A label is a cell of the first column or of the header.

    If exactly one value is a whole call, as in "Resource: `GET /v1/x`", only this call is returned, with
    the label "URL".
    """
    rows = parse_table(block.text)
    if len(rows) == 2:
        across = list(zip(*rows, strict=False))
        merged = merge_servers(across)
        if len(merged) < len(across) or any(is_url_label(label) for label, _ in across):
            return [*merged, *((row[0], row[1]) for row in rows if len(row) == 2)]
    by_row = [pair_of_row(row) for row in rows if len(row) > 1]
    if len(merged := merge_servers(by_row)) < len(by_row):
        return merged
    pairs = [(row[0], row[1]) for row in rows if 2 <= len(row) <= 3]
    calls = [value for _, value in pairs if is_call(value)]
    return [("URL", calls[0])] if len(calls) == 1 else pairs
