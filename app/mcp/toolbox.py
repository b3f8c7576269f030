"""The tools: `ask` is the desk itself, the others are those that a model has in mode tools."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain.tools import BaseTool, ToolException, ToolRuntime
from langchain_core.tools import StructuredTool

from app.answer_service import AnswerService
from app.asked import Answerer, AskCommand, check_question
from app.markdown import markdown
from app.mcp.results import Answered, Documents, Passages
from app.security.token_meter import TokenMeter
from app.telemetry.request_facts import bind_log_context
from app.telemetry.run_observer import RunObserver
from ingestion.language import detect_language
from runnables.deadline import with_deadline
from runnables.tools.bench import ToolContext, ToolResult
from runnables.tools.journal import CallJournal
from runnables.tools.registry import TOOLS, langchain_tools
from runnables.tools.running import check_arguments
from schemas.language import Language
from schemas.question import Question
from schemas.wire import ApiModel

ASK = "ask"

FINDS: Mapping[str, type[Documents] | type[Passages]] = {
    name: Documents if name == "outline" else Passages for name in TOOLS
}
"""What each tool that looks something up gives."""

RESULTS: Mapping[str, type[ApiModel]] = {ASK: Answered, **FINDS}
"""What each tool gives."""

MeterTokens = Callable[[], AbstractAsyncContextManager[TokenMeter]]


@dataclass(frozen=True)
class ToolReply:
    """What a call gave: for a reader, and for a program."""

    text: str
    result: ApiModel


# Never called: what the other tools are described by, too, is a function.
async def ask(
    question: Annotated[str, "what to find out, in Chinese or English; errors may be pasted whole"],
    language: Annotated[Language | None, "of the answer; the question's if left out"] = None,
) -> None:
    """Answer a question about the platform from its documentation, in steps with numbered sources.

    For how something is done, what an API takes or what an error means. It says so where the
    documentation has no answer.
    """


@cache
def described_tools() -> Mapping[str, BaseTool]:
    """The tools by name, with what they do and their arguments' schemas; making those takes a while."""
    known = {tool.name: tool for tool in langchain_tools(TOOLS)}
    known[ASK] = StructuredTool.from_function(coroutine=ask, name=ASK)
    return {name: known[name] for name in RESULTS}


@asynccontextmanager
async def unmetered() -> AsyncIterator[TokenMeter]:
    """For whoever is not limited."""
    yield TokenMeter()


class Toolbox:
    """The tools in the hands of one caller. Making it blocks."""

    def __init__(
        self,
        answer_service: AnswerService,
        answerer: Answerer,
        owner: str = "",
        account: str = "",
        metered: MeterTokens = unmetered,
    ) -> None:
        self.tools = described_tools()
        self._answer_service = answer_service
        self._library = answer_service.library
        self._answerer = answerer
        self._owner = owner
        self._account = account
        self._metered = metered

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """What the tool gives. Raises ApideskError, and ToolException for arguments that it cannot take."""
        bind_log_context(tool=name[:40])
        if name not in self.tools:
            raise ToolException(f"there is no tool {name[:40]}; there are {', '.join(self.tools)}")
        taken = check_arguments(self.tools[name], arguments)
        async with self._metered() as meter:
            if name == ASK:
                return await self._ask(taken)  # which is charged where it is answered
            return _given(name, await self._look_up(name, taken, meter))

    async def _ask(self, arguments: dict[str, Any]) -> ToolReply:
        asked = AskCommand(
            arguments["question"],
            language=arguments.get("language"),
            owner=self._owner,
            account=self._account,
        )
        answer = await self._answerer.ask(asked)
        return ToolReply(markdown(answer), Answered.of(answer))

    async def _look_up(self, name: str, arguments: dict[str, Any], meter: TokenMeter) -> ToolResult:
        answer_service, seconds = (
            self._answer_service,
            self._answer_service.settings.request_timeout,
        )
        words = " ".join(filter(None, arguments.values()))
        check_question(words, answer_service.settings)
        question = Question(
            text=words, k=answer_service.settings.top_k, language=detect_language(words)
        )
        observer = RunObserver(answer_service.metrics)
        config = answer_service.tracing.config(question.id, None, None, observer, meter)
        runtime: ToolRuntime[ToolContext, Any] = ToolRuntime(
            state={},
            context=ToolContext(self._library, question, CallJournal(0)),
            config=with_deadline(config, seconds),
            stream_writer=lambda _: None,
            tool_call_id=None,
            store=None,
        )
        async with answer_service.running.within(seconds):
            return await TOOLS[name](**arguments, runtime=runtime)


def _given(name: str, found: ToolResult) -> ToolReply:
    result = FINDS[name].of(found.results)
    if isinstance(result, Passages) and result.passages:
        return ToolReply("\n\n".join(passage.shown for passage in result.passages), result)
    return ToolReply(found.text, result)
