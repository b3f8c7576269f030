"""A page of Markdown, wherever it came from, as a SourceDocument.
Folders of Markdown pages (.md, .mdx), with or without front matter.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ingestion.sources.folder import (
    FileResult,
    KnownFiles,
    PathValues,
    page_url,
    path_values,
    read_files,
    read_text,
)
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks
from schemas.document import Section, SourceDocument
from schemas.errors import SourceError
from schemas.source import MarkdownSourceConfig, PageSourceConfig, SourceLimits

LONGEST_TITLE = 500


@dataclass(frozen=True)
class PagePart:
    """A part of a page: Markdown, and the values that are true of this part alone."""

    markdown: str
    heading: tuple[str, ...] = ()
    """Headings that stand over the part's own."""
    values: Mapping[str, object] = field(default_factory=dict)


def page_document(
    source: PageSourceConfig, path: Path, said: PathValues, parts: Iterable[PagePart]
) -> SourceDocument | None:
    """The page at `path`, which says `said` of itself; None when it is to be left out or has no body.

    Raises ConfigurationError for a `page_url` that is no template.
    """
    values = _values(source, path, said)
    if values is None or any(_is_true(values.get(key)) for key in source.skip):
        return None
    blocks = [(part, parse_blocks(part.markdown)) for part in parts]
    if not any(block.kind != "heading" for _, part in blocks for block in part):
        return None
    title = _text(values.get(source.title)) or _first_heading(blocks) or path.stem
    title = title[:LONGEST_TITLE]
    own_url = page_url(source.page_url, values)
    sections = tuple(
        _with_part(source, values, part, section, own_url)
        for part, inside in blocks
        for section in _sections(inside, title, part.heading)
    )
    return SourceDocument(
        id=path.relative_to(source.path).with_suffix("").as_posix(),
        source=source.name,
        title=title,
        language=detect_language(title + "".join(section.body for section in sections)),
        page_url=own_url,
        metadata=_metadata(source, values),
        sections=sections,
    )


def _values(source: PageSourceConfig, path: Path, said: PathValues) -> dict[str, object] | None:
    named: dict[str, object] = {}
    if source.file_name is not None:
        match = source.file_name.search(path.stem)
        if match is None:
            return None
        named = match.groupdict()
    return {**named, **said, **path_values(path, source.path)}


def _is_true(value: object) -> bool:
    return value is True or _text(value).lower() in ("true", "yes", "1")


def _metadata(source: PageSourceConfig, values: PathValues) -> dict[str, str]:
    found = {name: _text(values.get(key)) for name, key in source.metadata.items()}
    return {name: text for name, text in found.items() if text}


def _text(value: object) -> str:
    """A value of front matter as text; of a list its plain items, of a table nothing."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple | set):
        plain = (v for v in value if not isinstance(v, list | tuple | set | Mapping))
        return ", ".join(map(str, plain))
    return str(value).strip()


def _with_part(
    source: PageSourceConfig, values: PathValues, part: PagePart, section: Section, own_url: str
) -> Section:
    """`section` with the metadata and the link that its part's values make."""
    if not part.values:
        return section
    merged = {**values, **part.values}
    of_page = _metadata(source, values)
    own = {k: v for k, v in _metadata(source, merged).items() if of_page.get(k) != v}
    url = page_url(source.page_url, merged)
    return section.model_copy(update={"metadata": own, "page_url": url if url != own_url else ""})


def _first_heading(parts: Iterable[tuple[PagePart, list[MarkdownBlock]]]) -> str:
    blocks = (block for _, inside in parts for block in inside)
    return next((block.title for block in blocks if block.kind == "heading"), "")


def _sections(blocks: list[MarkdownBlock], title: str, above: tuple[str, ...]) -> Iterator[Section]:
    """The blocks between two headings, under the headings that lead there."""
    heading: list[tuple[int, str]] = []
    body: list[str] = []
    for block in blocks:
        if block.kind != "heading":
            body.append(block.text)
            continue
        yield from _section(above, heading, body, title)
        heading = [h for h in heading if h[0] < block.level] + [(block.level, block.title)]
        body = []
    yield from _section(above, heading, body, title)


def _section(
    above: tuple[str, ...], heading: list[tuple[int, str]], body: list[str], title: str
) -> Iterator[Section]:
    if body:
        path = (*above, *(text for _, text in heading))
        yield Section(
            kind="prose",
            heading=tuple(text for text in path if text not in ("", title)),
            body="\n\n".join(body),
        )


SUFFIXES = {".md", ".mdx"}


class _TomlHandler(BaseHandler):
    """TOML between lines of `+++`, as Hugo has it; the library's own wants a package more."""

    FM_BOUNDARY = re.compile(r"^\+{3,}\s*$", re.MULTILINE)

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        return tomllib.loads(fm)


_HANDLERS = [*frontmatter.handlers, _TomlHandler()]


def read_markdown(
    source: MarkdownSourceConfig, limits: SourceLimits, known: KnownFiles
) -> Iterator[FileResult]:
    """One document a page, one section a heading; pages without a body are left out."""
    return read_files(source, SUFFIXES, limits, known, partial(_document, source))


def _document(source: MarkdownSourceConfig, path: Path) -> SourceDocument | None:
    values, body = _front_matter(path)
    return page_document(source, path, values, [PagePart(body)])


def _front_matter(path: Path) -> tuple[PathValues, str]:
    """What the page says of itself, and the rest; a page that opens with a line drawn is all rest."""
    text = read_text(path).strip()
    handler = frontmatter.detect_format(text, _HANDLERS)
    if handler is None:
        return {}, text
    try:
        head, body = handler.split(text)
    except ValueError:  # opened and never closed
        return {}, text
    try:
        values = handler.load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"front matter: {problem}") from None
    return (values or {}, body.strip()) if isinstance(values or {}, dict) else ({}, text)
