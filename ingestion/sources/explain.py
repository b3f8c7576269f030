"""Explains whether one page is read as API operations or as prose, and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingestion.sources import files, markdown
from ingestion.sources.api_operation import PageOperation
from ingestion.sources.pages import MARKUP_SUFFIXES, ParsedPage, parse_page
from schemas.errors import SourceError
from schemas.platform import FilesSourceConfig, MarkdownSourceConfig, SourceConfig, SourceLimits


def explain_page(sources: Sequence[SourceConfig], limits: SourceLimits, path: Path) -> list[str]:
    """Return lines that tell how the page at `path` is read and on what evidence.

    Raises SourceError if no source of kind `markdown` or `files` contains the page, or if the page is
    refused.
    """
    page_path = path.resolve()
    for source in sources:
        if not isinstance(source, MarkdownSourceConfig | FilesSourceConfig):
            continue
        if page_path.is_relative_to(root := source.path.resolve()):
            own_path = source.path / page_path.relative_to(root)
            return list(_explanation(own_path, source, limits))
    raise SourceError(f"{path}: no source of kind markdown or files contains this file")


def _explanation(
    path: Path, source: MarkdownSourceConfig | FilesSourceConfig, limits: SourceLimits
) -> Iterator[str]:
    content = (
        markdown.read_content(source, limits, path)
        if isinstance(source, MarkdownSourceConfig)
        else files.read_content(source, limits, path)
    )
    page = parse_page(source, path, content.values, content.parts)
    name = f"{path.relative_to(source.path).as_posix()} in {source.name}"
    if page is None:
        yield f"{name}: not indexed, because it has no body or is skipped"
    elif page.api.operations:
        yield f"{name}: {len(page.api.operations)} API operations"
        for operation in page.api.operations:
            yield from _operation(operation)
    else:
        yield f"{name}: prose"
        yield from _missing(source, path, page)


def _operation(operation: PageOperation) -> Iterator[str]:
    yield f"{operation.method} {operation.url}  {operation.name}"
    yield from (f"  {line}" for line in operation.evidence)


def _missing(
    source: MarkdownSourceConfig | FilesSourceConfig, path: Path, page: ParsedPage
) -> Iterator[str]:
    """Yield what the page lacks to be read as an API page."""
    if not source.api_pages:
        yield "  api_pages = false for this source"
    elif path.suffix.lower() not in MARKUP_SUFFIXES:
        yield "  only Markdown and HTML pages are read as API pages"
    elif not page.api.rejected:
        yield "  no method with a URL is stated"
    for operation in page.api.rejected:
        yield from _operation(operation)
        if operation.is_stated:
            yield "  missing: a table or list of parameters, responses or error codes"
        else:
            yield (
                "  missing: request parameters below a heading or label that announces them, "
                "in a table or list that says which are required"
            )
