"""The documentation as LangChain tools: `ask`, and the lookup tools of the answer mode `tools`."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from apidesk.event_loop import EventLoopRunner
from apidesk.pipeline import AnswerPipeline
from app.api.markdown import render_markdown
from app.api.mcp.toolbox import ASK_TOOL, tools_by_name
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from runnables.retrieval.retriever import to_document
from runnables.tools.lookup_tools import look_up
from runnables.tools.middleware import arguments_schema
from runnables.tools.tool_context import PassagesResult


class ToolFactory:
    """Builds LangChain tools that use an answer service. The first construction blocks the thread."""

    def __init__(
        self, answer_service: AnswerService, pipeline: AnswerPipeline, runner: EventLoopRunner
    ) -> None:
        self._answer_service = answer_service
        self._library = answer_service.library
        self._pipeline = pipeline
        self._runner = runner

    def tools(self) -> list[BaseTool]:
        """Return tools with the names, descriptions and arguments of those of the MCP server.

        The content of a tool message is text for a model. The artifact is the Answer of `ask`, the list of
        documents of `search` and `open`, or the list of catalogue entries of `outline`.
        """
        return [self._tool(tool) for tool in tools_by_name().values()]

    def _tool(self, described: BaseTool) -> BaseTool:
        name = described.name

        # If the input of a tool is text instead of a dict, LangChain passes it as a positional argument.
        async def acall(*text: str, config: RunnableConfig, **arguments: Any) -> tuple[str, object]:
            arguments |= zip(described.args, text, strict=False)
            return await self._runner.arun(self._call(name, arguments, config))

        def call(*text: str, config: RunnableConfig, **arguments: Any) -> tuple[str, object]:
            arguments |= zip(described.args, text, strict=False)
            return self._runner.run(self._call(name, arguments, config))

        return StructuredTool.from_function(
            call,
            acall,
            name=name,
            description=described.description,
            args_schema=arguments_schema(described),
            response_format="content_and_artifact",
            handle_tool_error=True,
        )

    async def _call(
        self, name: str, arguments: dict[str, Any], config: RunnableConfig
    ) -> tuple[str, object]:
        if name == ASK_TOOL:
            question = self._answer_service.build_question(
                AskCommand(arguments["question"], language=arguments.get("language"))
            )
            answer = await self._pipeline.ainvoke(question, config)
            return render_markdown(answer), answer
        text = " ".join(filter(None, arguments.values()))
        question = self._answer_service.build_question(AskCommand(text))
        async with self._answer_service.in_flight.track(
            self._answer_service.settings.request_timeout
        ):
            result = await look_up(name, arguments, self._library, question, config)
        if isinstance(result, PassagesResult):
            return result.text, [to_document(chunk) for chunk in result.chunks]
        return result.text, list(result.documents)
