"""What the tools give a program, and what a model reads of it.
The tools: `ask` is the desk itself, the others are those that a model has in mode tools.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain.tools import BaseTool, ToolException, ToolRuntime
from langchain_core.tools import StructuredTool

from app.api.markdown import markdown
from app.security.token_meter import TokenMeter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand, check_question
from app.telemetry.logs import bind_log_context
from app.telemetry.run_observer import RunObserver
from ingestion.text.language import detect_language
from runnables.run_context import with_deadline
from runnables.tools.lookup_tools import TOOLS, langchain_tools
from runnables.tools.middleware import check_arguments
from runnables.tools.tool_context import CallJournal, ToolContext, ToolResult
from schemas.answer import Answer, Confidence, Page, Source
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Question, QuestionType


class CitedPage(ApiModel):
    """What a citation `[number]` stands for."""

    number: int
    title: str
    section: str
    page_url: str


class Answered(ApiModel):
    """What `ask` gives."""

    id: str
    type: QuestionType
    """`unknown`: the question is not about this platform."""
    confidence: Confidence
    answer: list[str]
    """The steps; `[n]` in them is the number of a source."""
    sources: list[CitedPage]
    nearest: list[Page]
    """Where to look instead, when the documents do not answer the question."""
    unverified: list[str]
    """Paths, names and codes in the answer that the documents do not bear out."""

    @classmethod
    def of(cls, answer: Answer) -> "Answered":
        """What an agent needs of `answer`; what the sources say it can open."""
        return cls(
            id=answer.id,
            type=answer.type,
            confidence=answer.confidence,
            answer=answer.answer,
            sources=list(map(_cited, answer.sources)),
            nearest=answer.nearest,
            unverified=answer.unverified,
        )


class Passage(ApiModel):
    """A part of a document, whole."""

    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    text: str

    @property
    def shown(self) -> str:
        """For a reader."""
        where = " > ".join(filter(None, [self.title, self.section]))
        head = "\n".join(filter(None, [f"# {where}", self.page_url]))
        return f"{head}\n\n{self.text.strip()}"


class Passages(ApiModel):
    """What `search` and `open` give, best first."""

    passages: list[Passage]

    @classmethod
    def of(cls, found: Iterable[object]) -> "Passages":
        """The chunks in `found`."""
        return cls(passages=[_passage(each) for each in found if isinstance(each, RetrievedChunk)])


class Document(ApiModel):
    """A document, and what is in it."""

    title: str
    service: str
    api_name: str
    api_url: str
    page_url: str
    headings: list[str]


class Documents(ApiModel):
    """What `outline` gives: those that the name may mean first, then others of their services."""

    documents: list[Document]

    @classmethod
    def of(cls, found: Iterable[object]) -> "Documents":
        """The documents in `found`."""
        return cls(
            documents=[_document(each) for each in found if isinstance(each, CatalogueEntry)]
        )


def _cited(source: Source) -> CitedPage:
    return CitedPage(
        number=source.number,
        title=source.title,
        section=source.section,
        page_url=source.page_url,
    )


def _passage(retrieved: RetrievedChunk) -> Passage:
    chunk = retrieved.chunk
    return Passage(
        title=chunk.title,
        section=chunk.section,
        page_url=chunk.page_url,
        api_name=chunk.api_name,
        api_url=chunk.api_url,
        text=chunk.body,
    )


def _document(entry: CatalogueEntry) -> Document:
    return Document(
        title=entry.title,
        service=entry.service_id,
        api_name=entry.api_name,
        api_url=entry.api_url,
        page_url=entry.page_url,
        headings=list(entry.outline),
    )


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
