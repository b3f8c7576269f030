"""The tools: `ask` is the desk itself, the others are those that a model has in mode tools."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain.tools import BaseTool, ToolException, ToolRuntime
from langchain_core.tools import StructuredTool

from app.asked import Answerer, Asked, check_question
from app.desk import Desk
from app.markdown import markdown
from app.mcp.results import Answered, Documents, Passages
from app.security.token_meter import TokenMeter
from app.telemetry.request_facts import note
from app.telemetry.run_observer import RunObserver
from ingestion.language import detect_language
from runnables.deadline import with_deadline
from runnables.tools.bench import Bench, Found
from runnables.tools.journal import Journal
from runnables.tools.registry import TOOLS, langchain_tools
from runnables.tools.running import check_arguments
from schemas.language import Language
from schemas.question import Question
from schemas.wire import WireModel

ASK = "ask"

FINDS: Mapping[str, type[Documents] | type[Passages]] = {
    name: Documents if name == "outline" else Passages for name in TOOLS
}
"""What each tool that looks something up gives."""

RESULTS: Mapping[str, type[WireModel]] = {ASK: Answered, **FINDS}
"""What each tool gives."""

Metered = Callable[[], AbstractAsyncContextManager[TokenMeter]]


@dataclass(frozen=True)
class Given:
    """What a call gave: for a reader, and for a program."""

    text: str
    result: WireModel


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
        desk: Desk,
        answerer: Answerer,
        owner: str = "",
        account: str = "",
        metered: Metered = unmetered,
    ) -> None:
        self.tools = described_tools()
        self._desk = desk
        self._library = desk.library
        self._answerer = answerer
        self._owner = owner
        self._account = account
        self._metered = metered

    async def call(self, name: str, arguments: dict[str, Any]) -> Given:
        """What the tool gives. Raises ApideskError, and ToolException for arguments that it cannot take."""
        note(tool=name[:40])
        if name not in self.tools:
            raise ToolException(f"there is no tool {name[:40]}; there are {', '.join(self.tools)}")
        taken = check_arguments(self.tools[name], arguments)
        async with self._metered() as meter:
            if name == ASK:
                return await self._ask(taken)  # which is charged where it is answered
            return _given(name, await self._look_up(name, taken, meter))

    async def _ask(self, arguments: dict[str, Any]) -> Given:
        asked = Asked(
            arguments["question"],
            language=arguments.get("language"),
            owner=self._owner,
            account=self._account,
        )
        answer = await self._answerer.ask(asked)
        return Given(markdown(answer), Answered.of(answer))

    async def _look_up(self, name: str, arguments: dict[str, Any], meter: TokenMeter) -> Found:
        desk, seconds = self._desk, self._desk.settings.request_timeout
        words = " ".join(filter(None, arguments.values()))
        check_question(words, desk.settings)
        question = Question(text=words, k=desk.settings.top_k, language=detect_language(words))
        observer = RunObserver(desk.metrics)
        config = desk.tracing.config(question.id, None, None, observer, meter)
        runtime: ToolRuntime[Bench, Any] = ToolRuntime(
            state={},
            context=Bench(self._library, question, Journal(0)),
            config=with_deadline(config, seconds),
            stream_writer=lambda _: None,
            tool_call_id=None,
            store=None,
        )
        async with desk.running.within(seconds):
            return await TOOLS[name](**arguments, runtime=runtime)


def _given(name: str, found: Found) -> Given:
    result = FINDS[name].of(found.results)
    if isinstance(result, Passages) and result.passages:
        return Given("\n\n".join(passage.shown for passage in result.passages), result)
    return Given(found.text, result)
