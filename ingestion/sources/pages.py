"""Converts pages to documents. A page is text, usually Markdown, with values such as its title.

Prose becomes one section per heading; API operations become documents of their own. The readers in
`markdown`, `files`, `website` and `loader` share this module. The values of a file come from its name, its
path, and its front matter or document properties. Front matter may follow the conventions of Docusaurus,
VitePress, Mintlify, MkDocs or Hugo.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple, TypeVar

from ingestion.sources.api_docs import api_sections
from ingestion.sources.api_pages.calls import DECLARED_CALL, split_origin
from ingestion.sources.api_pages.columns import text_of
from ingestion.sources.api_pages.operation import PageOperation
from ingestion.sources.api_pages.page import ApiPage, read_operations
from ingestion.sources.api_pages.sections import is_generic_heading
from ingestion.sources.folder import FolderReader, PageValues, page_url, path_values, title_of_name
from ingestion.sources.page_version import document_version, is_deprecated
from ingestion.text.clean_markdown import clean_text
from ingestion.text.implied_structure import (
    is_first_chapter_title,
    with_definition_lists,
    with_fenced_code,
    with_list_labels,
    with_numbered_headings,
    with_question_headings,
)
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import MarkdownBlock, add_anchors, parse_blocks, split_code
from ingestion.text.words import split_words
from schemas.choices import Language
from schemas.document import Section, SourceDocument
from schemas.platform import PageFolderConfig, PageFormat, PageSourceConfig, SourceLimits

_SOURCE_URL = re.compile(r"(?:source: *)?https?://\S+", re.IGNORECASE)
"""A heading that is only the URL from which the page was copied."""
_UNINFORMATIVE_NAME = re.compile(r"_?index|readme|overview|[\W\d_]*", re.IGNORECASE)
"""Names of files that do not say what the page is about."""
MAX_TITLE_CHARS = 500
MAX_SHORT_NAME_CHARS = 3
"""Maximum length of a short name that is not ASCII, in characters; see `_is_short_name`."""
MAX_TOPIC_OPERATIONS = 10
"""If a page has more operations, its title does not become part of their names; see `_full_name`."""

TITLE_NAMES = ("sidebarTitle", "sidebar_label", "linkTitle", "nav_title")
"""Front matter keys from which the title is taken if a page has no key `title`, in this order."""


@dataclass(frozen=True)
class PagePart:
    """A part of a page: Markdown, and values that apply to this part only."""

    markdown: str
    heading: tuple[str, ...] = ()
    """Headings above those in `markdown`, outermost first."""
    values: Mapping[str, object] = field(default_factory=dict)


class PageContent(NamedTuple):
    """The content of a page, as read from a file or a download."""

    values: PageValues
    """Values such as the page's title, from front matter or document properties."""
    parts: list[PagePart]
    format: PageFormat = "text"


@dataclass(frozen=True)
class SourcePage:
    """A page of any source, before it is parsed."""

    id: str
    """The id of the page's document, unique within its source."""
    content: PageContent


@dataclass(frozen=True)
class ParsedPage:
    """A page with its values, before it becomes documents."""

    document_id: str
    title: str
    url: str
    values: PageValues
    parts: Sequence[tuple[PagePart, list[MarkdownBlock]]]
    """The parts of the page, each with its blocks."""
    api: ApiPage
    """The page's API operations. If there are none, all blocks are prose."""
    url_at: Callable[[str], str]
    """Returns the URL of the section that has the given anchor."""


PagesT = TypeVar("PagesT", bound=PageFolderConfig)
ReadContent = Callable[[PagesT, SourceLimits, Path], PageContent]
"""Returns the content of a file. Raises SourceError for a file that is refused."""


