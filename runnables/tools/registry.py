"""The tools by the names that the model calls them by: a line each."""

from collections.abc import Awaitable, Callable, Mapping

from langchain_core.tools import StructuredTool

from runnables.tools.bench import ToolResult
from runnables.tools.open_section import open_section
from runnables.tools.outline import outline
from runnables.tools.search import search

Tool = Callable[..., Awaitable[ToolResult]]
"""What its docstring says; its arguments are typed, and `runtime: OnBench` is one of them."""

TOOLS: dict[str, Tool] = {
    "outline": outline,
    "search": search,
    "open": open_section,
}


def langchain_tools(tools: Mapping[str, Tool]) -> list[StructuredTool]:
    """The tools as LangChain's agent takes them, with their arguments' schemas."""
    return [
        StructuredTool.from_function(
            coroutine=function, name=name, response_format="content_and_artifact"
        )
        for name, function in tools.items()
    ]
