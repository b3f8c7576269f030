"""Markdown of documents on a terminal: nothing of it is left out."""

from collections.abc import Iterator

from rich import markdown
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table


class _WholeTable(markdown.TableElement):
    """Rich cuts what is too wide for its cell, and Chinese has no spaces to break at."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _folded(super().__rich_console__(console, options))


class Markdown(markdown.Markdown):
    """As rich's, with tables whose cells fold."""

    elements = {**markdown.Markdown.elements, "table_open": _WholeTable}  # noqa: RUF012


def _folded(rendered: RenderResult) -> Iterator[RenderableType | Segment]:
    for each in rendered:
        for column in each.columns if isinstance(each, Table) else ():
            column.overflow = "fold"
        yield each