class PageFolderReader(FolderReader[PagesT]):
    """A FolderReader for files that are one page each.

    A file usually becomes one document. If the file describes API operations, each operation becomes a
    document of its own.

    `suffixes` returns the suffixes that a source accepts, and `read_content` returns the content of a file.
    """

    def __init__(
        self, suffixes: Callable[[PagesT], Set[str]], read_content: ReadContent[PagesT]
    ) -> None:
        # Partial functions, unlike lambdas, can be sent to other processes.
        super().__init__(suffixes, partial(_file_documents, read_content))
        self.read_content = read_content


def _file_documents(
    read_content: ReadContent[PagesT], source: PagesT, limits: SourceLimits, path: Path
) -> list[SourceDocument] | None:
    page = _page_of_file(source, path, read_content(source, limits, path))
    return None if page is None else documents_of_page(source, page)


def parse_page(source: PageFolderConfig, path: Path, content: PageContent) -> ParsedPage | None:
    """Parse the page at `path`; None if the source skips the page or the page has no content.

    The values from the file's name and path are added to those of `content`. Raises ConfigurationError for
    a malformed `page_url`.
    """
    page = _page_of_file(source, path, content)
    if page is None or _skip_key(source, page.content.values):
        return None
    return _parse(source, page)


def reason_to_skip(source: PageFolderConfig, path: Path, content: PageContent) -> str:
    """Return why `source` skips the page at `path`; empty if it does not."""
    page = _page_of_file(source, path, content)
    if page is None:
        return "its name does not match `file_name`"
    key = _skip_key(source, page.content.values)
    return f"`{key}` is true" if key else ""


def _page_of_file(source: PageFolderConfig, path: Path, content: PageContent) -> SourcePage | None:
    """Return the page at `path`; None if its file name does not match `source.file_name`."""
    merged = _merge_values(source, path, content.values)
    if merged is None:
        return None
    document_id = path.relative_to(source.path).with_suffix("").as_posix()
    return SourcePage(document_id, content._replace(values=merged))


def _parse(source: PageSourceConfig, page: SourcePage) -> ParsedPage | None:
    """Parse `page`; None if it has no body and its front matter names no API operation."""
    values, parts, page_format = page.content
    blocks_by_part = [
        (part, with_list_labels(list(add_anchors(parse_blocks(part.markdown), source.anchors))))
        for part in parts
    ]
    declared = declared_operation(values) if source.api_pages else ""
    has_body = any(block.kind != "heading" for _, blocks in blocks_by_part for block in blocks)
    if not has_body and not declared:
        return None
    name = page.id.rpartition("/")[2]
    heading = _first_heading(blocks_by_part, name)
    title = (_page_title(source, values) or heading or title_of_name(name))[:MAX_TITLE_CHARS]
    if len(blocks_by_part) == 1:
        [(part, blocks)] = blocks_by_part
        blocks_by_part = [(part, with_numbered_headings(blocks))]
    if page_format == "markdown":
        lead = lead_blocks(values, title)
        blocks_by_part = [(part, with_lead(blocks, lead)) for part, blocks in blocks_by_part]
    api = ApiPage((), ())
    if source.api_pages and len(blocks_by_part) == 1 and page_format != "text":
        api = read_operations(blocks_by_part[0][1], title, declared)
    return ParsedPage(
        document_id=page.id,
        title=title,
        url=page_url(source.page_url, values),
        values=values,
        parts=blocks_by_part,
        api=api,
        url_at=lambda anchor: page_url(source.page_url, {**values, "anchor": anchor}),
    )


def documents_of_page(source: PageSourceConfig, page: SourcePage) -> list[SourceDocument] | None:
    """Return the documents of `page`.

    If the page describes API operations, there is a document for each of them, and one for the prose that
    belongs to none of them. Otherwise, one document contains the whole page. The result is empty if the
    page has no content, and None if the source skips the page. Raises ConfigurationError for a malformed
    `page_url`.
    """
    if _skip_key(source, page.content.values):
        return None
    parsed = _parse(source, page)
    if parsed is None:
        return []
    if parsed.api.operations:
        return list(_operation_documents(source, parsed))
    is_markup = page.content.format != "text"
    sections = tuple(
        _apply_part_values(source, parsed.values, part, section, parsed.url)
        for part, blocks in parsed.parts
        for section in _sections(blocks, parsed.title, part.heading, is_markup, parsed.url_at)
    )
    return [_document(source, parsed, sections)]


