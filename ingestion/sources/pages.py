"""Pages: Markdown with values becomes a SourceDocument with one section per heading.

Shared by the readers of Markdown folders and of other files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ingestion.sources.folder import PageValues, page_url, path_values
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks
from schemas.document import Section, SourceDocument
from schemas.platform import PageSourceConfig

MAX_TITLE_CHARS = 500


@dataclass(frozen=True)
class PagePart:
    """A part of a page: Markdown, and values that apply to this part only."""

    markdown: str
    heading: tuple[str, ...] = ()
    """Headings above the part's own, outermost first."""
    values: Mapping[str, object] = field(default_factory=dict)


class PageContent(NamedTuple):
    """The content of a file: values such as its title, and its parts."""

    values: PageValues
    parts: list[PagePart]


def page_document(
    source: PageSourceConfig, path: Path, values: PageValues, parts: Iterable[PagePart]
) -> SourceDocument | None:
    """Return the page at `path` as a document; None when it is skipped or has no body.

    `values` are the page's own, from front matter or document properties; values from its file name
    and path are added. Raises ConfigurationError for a malformed `page_url`.
    """
    merged = _merge_values(source, path, values)
    if merged is None or any(_is_true(merged.get(key)) for key in source.skip):
        return None
    parsed = [(part, parse_blocks(part.markdown)) for part in parts]
    if not any(block.kind != "heading" for _, blocks in parsed for block in blocks):
        return None
    title = _text(merged.get(source.title)) or _first_heading(parsed) or path.stem
    title = title[:MAX_TITLE_CHARS]
    document_url = page_url(source.page_url, merged)
    sections = tuple(
        _apply_part_values(source, merged, part, section, document_url)
        for part, blocks in parsed
        for section in _sections(blocks, title, part.heading)
    )
    return SourceDocument(
        id=path.relative_to(source.path).with_suffix("").as_posix(),
        source=source.name,
        title=title,
        language=detect_language(title + "".join(section.body for section in sections)),
        page_url=document_url,
        metadata=_metadata(source, merged),
        sections=sections,
    )


def _merge_values(
    source: PageSourceConfig, path: Path, values: PageValues
) -> dict[str, object] | None:
    """Add the values of the file name and path; None when the file name does not match."""
    groups: dict[str, object] = {}
    if source.file_name is not None:
        match = source.file_name.search(path.stem)
        if match is None:
            return None
        groups = match.groupdict()
    return {**groups, **values, **path_values(path, source.path)}


def _is_true(value: object) -> bool:
    return value is True or _text(value).lower() in ("true", "yes", "1")


def _metadata(source: PageSourceConfig, values: PageValues) -> dict[str, str]:
    texts = {name: _text(values.get(key)) for name, key in source.metadata.items()}
    return {name: text for name, text in texts.items() if text}


def _text(value: object) -> str:
    """A front matter value as text: the scalar items of a list, nothing for a mapping."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple | set):
        scalars = (v for v in value if not isinstance(v, list | tuple | set | Mapping))
        return ", ".join(map(str, scalars))
    return str(value).strip()


def _apply_part_values(
    source: PageSourceConfig,
    values: PageValues,
    part: PagePart,
    section: Section,
    document_url: str,
) -> Section:
    """Give `section` the metadata and the URL that differ from the document's."""
    if not part.values:
        return section
    merged = {**values, **part.values}
    inherited = _metadata(source, values)
    own = {k: v for k, v in _metadata(source, merged).items() if inherited.get(k) != v}
    url = page_url(source.page_url, merged)
    return section.model_copy(
        update={"metadata": own, "page_url": url if url != document_url else ""}
    )


def _first_heading(parsed: Iterable[tuple[PagePart, list[MarkdownBlock]]]) -> str:
    blocks = (block for _, part_blocks in parsed for block in part_blocks)
    return next((block.title for block in blocks if block.kind == "heading"), "")


def _sections(
    blocks: list[MarkdownBlock], title: str, parents: tuple[str, ...]
) -> Iterator[Section]:
    """Yield the blocks between two headings as a section, with its path of headings."""
    headings: list[tuple[int, str]] = []
    body: list[str] = []
    for block in blocks:
        if block.kind != "heading":
            body.append(block.text)
            continue
        yield from _section(parents, headings, body, title)
        headings = [h for h in headings if h[0] < block.level] + [(block.level, block.title)]
        body = []
    yield from _section(parents, headings, body, title)


def _section(
    parents: tuple[str, ...], headings: list[tuple[int, str]], body: list[str], title: str
) -> Iterator[Section]:
    if body:
        path = (*parents, *(text for _, text in headings))
        yield Section(
            kind="prose",
            heading=tuple(text for text in path if text not in ("", title)),
            body="\n\n".join(body),
        )
