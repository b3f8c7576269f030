"""Folders of Markdown pages (.md, .mdx), with or without front matter."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import frontmatter
import yaml

from ingestion.language import detect_language
from ingestion.markdown_blocks import Block, parse_blocks
from ingestion.sources.folder import list_files, page_url, read_text
from schemas.document import Section, SourceDocument
from schemas.errors import SourceError
from schemas.platform import MarkdownSource

SUFFIXES = {".md", ".mdx"}

LONGEST_TITLE = 500


def read_markdown(source: MarkdownSource) -> Iterator[SourceDocument]:
    """One document a page, one section a heading; pages without a body are left out."""
    for path in list_files(source.path, SUFFIXES):
        metadata, body = _front_matter(path)
        blocks = parse_blocks(body)
        if any(block.kind != "heading" for block in blocks):
            yield _document(source, path, metadata, blocks)


def _front_matter(path: Path) -> tuple[Mapping[str, object], str]:
    try:
        return frontmatter.parse(read_text(path))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that there is not, JSON
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"{path}: front matter: {problem}") from None


def _document(
    source: MarkdownSource, path: Path, front: Mapping[str, object], blocks: list[Block]
) -> SourceDocument:
    relative = path.relative_to(source.path).with_suffix("")
    title = str(front.get(source.title) or _first_heading(blocks) or path.stem)[:LONGEST_TITLE]
    metadata = {
        name: str(front[key]) for name, key in source.metadata.items() if front.get(key) is not None
    }
    return SourceDocument(
        id=relative.as_posix(),
        source=source.name,
        title=title,
        language=detect_language(title + "".join(block.text for block in blocks)),
        page_url=page_url(
            source.page_url, {**front, "path": relative.as_posix(), "stem": path.stem}
        ),
        metadata=metadata,
        sections=tuple(_sections(blocks, title)),
    )


def _first_heading(blocks: list[Block]) -> str:
    return next((block.title for block in blocks if block.kind == "heading"), "")


def _sections(blocks: list[Block], title: str) -> Iterator[Section]:
    """The blocks between two headings, under the headings that lead there."""
    heading: list[tuple[int, str]] = []
    body: list[str] = []
    for block in blocks:
        if block.kind != "heading":
            body.append(block.text)
            continue
        yield from _section(heading, body, title)
        heading = [h for h in heading if h[0] < block.level] + [(block.level, block.title)]
        body = []
    yield from _section(heading, body, title)


def _section(heading: list[tuple[int, str]], body: list[str], title: str) -> Iterator[Section]:
    if body:
        path = tuple(text for _, text in heading if text not in ("", title))
        yield Section(kind="prose", heading=path, body="\n\n".join(body))
