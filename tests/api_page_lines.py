"""An API page for tests, and what such a page is read as, in lines that tests compare."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ingestion.sources import files, markdown
from ingestion.sources.api_pages.operation import PageOperation
from ingestion.sources.pages import parse_page
from schemas.document import Parameter
from schemas.platform import FilesSourceConfig, MarkdownSourceConfig, SourceLimits

SEVERAL = """# Boards

| Method | Path |
| --- | --- |
| GET | /v1/boards |
| POST | /v1/boards |

## List boards

`GET /v1/boards`

### Query

| Required | Type | Field | Notes |
| --- | --- | --- | --- |
| | integer | `limit` | |

## Create a board

**POST** `/v1/boards`

Requires the `boards:write` scope.

### Body

- `name` (string, required): The name.
- `columns` (array of objects): Columns.
  - `title` (string, required): Its title.

### Errors

- `409` `name_taken`: Choose another name.
"""
"""A page with two operations."""


def read_operations(text: str, path: Path) -> Sequence[PageOperation]:
    """Write `text` to `path`, an HTML or Markdown file, and return the operations in it."""
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".html":
        html = FilesSourceConfig(kind="files", name="docs", path=path.parent)
        page = parse_page(html, path, files.read_content(html, SourceLimits(), path))
    else:
        source = MarkdownSourceConfig(kind="markdown", name="docs", path=path.parent)
        page = parse_page(source, path, markdown.read_content(source, SourceLimits(), path))
    assert page is not None
    return page.api.operations


def read_lines(text: str, path: Path) -> list[str]:
    """Write `text` to `path`, as `read_operations` does, and return the lines of the operations in it.

    `!` marks required parameters and `>` those of the response.
    """
    return [line for each in read_operations(text, path) for line in _lines(each)]


def _names(parameters: Sequence[Parameter], parent: str) -> Iterator[str]:
    """Yield the dotted name of each parameter, with `!` if it is required."""
    for each in parameters:
        yield f"{parent}{each.name}{'!' * (each.required is True)}"
        yield from _names(each.children, f"{parent}{each.name}.")


def _lines(operation: PageOperation) -> Iterator[str]:
    yield f"{operation.method} {operation.url} {operation.name}"
    yield from _names([*operation.request_headers, *operation.request_parameters], "")
    yield from _names(operation.response_parameters, "> ")
    yield from (error.code for error in operation.error_codes)
    yield from (scope.name for scope in operation.permissions)
