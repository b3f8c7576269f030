"""The interfaces for LangChain: the pipeline as a Runnable, a retriever, and tools.

The work of their methods runs on the event loop of the open `Apidesk`, because the clients of models and
stores belong to the event loop on which they were opened. Asynchronous methods can be called on any event
loop. Synchronous methods can be called on any thread, except the thread of the event loop of `Apidesk`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.api.fields import ChunkCount, QuestionText
from app.api.markdown import render_markdown
from app.api.mcp.toolbox import ASK_TOOL, lookup_question, tools_by_name
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand, check_question
from runnables.retrieval.retriever import to_document
from runnables.run_context import with_streaming
from runnables.tools.lookup_tools import look_up
from runnables.tools.middleware import arguments_schema
from runnables.tools.tool_context import PassagesResult
from schemas.answer import Answer
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.errors import ApideskError, QuestionError
from schemas.question import Filters, Question

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

NOT_OPEN = "apidesk is not open: use it within `with apidesk.open()`"


class EventLoopRunner:
    """Runs coroutines on one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Use the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Refuse coroutines from now on."""
        self._loop = None

    def check_open(self) -> None:
        """Raise RuntimeError if apidesk is not open."""
        if self._loop is None:
            raise RuntimeError(NOT_OPEN)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Block until `coroutine` has returned, and return its result.

        Raises RuntimeError if the calling thread runs the event loop itself, or if apidesk is not open.
        """
        if self._loop is not None and _running_loop() is self._loop:
            coroutine.close()
            raise RuntimeError(
                "apidesk was opened on this event loop: use the asynchronous method, such as ainvoke"
            )
        future = self._submit(coroutine)
        try:
            return future.result()
        except BaseException:  # includes KeyboardInterrupt; the result is not needed any more
            future.cancel()
            raise

    async def arun(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of `coroutine`. Raises RuntimeError if apidesk is not open."""
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        return await asyncio.wrap_future(self._submit(coroutine))

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(NOT_OPEN)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class QuestionFields(ApiModel):
    """A question with options: the fields of `POST /ask` without `session` and `mode`."""

    question: QuestionText
    k: ChunkCount | None = None
    """Maximum number of chunks to retrieve. Default: APIDESK_TOP_K."""
    language: Language | None = None
    """The language of the answer. Default: the language of the question."""
    filters: Filters | None = None


QuestionInput = str | dict[str, Any] | QuestionFields | Question
"""The text of a question, QuestionFields, a dict with the same fields, or a Question."""


def validate_fields(model: type[M], value: object) -> M:
    """Return `value` as an instance of `model`. Raises QuestionError, which names each invalid field."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        message = describe_problems(error)
        raise QuestionError(message, field=message.partition(":")[0]) from None


def describe_problems(error: ValidationError) -> str:
    """Return what is wrong with each invalid field, in one line."""
    problems = (f"{'.'.join(map(str, e['loc'])) or 'input'}: {e['msg']}" for e in error.errors())
    return "; ".join(problems)


class AnswerPipeline(Runnable[QuestionInput, Answer]):
    """Answers questions. In a trace, the pipeline is a run, and each step of the pipeline is a child run.

    The run dispatches the custom events `structured`, `sources` and, for each text in `Answer.answer`,
    `step`. For small talk, there is no `structured` event. With `stream`, `astream` and `astream_events`,
    `step` events are dispatched while the answer is written, otherwise when it is complete. The iterators
    of `stream` and `astream` have one item, the answer. The methods raise ApideskError, in particular
    QuestionError for invalid input, and RuntimeError outside `with apidesk.open()`.
    """

    name = "apidesk"

    def __init__(self, answer_service: AnswerService, runner: EventLoopRunner) -> None:
        self._answer_service = answer_service
        self._runner = runner

    @property
    def InputType(self) -> Any:  # noqa: N802  # LangChain's name
        """The accepted types, from which LangChain derives the input schema."""
        return str | QuestionFields | Question

    def invoke(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Return the answer."""
        return self._runner.run(self._answer(input, ensure_config(config)))

    async def ainvoke(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Return the answer."""
        return await self._runner.arun(self._answer(input, ensure_config(config)))

    def stream(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Answer]:
        """Yield the answer. Callbacks receive its parts before it is complete."""
        yield self._runner.run(self._answer(input, with_streaming(ensure_config(config))))

    async def astream(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Answer]:
        """Yield the answer. Callbacks receive its parts before it is complete."""
        run_config = with_streaming(ensure_config(config))
        yield await self._runner.arun(self._answer(input, run_config))

    async def _answer(self, input: QuestionInput, config: RunnableConfig) -> Answer:
        question = _read_question(self._answer_service, input)
        if not isinstance(config.get("callbacks"), BaseCallbackManager):  # there is no parent run
            traced = self._answer_service.tracing.config(question.id, "pipeline")
            config = merge_configs(traced, config)
        return await self._answer_service.answer(question, config)


def _read_question(answer_service: AnswerService, input: QuestionInput) -> Question:
    """Return `input` as a question. Missing options have the defaults of QuestionFields.

    Raises QuestionError if the text is blank or too long, or a field is invalid.
    """
    if isinstance(input, Question):
        validate_fields(QuestionFields, {"question": input.text, "k": input.k})
        check_question(input.text, answer_service.settings)
        return input
    if isinstance(input, str):
        return answer_service.build_question(AskCommand(input))
    fields = validate_fields(QuestionFields, input)
    command = AskCommand(fields.question, fields.k, fields.language, fields.filters)
    return answer_service.build_question(command)


class DocumentRetriever(BaseRetriever):
    """Retrieves chunks with the step `retrieve` of the pipeline. A configured reranker reorders them.

    Short chunks are extended with the text before and after them in their document. `k` and `filters` can
    also be passed to `invoke` and `ainvoke`, and bound with `bind`. The metadata of a document includes its
    `page_url`, `title`, `section` and `score`. The methods raise ApideskError, in particular QuestionError
    for an invalid query or option, and RuntimeError outside `with apidesk.open()`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    answer_service: AnswerService = Field(exclude=True, repr=False)
    runner: EventLoopRunner = Field(exclude=True, repr=False)
    k: int | None = None
    """Maximum number of chunks; None means APIDESK_TOP_K."""
    filters: Filters = Filters()
    """Conditions that a chunk must meet. By default, there are no conditions."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self.runner.run(self._retrieve(query, run_manager, **options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await self.runner.arun(self._retrieve(query, run_manager, **options))

    async def _retrieve(
        self,
        query: str,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: Filters | dict[str, Any] | None = None,
    ) -> list[Document]:
        fields = {
            "question": query,
            "k": self.k if k is None else k,
            "filters": self.filters if filters is None else filters,
        }
        question = _read_question(self.answer_service, fields)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        chunks = await self.answer_service.retrieve_chunks(question, config)
        return [to_document(chunk) for chunk in chunks]


class ToolFactory:
    """Builds LangChain tools that use an answer service."""

    def __init__(
        self, answer_service: AnswerService, pipeline: AnswerPipeline, runner: EventLoopRunner
    ) -> None:
        self._answer_service = answer_service
        self._library = answer_service.library
        self._pipeline = pipeline
        self._runner = runner

    def tools(self) -> list[BaseTool]:
        """Return tools with the same names, descriptions and arguments as the tools of the MCP server.

        The content of a tool message is text for a model. The artifact of the message is the Answer for
        `ask`, a list of LangChain documents for `search`, and a list of catalogue entries for `outline`.
        For `open`, it is a list of LangChain documents or, if `open` lists sections, of catalogue entries.
        The message of an ApideskError, for example for a blank query, is returned as a tool message with
        the status `error`.

        The first call of this method in a process is slow, because it creates the schemas of the arguments.
        """
        return [self._tool(mcp_tool) for mcp_tool in tools_by_name().values()]

    def _tool(self, mcp_tool: BaseTool) -> BaseTool:
        # If the input of a tool is text instead of a dict, LangChain passes it as a positional argument.
        async def acall(*text: str, config: RunnableConfig, **arguments: Any) -> tuple[str, object]:
            arguments |= zip(mcp_tool.args, text, strict=False)
            return await self._runner.arun(self._call(mcp_tool, arguments, config))

        def call(*text: str, config: RunnableConfig, **arguments: Any) -> tuple[str, object]:
            arguments |= zip(mcp_tool.args, text, strict=False)
            return self._runner.run(self._call(mcp_tool, arguments, config))

        return StructuredTool.from_function(
            call,
            acall,
            name=mcp_tool.name,
            description=mcp_tool.description,
            args_schema=arguments_schema(mcp_tool),
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=describe_problems,
        )

    async def _call(
        self, mcp_tool: BaseTool, arguments: dict[str, Any], config: RunnableConfig
    ) -> tuple[str, object]:
        try:
            return await self._result(mcp_tool, arguments, config)
        except ApideskError as error:
            raise ToolException(str(error)) from error

    async def _result(
        self, mcp_tool: BaseTool, arguments: dict[str, Any], config: RunnableConfig
    ) -> tuple[str, object]:
        name = mcp_tool.name
        if name == ASK_TOOL:
            question = self._answer_service.build_question(
                AskCommand(arguments["question"], language=arguments.get("language"))
            )
            answer = await self._pipeline.ainvoke(question, config)
            return render_markdown(answer), answer
        settings = self._answer_service.settings
        question = lookup_question(mcp_tool, arguments, settings)
        async with self._answer_service.in_flight.track(settings.request_timeout):
            result = await look_up(name, arguments, self._library, question, config)
        if isinstance(result, PassagesResult):
            return result.text, [to_document(chunk) for chunk in result.chunks]
        return result.text, list(result.documents)