def _document(
    source: PageSourceConfig, page: ParsedPage, sections: tuple[Section, ...]
) -> SourceDocument:
    return SourceDocument(
        id=page.document_id,
        source=source.name,
        title=page.title,
        language=_language_of(page.title, (section.body for section in sections)),
        page_url=page.url,
        metadata=_document_metadata(source, page),
        sections=sections,
    )


def _operation_documents(source: PageSourceConfig, page: ParsedPage) -> Iterator[SourceDocument]:
    """Yield a document per operation, then one with the prose that belongs to no operation, if any."""
    operations = page.api.operations
    seen: set[str] = set()
    for operation in operations:
        document_id = page.document_id
        if len(operations) > 1 or page.api.prose:
            document_id = f"{page.document_id}#{_slug(operation.name)}"
            if document_id in seen:
                document_id = f"{document_id}-{operation.method.lower()}-{len(seen)}"
        seen.add(document_id)
        yield _operation_document(source, page, operation, document_id)
    prose = tuple(_sections(page.api.prose, page.title, (), True, page.url_at))
    if prose:
        yield _document(source, page, prose)


def _operation_document(
    source: PageSourceConfig, page: ParsedPage, operation: PageOperation, document_id: str
) -> SourceDocument:
    """Return the document of an operation: its API sections, then the rest of its text as prose."""
    prose = tuple(_sections(operation.further_prose, operation.name, (), True, page.url_at))
    url = _operation_url(page, operation)
    operation = replace(operation, name=_full_name(page, operation))
    language = _language_of(operation.name, (block.text for block in operation.prose))
    api = operation.document(
        api_id=document_id,
        service_id=text_of_value(page.values.get("folder")) or source.name,
        language=language,
    )
    return SourceDocument(
        id=document_id,
        source=source.name,
        title=operation.name,
        language=language,
        page_url=url,
        service_id=api.service_id,
        api_id=document_id,
        api_name=operation.name,
        api_url=api.url,
        metadata=_document_metadata(source, page, operation),
        sections=(*api_sections(api), *prose),
    )


def _full_name(page: ParsedPage, operation: PageOperation) -> str:
    """Return the name of an operation, preceded by the page's title if the name alone may be unclear.

    "List" on the page "Members" becomes "Members - List". The title is added if all of these are true:

    - The page has 2 to `MAX_TOPIC_OPERATIONS` operations.
    - At least half of their names are as short as "List" or "删除".
    - The title is neither generic, as "Overview" is, nor already part of the name.
    """
    names = [each.name for each in page.api.operations]
    is_topic = 1 < len(names) <= MAX_TOPIC_OPERATIONS and not is_generic_heading(page.title)
    are_mostly_short = 2 * sum(map(_is_short_name, names)) >= len(names)
    if is_topic and are_mostly_short and page.title not in operation.name:
        return f"{page.title} - {operation.name}"
    return operation.name


def _is_short_name(name: str) -> bool:
    """Return whether a name is one English word, or not ASCII and at most `MAX_SHORT_NAME_CHARS` long."""
    return len(split_words(name)) == 1 if name.isascii() else len(name) <= MAX_SHORT_NAME_CHARS


def _operation_url(page: ParsedPage, operation: PageOperation) -> str:
    """Return the URL of the page or, if the operation is only a part of it, of the operation's heading."""
    if len(page.api.operations) == 1 and not page.api.prose:
        return page.url
    blocks = (block for _, blocks in page.parts for block in blocks)
    titled = (block.anchor for block in blocks if block.title == operation.name)
    return page.url_at(operation.anchor or next(titled, ""))


