"""Exact search for the identifiers that a question mentions.

A chunk defines an identifier in each of these cases:

- The identifier is in a column of codes in a table, or is the name of a row (see `table_rows.row_name`).
  If a table has a column of codes, an identifier in capitals such as `KICKED` may also be in a column of
  names or reasons.
- The identifier starts a list item, a heading or a quotation. In a heading, words such as `class` and
  `async def`, and the name of a package, may precede it.
- The identifier starts a line, and is a code span, is in bold or italics, or is followed by a colon.
- The identifier is a number, and a row of a table is a range with this number, such as `4900~4913`.
- The identifier follows the label "Operation ID:" at the start of a line.
- The identifier is the name, path, last path segment or operation id of the chunk's API.

A chunk also defines a path if it defines a pattern that matches the path, such as `/devices/${id}/state`.
It defines a dotted name, such as `Room.close`, if it defines the last part, and its title or headings
contain the part before: the section "close" below the heading "class Room".

The first line and the headers of a sample request or response define nothing.

Some mentions outside these cases are weaker definitions (see `LISTED`). Exact search ignores the rest.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from rapidfuzz import fuzz, process

from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import parse_blocks
from ingestion.text.words import (
    contains_name,
    joined_word,
    read_word_lists,
    split_words,
    with_indexed_versions,
)
from runnables.question.error_codes import error_codes
from runnables.question.extract_details import code_in_response
from runnables.question.query_analysis import HTTP_MESSAGE, hexadecimal, specific_identifiers
from runnables.retrieval.named_operations import chunks_by_path, is_at_path
from runnables.retrieval.number_ranges import (
    ERROR_TABLE_QUERY,
    chunks_with_range,
    is_number,
    ranges_in,
)
from runnables.retrieval.path_patterns import (
    SEARCH_DEPTH,
    chunks_with_pattern,
    contains_below_base,
    contains_name_pattern,
    matching_patterns,
    search_chunks,
    unescaped_body,
)
from runnables.retrieval.table_rows import cell_parts, plain_cells, row_defines
from schemas.document import Chunk
from schemas.question import ExtractedDetails, Filters

MAX_IDENTIFIERS = 6
"""Maximum number of identifiers in a question that are looked up. Each takes one search or more."""

MAX_STATUS_BYTE = 255
"""Largest decimal code that is also searched for in hexadecimal: documents may write 142 as `0x8e`."""

MAX_SUGGESTED_IDENTIFIERS = 3
"""Maximum number of identifiers to suggest in place of one that no document contains."""

MIN_IDENTIFIER_SIMILARITY = 75
"""Minimum similarity, 0 to 100, of a suggested identifier."""

DEFINED, LISTED = 2, 1
"""Strengths with which a chunk defines an identifier.

