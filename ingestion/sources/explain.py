"""Explains whether one page is read as API operations or as prose, and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingestion.sources.api_operation import PageOperation
from ingestion.sources.pages import PageContent, PageFolderReader, ParsedPage, parse_page
from ingestion.sources.registry import get_reader
from schemas.errors import SourceError
from schemas.platform import PageFolderConfig, SourceConfig, SourceLimits


def explain_page(sources: Sequence[SourceConfig], limits: SourceLimits, path: Path) -> list[str]:
    """Return lines that explain how the page at `path` is read, with the evidence.

    Raises SourceError if none of `sources` reads the file as a page, or if the reader refuses it.
    Raises ConfigurationError for a malformed `page_url`.
    """
    page_path = path.resolve()
    for source in sources:
        reader = get_reader(source.kind)
        if not isinstance(source, PageFolderConfig) or not isinstance(reader, PageFolderReader):
            continue
        is_accepted = page_path.suffix.lower() in reader.suffixes(source)
        if is_accepted and page_path.is_relative_to(root := source.path.resolve()):
            path_in_source = source.path / page_path.relative_to(root)
            content = reader.read_content(source, limits, path_in_source)
            return list(_explanation(path_in_source, source, content))
    raise SourceError(f"{path}: no configured source reads this file as a page")


def _explanation(path: Path, source: PageFolderConfig, content: PageContent) -> Iterator[str]:
    page = parse_page(source, path, content)
    name = f"{path.relative_to(source.path).as_posix()} in {source.name}"
    if page is None:
        yield (
            f"{name}: not indexed, because its name does not match `file_name`, "
            "a value that `skip` names is true, or the page has no body"
        )
    elif page.api.operations:
        count = len(page.api.operations)
        yield f"{name}: {count} API operation{'' if count == 1 else 's'}"
        for operation in page.api.operations:
            yield from _operation_lines(operation)
    else:
        yield f"{name}: prose"
        yield from _reasons_for_prose(source, content, page)


def _operation_lines(operation: PageOperation) -> Iterator[str]:
    yield f"{operation.method} {operation.url}  {operation.name}"
    yield from (f"  {line}" for line in operation.evidence)


def _reasons_for_prose(
    source: PageFolderConfig, content: PageContent, page: ParsedPage
) -> Iterator[str]:
    """Yield lines that say why the page is not read as API operations."""
    if not source.api_pages:
        yield "  api_pages = false for this source"
    elif content.format == "text":
        yield "  only Markdown and HTML pages are read as API pages"
    elif not page.api.rejected:
        yield "  missing: an HTTP method with a URL"
    for operation in page.api.rejected:
        yield from _operation_lines(operation)
        if operation.is_stated:
            yield "  missing: a table or list of parameters, responses or error codes"
        else:
            yield (
                "  missing: a list of request parameters, or a table that says which are required, "
                "below a heading or label for parameters"
            )