def _page_title(source: PageSourceConfig, values: PageValues) -> str:
    names = (source.title, *TITLE_NAMES) if source.title == "title" else (source.title,)
    return next(filter(None, (text_of_value(values.get(name)) for name in names)), "")


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60] or "operation"


def _merge_values(
    source: PageFolderConfig, path: Path, values: PageValues
) -> dict[str, object] | None:
    """Return `values` with those from the file's name and path; None if `file_name` does not match."""
    groups: dict[str, object] = {}
    if source.file_name is not None:
        match = source.file_name.search(path.stem)
        if match is None:
            return None
        groups = match.groupdict()
    return {**groups, **values, **path_values(path, source.path)}


def _skip_key(source: PageSourceConfig, values: PageValues) -> str:
    """Return the key in `values` because of which `source` skips the page; empty if it does not."""
    return next((key for key in source.skip if _is_true(values.get(key))), "")


def _is_true(value: object) -> bool:
    return value is True or text_of_value(value).lower() in ("true", "yes", "1")


def _metadata(source: PageSourceConfig, values: PageValues) -> dict[str, str]:
    texts = {name: text_of_value(values.get(key)) for name, key in source.metadata.items()}
    return {name: text for name, text in texts.items() if text}


def _document_metadata(
    source: PageSourceConfig, page: ParsedPage, operation: PageOperation | None = None
) -> dict[str, str]:
    """Return the configured metadata of a page, and the keys `version` and `deprecated` if they apply.

    If `operation` is given, both keys also depend on the operation's URL and text.
    """
    metadata = _metadata(source, page.values)
    path = source.path if isinstance(source, PageFolderConfig) else None
    url = split_origin(operation.url)[1] if operation else ""
    version = metadata.get("version") or document_version(
        page.document_id, page.url, path, source.name, url
    )
    deprecated = (
        _is_true(page.values.get("deprecated"))
        or is_deprecated(page.parts[0][1], title_level=1)
        or (operation is not None and is_deprecated(operation.prose))
    )
    version_metadata = {"version": version} if version else {}
    return metadata | version_metadata | ({"deprecated": "true"} if deprecated else {})


def _apply_part_values(
    source: PageSourceConfig,
    values: PageValues,
    part: PagePart,
    section: Section,
    document_url: str,
) -> Section:
    """Return `section` with the metadata and the URL that result from the values of `part`.

    Metadata and a URL that are equal to those of the document are left out.
    """
    if not part.values:
        return section
    merged = {**values, **part.values}
    inherited = _metadata(source, values)
    differing = {k: v for k, v in _metadata(source, merged).items() if inherited.get(k) != v}
    url = page_url(source.page_url, merged)
    return section.model_copy(
        update={"metadata": differing, "page_url": url if url != document_url else ""}
    )


def _first_heading(
    blocks_by_part: Iterable[tuple[PagePart, list[MarkdownBlock]]], name: str
) -> str:
    """Return the first heading of a page. A heading that is only the URL of the original page is skipped.

    The result is empty if there is no heading. It is also empty if the file name `name` is informative and
    one of these is true:

    - The heading is below level 1 and generic, such as "Request".
    - The heading names a first chapter, such as "1 概述", and a later heading has level 1.
    """
    blocks = (block for _, blocks in blocks_by_part for block in blocks)
    headings = [block for block in blocks if block.kind == "heading"]
    titled = list(dropwhile(lambda block: _SOURCE_URL.fullmatch(block.title), headings))
    if not titled:
        return ""
    first, *later = titled
    is_generic = first.level > 1 and is_generic_heading(first.title)
    is_chapter = is_first_chapter_title(first.title) and any(block.level == 1 for block in later)
    has_informative_name = not _UNINFORMATIVE_NAME.fullmatch(name)
    return "" if has_informative_name and (is_generic or is_chapter) else first.title


