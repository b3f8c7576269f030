"""Explains whether one page is read as API operations or as prose, and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingestion.sources.api_operation import PageOperation
from ingestion.sources.pages import PageContent, PageFolderReader, ParsedPage, parse_page
from ingestion.sources.registry import get_reader
from schemas.errors import SourceError
from schemas.platform import PageFolderConfig, SourceConfig, SourceLimits


def explain_page(sources: Sequence[SourceConfig], limits: SourceLimits, path: Path) -> list[str]:
    """Return lines that tell how the page at `path` is read and on what evidence.

    Raises SourceError if the page is not in a folder of pages among `sources`, or if its reader refuses it.
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
    raise SourceError(f"{path}: no folder of pages among the sources reads this file")


def _explanation(path: Path, source: PageFolderConfig, content: PageContent) -> Iterator[str]:
    page = parse_page(source, path, content)
    name = f"{path.relative_to(source.path).as_posix()} in {source.name}"
    if page is None:
        yield (
            f"{name}: not indexed, because its name does not match `file_name`, "
            "it is skipped or it has no body"
        )
    elif page.api.operations:
        count = len(page.api.operations)
        yield f"{name}: {count} API operation{'' if count == 1 else 's'}"
        for operation in page.api.operations:
            yield from _operation(operation)
    else:
        yield f"{name}: prose"
        yield from _missing(source, content, page)


def _operation(operation: PageOperation) -> Iterator[str]:
    yield f"{operation.method} {operation.url}  {operation.name}"
    yield from (f"  {line}" for line in operation.evidence)


def _missing(source: PageFolderConfig, content: PageContent, page: ParsedPage) -> Iterator[str]:
    """Yield what the page lacks to be read as an API page."""
    if not source.api_pages:
        yield "  api_pages = false for this source"
    elif content.format == "text":
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