`DEFINED` means one of the cases in the docstring of this module. `LISTED` means that the identifier is a
code span or a number of more than three digits outside tables, or a word in a table cell. Numbers in table
cells do not count.
"""

STATUS_DIGITS = 3
"""Number of digits of an HTTP status."""

_LOCAL_FILE = re.compile(
    r"\.(?:py|[cm]?[jt]sx?|go|java|kt|rb|php|cs|cpp|rs|swift"
    r"|csv|tsv|xlsx?|docx?|pptx?|pdf|txt|png|jpe?g|gif|webp|mp[34]|mov|wav|gz|tar|rar|7z)$"
    r"|(?:^|/)(?:node_modules|site-packages)/"
)
"""The name of a file of the asker, such as `app.py` in an error message, or the upload `report.csv`."""
_VALUE = re.compile(r"[a-z].*\d|\d.*[a-z]")
"""A name with letters and digits, such as `ord_1`."""

_HTTP_CALL = re.compile(
    r"(?<![\w.$])([A-Za-z_$][\w$]{0,60}(?:\.[\w$]{1,60}){1,4})\(\s{0,9}[A-Za-z]{0,2}[\"'`][^\"'`\n]{0,200}/",
    re.ASCII,
)
"""A call of a function whose first argument is a path or URL, such as `web.put(f"{host}/v1/orders"`."""
_OBJECT = re.compile(r"\{[^{}\n]{3,2000}\}")
_KEY = re.compile(r"(?<=[{,\s])[\"']?([A-Za-z_][\w.-]{0,60})[\"']?\s?[:=](?!/)", re.ASCII)
"""A key in `{status_code:403, request_id: 7f3a}`."""

_ITEM = re.compile(r"\s*(?:[>#*+-]+\s+|\d+[.)]\s+)+[*_`\[]*|\s*[*_`]+")
"""Markup at the start of a line: of a list item, heading or quote, of bold text, or of code."""

_MEMBER = re.compile(r"(?:[\w$]+\.)*(?P<parent>[\w$]+)\.(?P<name>[a-z_$][\w$-]*)", re.ASCII)
"""A dotted name such as `room.close` or `acme.room.close`, in lower case."""

_NOT_CLASSES = frozenset(
    {"body", "config", "data", "event", "json", "params", "payload", "req", "request"}
    | {"res", "resp", "response", "result"}
)
"""Names before a dot that are variables of a program, not classes or modules of the documents."""

_FILE_OR_HOST_ENDINGS = frozenset(
    {"cn", "com", "css", "html", "java", "js", "json", "md", "net", "org", "py", "xml", "yaml"}
)
"""Last parts of file names and hosts, such as `config.json` and `api.acme.com`."""

_OPERATION_LABEL = re.compile(r"\W*operation(?: ?id)?\W*[:：]\W*")
_DECLARATION = (
    r"(?:(?:abstract|async|class|classmethod|const|def|enum|export|final|fn|func|function|interface|let"
    r"|method|module|namespace|private|property|protected|public|static|staticmethod|struct|trait|type|val"
    r"|var)\s+)*(?:[\w$]+(?:\.|::|#))*"
)
"""Words of programming languages that declare a name, and the packages and classes before a name."""

_CONTINUATION = re.compile(r"[\w-]|\.\w")
"""Characters after an identifier that is only the start of a longer one."""


def find_definitions(
    collection: Collection, identifiers: Sequence[str], question: str, filters: Filters
) -> list[Chunk]:
    """Return chunks that may define `identifiers`, which are in lower case and occur in `question`.

    If an identifier is the path of an indexed API, all chunks of that API are returned for it.

    This function blocks: call it in a worker thread.
    """
    found: dict[str, Chunk] = {}
    for identifier in identifiers[:MAX_IDENTIFIERS]:
        for chunk in _candidates(collection, identifier, question, filters):
            found.setdefault(chunk.id, chunk)
    return list(found.values())


def missing_identifiers(
    collection: Collection, details: ExtractedDetails, filters: Filters
) -> list[str]:
    """Return the error codes, paths, names and products that a question mentions and no document contains.

    The result is in lower case. A code, path or name counts as contained if it is in a chunk that `filters`
    allow.

    Products are the well-known platforms in products.toml. A product counts as contained if each of its
    words occurs in some document.

    In pasted JSON, only the error code and the error message are considered, because all other values are
    the caller's data. For the same reason, files such as `app.py` and `report.csv`, ids in the error
    message such as `ord_1`, and the names of the caller's own program (see `_names_of_program`) are
    ignored.

    This function blocks: call it in a worker thread.
    """
    first_word = (details.error or "").partition(" ")[0].lower()
    asked = with_indexed_versions(details.asked, collection.word_counts)
    codes = filter(None, [*error_codes(first_word), code_in_response(details)])
    names = list(dict.fromkeys([*codes, *specific_identifiers(asked)]))
    values = _values_in_message(details) | _names_of_program(details.text)
    names = [name for name in names if not _LOCAL_FILE.search(name) and name not in values]
    missing = [name for name in names[:MAX_IDENTIFIERS] if not _exists(collection, name, filters)]
    text = details.asked.lower()
    named = (name for name in _products() if name in text and contains_name(text, name))
    products = {name: split_words(name) for name in sorted(named, key=text.index)}
    counts = collection.word_counts([word for words in products.values() for word in words])
    return [*missing, *(name for name, words in products.items() if not counts.keys() >= {*words})]


def _values_in_message(details: ExtractedDetails) -> set[str]:
    """Return the names such as `ord_1` that occur only in the error message of a pasted response."""
    if details.response is None or not details.error:
        return set()
    stated = " ".join([details.prose, *details.paths]).lower()
    codes = set(map(str.lower, error_codes(details.error)))
    names = set(specific_identifiers(details.error)) - codes
    return {name for name in names if name not in stated and _VALUE.search(name)}


def _names_of_program(text: str) -> set[str]:
    """Return the names that occur only in pasted code or output of the caller's program, in lower case.

    These are the function of an HTTP client in a call such as `web.put("/v1/orders")`, and the keys of an
    object, which need not be valid JSON, such as `{status_code:403}`.
    """
    calls = _HTTP_CALL.findall(text)
    keys = [key for body in _OBJECT.findall(text) for key in _KEY.findall(body)]
    others = _HTTP_CALL.sub(" ", _OBJECT.sub(" ", text)).lower()
    return {name.lower() for name in (*calls, *keys) if name.lower() not in others}


@cache
def _products() -> Sequence[str]:
    """Return the names of well-known platforms and services, in lower case."""
    return [name for names in read_word_lists(__file__, "products").values() for name in names]


def similar_identifiers(
    collection: Collection, identifier: str, chunks: Iterable[Chunk], filters: Filters
) -> list[str]:
    """Return the identifiers most similar to `identifier`, best first.

    `identifier` is in lower case; the result is as written in the documents. A path is compared with the
    paths of all APIs. Any other identifier is compared with the identifiers in `chunks` and in tables of
    error codes. This function searches for these tables, because a search for an unknown code does not find
    them. Dotted names in program code are not suggested.

    This function blocks: call it in a worker thread.
    """
    if "/" in identifier:
        text = "\n".join(entry.api_url for entry in collection.catalogue())
        known = set(text.lower().splitlines())
    else:
        tables = search_chunks(collection, ERROR_TABLE_QUERY, filters)
        bodies = [chunk.body for chunk in (*chunks, *tables)]
        text = "\n".join(bodies)
        known = {name for body in bodies for name in _identifiers_in(body)}
    found = process.extract(
        identifier,
        sorted(known),
        scorer=fuzz.ratio,
        limit=MAX_SUGGESTED_IDENTIFIERS,
        score_cutoff=MIN_IDENTIFIER_SIMILARITY,
    )
    return [as_written(name, text) for name, _, _ in found]


@lru_cache(maxsize=256)
def _identifiers_in(body: str) -> tuple[str, ...]:
    """Return the identifiers in a chunk's body; cached, because many questions read the same tables.

    Dotted names in program code are left out, because most of them are variables of an example.
    """
    blocks = parse_blocks(body)
    texts = [block.text for block in blocks if block.kind != "fence"]
    in_code = specific_identifiers("\n".join(b.text for b in blocks if b.kind == "fence"))
    names = [*specific_identifiers("\n".join(texts)), *(n for n in in_code if "." not in n)]
    return tuple(dict.fromkeys(names))


def as_written(identifier: str, text: str) -> str:
    """Return the lower-case `identifier` as it is written in `text`; unchanged if it is not in `text`."""
    match = re.search(re.escape(identifier), text, re.IGNORECASE)
    return match[0] if match else identifier


def ranges_with(collection: Collection, number: str, filters: Filters) -> list[str]:
    """Return the names of rows that are ranges with `number`, such as `4900~4913`.

    The result is empty if `number` has another form than a code (see `is_number`), or if a chunk defines
    exactly this number.

    This function blocks: call it in a worker thread.
    """
    if not is_number(number) or any(
        strength >= DEFINED
        for chunk in search_chunks(collection, number, filters)
        for strength in _strengths_in_body(unescaped_body(chunk), number)
    ):
        return []
    chunks = chunks_with_range(collection, number, filters)
    return list(dict.fromkeys(name for c in chunks for name in ranges_in(c.body, number)))


def definition_strength(chunk: Chunk, identifiers: Iterable[str]) -> int:
    """Return the sum of the strengths with which `chunk` defines the lower-case `identifiers`.

    If it only lists them, the result is `LISTED`, because several mentions are no definition.
    """
    strengths = [_strength(chunk, identifier) for identifier in identifiers]
    return sum(strengths) if DEFINED in strengths else max(strengths, default=0)


def _candidates(
    collection: Collection, identifier: str, question: str, filters: Filters
) -> list[Chunk]:
    if "/" in identifier and (chunks := chunks_by_path(collection, identifier, question)):
        return [chunk for chunk in chunks if filters.allow(chunk)]
    described = chunks_with_pattern(collection, identifier, filters)
    word = joined_word(identifier)
    found = search_chunks(collection, word, filters) if word else []
    members = _with_member(collection, identifier, filters)
    nested = [] if found or members else _with_nested_name(collection, identifier, filters)
    is_defined = any(_strength(chunk, identifier) >= DEFINED for chunk in found)
    ranges = [] if is_defined else chunks_with_range(collection, identifier, filters)
    return [*described, *members, *found, *nested, *ranges]


def _exists(collection: Collection, identifier: str, filters: Filters) -> bool:
    if "/" in identifier and any(map(filters.allow, chunks_by_path(collection, identifier))):
        return True
    word = joined_word(identifier)
    if identifier.startswith("--"):
        # The word is indexed without dashes, so chunks with it may lack the flag. If there are too many
        # chunks to read them all, the flag counts as existing.
        chunks = search_chunks(collection, word, filters)
        return len(chunks) == SEARCH_DEPTH or any(
            has_flag(chunk.body, identifier) for chunk in chunks
        )
    # Of a path with braces, `word` is only the last part, `id` for `/orders/{id}`. A hit proves nothing.
    is_whole = not ("/" in identifier and "{" in identifier)
    if not word or (is_whole and collection.search_hits(word, 1, filters=filters)):
        return True
    is_byte = identifier.isdecimal() and int(identifier) <= MAX_STATUS_BYTE
    if is_byte and collection.search_hits(hexadecimal(identifier), 1, filters=filters):
        return True
    return bool(
        chunks_with_range(collection, identifier, filters)
        or chunks_with_pattern(collection, identifier, filters)
        or contains_name_pattern(collection, identifier, filters)
        or contains_below_base(collection, identifier, filters)
        or _with_member(collection, identifier, filters)
        or _with_nested_name(collection, identifier, filters)
    )


def _with_member(collection: Collection, identifier: str, filters: Filters) -> list[Chunk]:
    """Return the chunks that define the dotted name `identifier` as a member (see `_defines_member`)."""
    if not _MEMBER.fullmatch(identifier):
        return []
    chunks = search_chunks(collection, identifier.replace(".", " "), filters)
    return [chunk for chunk in chunks if _defines_member(chunk, identifier)]


def _defines_member(chunk: Chunk, identifier: str) -> bool:
    """Return whether `chunk` defines the last part of a dotted name below the name of the part before."""
    return any(_strength(chunk, name) >= DEFINED for name in member_names(chunk, [identifier]))


def member_names(chunk: Chunk, identifiers: Iterable[str]) -> set[str]:
    """Return the last parts of the dotted `identifiers` that belong to the section of `chunk`.

    For example, `close` of `room.close` belongs to a section with `class Room` in its title or headings.
    """
    headings = f"{chunk.title} > {chunk.section}".lower().replace("\\", "")
    members = [match for match in map(_MEMBER.fullmatch, identifiers) if match]
    return {
        each["name"]
        for each in members
        if each["parent"] not in _NOT_CLASSES
        and each["name"] not in _FILE_OR_HOST_ENDINGS
        and contains_name(headings, each["parent"])
    }


def is_section_of(chunk: Chunk, identifiers: Iterable[str]) -> bool:
    """Return whether `chunk` is the section of one of the lower-case `identifiers`.

    True if its innermost heading is only the identifier, or its declaration such as `def close(id)`. For a
    dotted name such as `State.OPEN`, also true if the chunk defines `open` and has `State` in its title or
    headings.
    """
    heading = chunk.section.rpartition(" > ")[2].lower().replace("\\", "")
    name = re.sub(r"\s*\(.*\)", "", heading).strip(": ：")
    return any(
        re.fullmatch(_DECLARATION + re.escape(identifier), name)
        or _defines_member(chunk, identifier)
        for identifier in identifiers
    )


def _with_nested_name(collection: Collection, identifier: str, filters: Filters) -> list[Chunk]:
    """Return chunks in which `identifier` is written with brackets: `items[].id` for `items.id`."""
    parent, _, last = identifier.rpartition(".")
    word = joined_word(last) if parent else ""
    chunks = search_chunks(collection, word, filters) if word else []
    return [
        each for each in chunks if contains_name(each.body.lower().replace("[]", ""), identifier)
    ]


def has_flag(text: str, flag: str) -> bool:
    """Return whether `text` contains the lower-case `flag`, such as `--all`, but not `--all-pages`."""
    return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text.lower()) is not None


def _strength(chunk: Chunk, identifier: str) -> int:
    """Return the strength with which `chunk` defines `identifier`; 0 if there is no definition."""
    heading = chunk.section.rpartition(" > ")[2]
    if (
        _names_api(chunk, identifier)
        or _starts_with(heading, identifier, _DECLARATION)
        or _defines_member(chunk, identifier)
        or ranges_in(chunk.body, identifier)
    ):
        return DEFINED
    body = unescaped_body(chunk)
    if "." in identifier:
        body = body.replace("[]", "")
    names = [identifier] if identifier in body.lower() else []
    if "/" in identifier:
        names += matching_patterns(body, identifier)
    return max((each for name in names for each in _strengths_in_body(body, name)), default=0)


def _names_api(chunk: Chunk, identifier: str) -> bool:
    if chunk.api_name and identifier == chunk.document_id.lower():
        return True
    if not chunk.api_url:
        return False
    url = chunk.api_url.lower()
    if "/" in identifier:
        return is_at_path(url, identifier)
    return identifier == chunk.api_name.lower() or url.endswith(f"/{identifier}")


@lru_cache(maxsize=2_000)
def _strengths_in_body(body: str, identifier: str) -> tuple[int, ...]:
    """Return the strengths with which the lines that contain `identifier` define it.

    Cached, because a question is searched in several forms that find the same chunks.
    """
    strengths = []
    header = ""
    if "HTTP/" in body:  # the headers of a sample message define nothing
        body = HTTP_MESSAGE.sub("", body)
    for line in body.splitlines():
        is_row = line.lstrip().startswith("|")
        header = (header or line) if is_row else ""
        if identifier in line.lower():
            strengths.append(
                _row_strength(plain_cells(header), plain_cells(line), identifier)
                if is_row
                else _line_strength(line.lower(), identifier)
            )
    return tuple(strengths)


def _row_strength(header: Sequence[str], cells: Sequence[str], identifier: str) -> int:
    if row_defines(header, cells, identifier):
        return DEFINED
    is_listed = identifier in cell_parts(cell.lower() for cell in cells)
    return LISTED if is_listed and not identifier.lstrip("-").isdigit() else 0


def _line_strength(line: str, identifier: str) -> int:
    if (item := _ITEM.match(line)) and _starts_with(line[item.end() :], identifier):
        return DEFINED
    if re.match(rf"\s*{re.escape(identifier)}\s*[:：]", line):
        return DEFINED
    if (label := _OPERATION_LABEL.match(line)) and _starts_with(line[label.end() :], identifier):
        return DEFINED
    is_code = len(identifier) > STATUS_DIGITS and identifier.isdecimal()
    return LISTED if f"`{identifier}`" in line or is_code else 0


def _starts_with(text: str, identifier: str, before: str = "") -> bool:
    """Return whether `text` begins with the identifier, perhaps after a match of the pattern `before`."""
    text = text.lower().replace("\\", "")
    match = re.match(before + re.escape(identifier), text)
    return match is not None and not _CONTINUATION.match(text, match.end())