def _sections(
    blocks: Sequence[MarkdownBlock],
    title: str,
    parents: tuple[str, ...],
    is_markup: bool,
    url_at: Callable[[str], str],
) -> Iterator[Section]:
    """Yield a section for the blocks below each heading or question, with the headings that lead to it.

    `parents` are the headings above those of `blocks`. A section's headings include neither `title` nor
    empty headings. If `is_markup` is true, questions and definition lists are recognised, and text other
    than code is cleaned with `clean_text`. `url_at` returns the URL of the section that has the given
    anchor.
    """
    headings: list[tuple[int, str]] = []
    body: list[str] = []
    url = ""
    if is_markup:
        blocks = with_definition_lists(with_question_headings(blocks))
        blocks = list(with_fenced_code(blocks))
    for block in blocks:
        if block.kind != "heading":
            needs_cleaning = is_markup and block.kind != "fence"
            body.append(clean_text(block.text) if needs_cleaning else block.text)
            continue
        yield from _section(parents, headings, body, title, url)
        headings = [h for h in headings if h[0] < block.level] + [(block.level, block.title)]
        body = []
        url = url_at(block.anchor)
    yield from _section(parents, headings, body, title, url)


def _section(
    parents: tuple[str, ...], headings: list[tuple[int, str]], body: list[str], title: str, url: str
) -> Iterator[Section]:
    if any(text.strip() for text in body):
        path = (*parents, *(text for _, text in headings))
        heading = tuple(text for text in path if text not in ("", title))
        yield Section(
            kind="prose",
            heading=heading,
            body="\n\n".join(body),
            blocks=tuple(body),
            page_url=url if heading else "",
        )


def text_of_value(value: object) -> str:
    """Return a front matter value as text: for a list, its scalar items; for a mapping, an empty string."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple | set):
        scalars = (v for v in value if not isinstance(v, list | tuple | set | Mapping))
        return ", ".join(map(str, scalars))
    return str(value).strip()


def declared_operation(values: Mapping[str, object]) -> str:
    """Return the operation that Mintlify's front matter names; empty if there is none.

    For `openapi: POST /v1/x`, the result is `POST /v1/x`.
    """
    named = (text_of_value(values.get(name)) for name in ("openapi", "api"))
    return next(filter(DECLARED_CALL.search, named), "")


def _language_of(title: str, texts: Iterable[str]) -> Language:
    """Return the language of a title and texts. Code in the texts does not count."""
    parts = (part for text in texts for is_code, part in split_code(text) if not is_code)
    return detect_language("\n".join([title, *parts]))


def lead_blocks(values: Mapping[str, object], title: str) -> list[MarkdownBlock]:
    """Return paragraphs with the page's description and its keywords.

    Users search for the synonyms in `keywords`, so keywords are indexed as text. Tags are categories and
    are not indexed: they would make the top of a page match better than the section with the answer.
    """
    description = " ".join(text_of_value(values.get("description")).split())
    keywords = text_of_value(values.get("keywords"))
    label = "关键词：" if detect_language(title + description) == "zh" else "Keywords: "
    texts = (description, f"{label}{keywords}" if keywords else "")
    return [MarkdownBlock("paragraph", clean_text(text)) for text in texts if text]


def with_lead(
    blocks: Sequence[MarkdownBlock], lead: Sequence[MarkdownBlock]
) -> list[MarkdownBlock]:
    """Return a page's blocks with the paragraphs of `lead` inserted below the page's title.

    Paragraphs that the page already contains, possibly with other markup, are not inserted.
    """
    paragraphs = [block.text for block in blocks if block.kind == "paragraph"] if lead else []
    existing = set(map(text_of, paragraphs))
    added = [block for block in lead if text_of(block.text) not in existing]
    start = 1 if blocks and blocks[0].kind == "heading" and blocks[0].level == 1 else 0
    return [*blocks[:start], *added, *blocks[start:]]
