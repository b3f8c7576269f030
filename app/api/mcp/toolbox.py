"""The MCP tools with their structured results.

The tools are `ask`, `outline`, `search` and `open`. In the answer mode `tools`, a model uses the last three
to look up documents before it answers.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain.tools import BaseTool, ToolException
from langchain_core.tools import StructuredTool
from pydantic import Field, create_model

from app.api.markdown import render_markdown
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand, check_question
from app.telemetry.logs import bind_log_context
from app.telemetry.run_observer import RunObserver, TokenMeter
from ingestion.text.language import detect_language
from prompts.user_text import language_choices
from runnables.run_context import with_deadline
from runnables.tools.lookup_tools import TOOLS, langchain_tools, look_up
from runnables.tools.middleware import arguments_schema, check_arguments
from runnables.tools.tool_context import OutlineResult, PassagesResult
from schemas.answer import AGENT_FIELDS, Answer
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk
from schemas.question import Question
from schemas.settings import Settings


class CitedPage(ApiModel):
    """The page that a citation `[number]` refers to."""

    number: int
    title: str
    section: str
    page_url: str


def _answer_fields() -> dict[str, Any]:
    """Return the field definitions of AnswerResult: the AGENT_FIELDS of Answer, without default values.

    The type of `sources` is replaced by a list of CitedPage.
    """
    fields: dict[str, Any] = {}
    for name in AGENT_FIELDS:
        field = Answer.model_fields[name]
        annotation = list[CitedPage] if name == "sources" else field.annotation
        fields[name] = (annotation, Field(description=field.description))
    return fields


AnswerResult = create_model(
    "AnswerResult",
    __base__=ApiModel,
    __doc__="The answer to a question.",
    __cls_kwargs__={"title": "Answered"},  # the title in the output schema that clients receive
    **_answer_fields(),
)
"""The result of `ask`: the AGENT_FIELDS of the answer. Clients read the cited text with the tool `open`."""


def answer_result(answer: Answer) -> ApiModel:
    """Return `answer` as the structured result of `ask`."""
    sources = [
        CitedPage(**{name: getattr(source, name) for name in CitedPage.model_fields})
        for source in answer.sources
    ]
    fields = {name: getattr(answer, name) for name in AGENT_FIELDS}
    return AnswerResult(**fields | {"sources": sources})


class Passage(ApiModel):
    """A complete passage of a document."""

    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    text: str

    @classmethod
    def of(cls, chunk: Chunk) -> "Passage":
        """Return the passage of a chunk."""
        return cls(
            title=chunk.title,
            section=chunk.section,
            page_url=chunk.page_url,
            api_name=chunk.api_name,
            api_url=chunk.api_url,
            text=chunk.body,
        )

    @property
    def markdown(self) -> str:
        """The title, section, URL and text of the passage, as Markdown."""
        heading = " > ".join(filter(None, [self.title, self.section]))
        head = "\n".join(filter(None, [f"# {heading}", self.page_url]))
        return f"{head}\n\n{self.text.strip()}"


class Document(ApiModel):
    """A document and its headings."""

    title: str
    service: str
    api_name: str
    api_url: str
    page_url: str
    headings: list[str]

    @classmethod
    def of(cls, entry: CatalogueEntry) -> "Document":
        """Return the document of a catalogue entry."""
        return cls(
            title=entry.title,
            service=entry.service_id,
            api_name=entry.api_name,
            api_url=entry.api_url,
            page_url=entry.page_url,
            headings=list(entry.outline),
        )


class Passages(ApiModel):
    """The result of `search`, best passages first, and of `open`, in the order of the document."""

    passages: list[Passage]
    sections: list[str]
    """The headings of all `documents`, without duplicates."""
    documents: list[Document]
    """The documents with their headings, if `open` lists headings instead of passages; otherwise empty."""

    @classmethod
    def of(cls, result: PassagesResult | OutlineResult) -> "Passages":
        """Return the passages or the headings in the result of a tool."""
        if isinstance(result, OutlineResult):
            documents = list(map(Document.of, result.documents))
            headings = (heading for document in documents for heading in document.headings)
            return cls(passages=[], sections=list(dict.fromkeys(headings)), documents=documents)
        passages = [Passage.of(retrieved.chunk) for retrieved in result.chunks]
        return cls(passages=passages, sections=[], documents=[])


class Documents(ApiModel):
    """The result of `outline`: the documents found by name, then other documents of the same services."""

    documents: list[Document]

    @classmethod
    def of(cls, entries: Iterable[CatalogueEntry]) -> "Documents":
        """Return the documents of the catalogue entries."""
        return cls(documents=list(map(Document.of, entries)))


ASK_TOOL = "ask"

TOOL_RESULTS: Mapping[str, type[ApiModel]] = {
    ASK_TOOL: AnswerResult,
    "outline": Documents,
    "search": Passages,
    "open": Passages,
}
"""Maps the name of a tool to its result model."""

MeterTokens = Callable[[], AbstractAsyncContextManager[TokenMeter]]
"""Returns a context manager that yields a token meter for one tool call or resource request."""


@dataclass(frozen=True)
class ToolReply:
    """The reply of a tool: text for a model and a structured result for a program."""

    text: str
    result: ApiModel


# This function only defines the description and arguments of the tool. `Toolbox` answers the question.
async def ask(
    question: Annotated[str, f"the question, in {language_choices()}; may contain a pasted error"],
    language: Annotated[
        Language | None, "the language of the answer; by default the language of the question"
    ] = None,
) -> None:
    """Answer a question about the platform from its documentation, in steps with numbered sources.

    Use this tool to find out how to do something, what an API expects or what an error means. If the
    documentation does not cover the question, the answer says so.
    """


@cache
def tools_by_name() -> Mapping[str, BaseTool]:
    """Return the tools with their descriptions and argument schemas. Slow on the first call."""
    tools = {tool.name: tool for tool in langchain_tools(TOOLS)}
    tools[ASK_TOOL] = StructuredTool.from_function(coroutine=ask, name=ASK_TOOL)
    return {name: tools[name] for name in TOOL_RESULTS}


@asynccontextmanager
async def unmetered() -> AsyncIterator[TokenMeter]:
    """Yield a meter whose tokens are not charged to an account."""
    yield TokenMeter()


def lookup_question(tool: BaseTool, arguments: Mapping[str, Any], settings: Settings) -> Question:
    """Return the question for `look_up`, with the default `k` and without filters.

    Its text is the arguments of the tool call, joined by spaces.

    Raises QuestionError if an argument is blank or too long; optional arguments may be empty.
    """
    fields = arguments_schema(tool).model_fields
    for argument, value in arguments.items():
        if value or fields[argument].is_required():
            check_question(value, settings, argument)
    text = " ".join(filter(None, arguments.values()))
    return Question(text=text, k=settings.top_k, language=detect_language(text))


class Toolbox:
    """The tools for one caller. Creating the first Toolbox in a process is slow: use a worker thread.

    `AskCommand` describes `owner` and `account`.
    """

    def __init__(
        self,
        answer_service: AnswerService,
        answerer: Answerer,
        owner: str = "",
        account: str = "",
        meter_tokens: MeterTokens = unmetered,
    ) -> None:
        self.tools = tools_by_name()
        self._answer_service = answer_service
        self._library = answer_service.library
        self.collection = self._library.collection
        self._answerer = answerer
        self._owner = owner
        self._account = account
        self.meter_tokens = meter_tokens

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """Call the tool `name` and return its reply.

        Raises ApideskError, and ToolException for an unknown tool, invalid arguments, or a document or
        section that `open` does not find.
        """
        if name not in self.tools:  # not logged, because the caller may send any text
            raise ToolException(f"unknown tool: {name[:40]}; available: {', '.join(self.tools)}")
        bind_log_context(tool=name)
        arguments = check_arguments(self.tools[name], arguments)
        async with self.meter_tokens() as meter:
            if name == ASK_TOOL:
                return await self._ask(arguments)  # the answerer charges the tokens itself
            return _lookup_reply(name, await self._look_up(name, arguments, meter))

    async def _ask(self, arguments: dict[str, Any]) -> ToolReply:
        command = AskCommand(
            arguments["question"],
            language=arguments.get("language"),
            owner=self._owner,
            account=self._account,
        )
        answer = await self._answerer.ask(command)
        return ToolReply(render_markdown(answer), answer_result(answer))

    async def _look_up(
        self, name: str, arguments: dict[str, Any], meter: TokenMeter
    ) -> PassagesResult | OutlineResult:
        answer_service = self._answer_service
        settings = answer_service.settings
        question = lookup_question(self.tools[name], arguments, settings)
        observer = RunObserver(answer_service.metrics)
        config = answer_service.tracing.config(question.id, None, None, observer, meter)
        timed = with_deadline(config, settings.request_timeout)
        async with answer_service.in_flight.track(settings.request_timeout):
            return await look_up(name, arguments, self._library, question, timed)


def _lookup_reply(name: str, result: PassagesResult | OutlineResult) -> ToolReply:
    if isinstance(result, OutlineResult):
        is_outline = name == "outline"  # otherwise, `open` lists headings instead of passages
        listed = Documents.of(result.documents) if is_outline else Passages.of(result)
        return ToolReply(result.text, listed)
    passages = Passages.of(result)
    text = "\n\n".join(passage.markdown for passage in passages.passages)
    return ToolReply(text or result.text, passages)
