"""Folders of Markdown pages (.md, .mdx), with or without front matter."""

import re
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ingestion.sources.folder import FileResult, KnownFiles, PathValues, read_files, read_text
from ingestion.sources.limits import SourceLimits
from ingestion.sources.page import PagePart, page_document
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import MarkdownSourceConfig

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
