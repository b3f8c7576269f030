"""Folders of Markdown pages (.md, .mdx), with or without front matter."""

import re
import tomllib
from pathlib import Path
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ingestion.sources.folder import FolderReader, PageValues, read_text
from ingestion.sources.links import LinkResolver
from ingestion.sources.mdx_fields import tables_of_fields
from ingestion.sources.pages import PageContent, PagePart, page_documents
from ingestion.text.clean_markdown import to_plain_markdown
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, SourceLimits

SUFFIXES = {".md", ".mdx"}


class _TomlHandler(BaseHandler):
    """TOML between lines of `+++`, as in Hugo; the library's own handler needs another package."""

    FM_BOUNDARY = re.compile(r"^\+{3,}\s*$", re.MULTILINE)

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        return tomllib.loads(fm)


_HANDLERS = [*frontmatter.handlers, _TomlHandler()]


def _convert_table(html: str) -> str:
    # Imported here: most sources have no HTML tables, and the parser takes half a second to load.
    from ingestion.sources.formats.html_markdown import table_to_markdown

    return table_to_markdown(html)


def read_content(source: MarkdownSourceConfig, _limits: SourceLimits, path: Path) -> PageContent:
    """Return the front matter and the plain Markdown of a page. Raises SourceError."""
    values, body = _split_front_matter(path)
    body = LinkResolver(source, _front_matter).resolve(body, path)
    plain = to_plain_markdown(tables_of_fields(body), _convert_table)
    return PageContent(_normalized(values), [PagePart(plain)])


def _documents(
    source: MarkdownSourceConfig, limits: SourceLimits, path: Path
) -> list[SourceDocument] | None:
    values, parts = read_content(source, limits, path)
    return page_documents(source, path, values, parts)


def _front_matter(path: Path) -> PageValues:
    return _normalized(_split_front_matter(path)[0])


def _normalized(values: PageValues) -> PageValues:
    """Return front matter whose `slug` fits into a URL template, without Docusaurus's leading slash."""
    slug = values.get("slug")
    return {**values, "slug": slug.strip("/")} if isinstance(slug, str) else values


def _split_front_matter(path: Path) -> tuple[PageValues, str]:
    """Return the front matter and the body; a page that begins with a thematic break is all body."""
    text = read_text(path).strip()
    handler = frontmatter.detect_format(text, _HANDLERS)
    if handler is None:
        return {}, text
    try:
        head, body = handler.split(text)
    except ValueError:  # the front matter is never closed
        return {}, text
    try:
        values = handler.load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"front matter: {problem}") from None
    return (values or {}, body.strip()) if isinstance(values or {}, dict) else ({}, text)


READER = FolderReader[MarkdownSourceConfig](lambda _: SUFFIXES, _documents)
