"""Opens apidesk in a Python program, without a server."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

from anyio.from_thread import start_blocking_portal
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from apidesk.interfaces import (
    AnswerPipeline,
    DocumentRetriever,
    EventLoopRunner,
    ToolFactory,
    validate_fields,
)
from app.api.ask import AskRequest
from app.service.answer_service import AnswerService, open_answer_service
from app.service.middleware import SessionAnswerer
from app.service.session_store import SessionStore
from runnables.models.chat_models import CustomModels
from schemas.answer import Answer, Source
from schemas.choices import Language
from schemas.errors import ApideskError, ConfigurationError
from schemas.question import AnswerMode, Filters, Question
from schemas.settings import Settings, read_settings

__all__ = ["Answer", "Apidesk", "ApideskError", "Filters", "Question", "Source", "open"]


def open(
    platform: str | Path | None = None,
    *,
    model: BaseChatModel | None = None,
    reranker: BaseDocumentCompressor | None = None,
    **settings: object,
) -> "Apidesk":
    """Return an Apidesk for the documents of `platform`, to be used in a `with` or `async with` block.

    `platform` is the path of a platform.toml, `model` is the chat model, and `reranker` orders the
    retrieved chunks. If one of them is None, the settings determine it. `settings` override environment
    variables: `top_k=3` overrides APIDESK_TOP_K. If the platform has never been indexed, it is indexed at
    the start of the block. This function and the start of the block raise ApideskError.
    """
    if not isinstance(model, BaseChatModel | None):
        raise ConfigurationError(
            "model: must be a LangChain chat model; pass the name of a model as `chat_model`"
        )
    if not isinstance(reranker, BaseDocumentCompressor | None):
        raise ConfigurationError(
            "reranker: must be a LangChain document compressor; pass the name of its class as `rerank`"
        )
    if platform is not None:
        settings["platform"] = Path(platform)
    return Apidesk(read_settings(**settings), CustomModels(model, reranker))


class AskOptions(TypedDict, total=False):
    """The optional arguments of `Apidesk.ask` and `Apidesk.aask`."""

    k: int | None
    """Maximum number of chunks to retrieve; None means APIDESK_TOP_K."""
    language: Language | None
    """The language of the answer; None means the language of the question."""
    filters: Filters | None
    """Conditions that a chunk must meet to be retrieved; None means no conditions."""
    mode: AnswerMode
    """`tools` lets a model look up documents before it answers. Default: `pipeline`."""
    session: str | None
    """The name of a conversation to continue or start; None means no conversation.

    1 to 64 characters from A-Z, a-z, 0-9, `.`, `_` and `-`.
    """


class Apidesk:
    """Answers questions about the documents of a platform, and provides a retriever and tools.

    In an `async with` block, everything runs on the event loop of the block, and synchronous methods cannot
    be called on the thread of this event loop. In a `with` block, everything runs in a thread with its own
    event loop, and all methods can be called on any thread. Outside a block, methods, properties and the
    objects that properties return raise RuntimeError.
    """

    def __init__(self, settings: Settings, models: CustomModels) -> None:
        self._settings = settings
        self._models = models
        self._runner = EventLoopRunner()
        self._async_stack = AsyncExitStack()
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            opened = open_answer_service(self._settings, models=self._models)
            self._answer_service = await stack.enter_async_context(opened)
            sessions = SessionStore(self._answer_service.engine, self._settings)
            stack.push_async_callback(asyncio.to_thread, sessions.close)
            self._answerer = SessionAnswerer(self._answer_service, sessions)
            # With a new runner, the objects of an earlier block stay closed.
            self._runner = EventLoopRunner()
            self._runner.attach()
            stack.callback(self._runner.detach)
            self._async_stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._async_stack.aclose()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(portal.wrap_async_context_manager(self))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def pipeline(self) -> AnswerPipeline:
        """The pipeline as a Runnable from a question to an Answer."""
        return AnswerPipeline(self._opened_service(), self._runner)

    @property
    def retriever(self) -> DocumentRetriever:
        """The retrieval of the pipeline as a LangChain retriever."""
        return DocumentRetriever(answer_service=self._opened_service(), runner=self._runner)

    @property
    def tools(self) -> list[BaseTool]:
        """The tools `ask`, `outline`, `search` and `open`. The first access in a process is slow."""
        return ToolFactory(self._opened_service(), self.pipeline, self._runner).tools()

    def ask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Return the answer to `question`. `AskOptions` describes the options. Raises ApideskError."""
        return self._runner.run(self._ask(question, options))

    async def aask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Return the answer to `question`; see `ask`."""
        return await self._runner.arun(self._ask(question, options))

    async def _ask(self, question: str, options: AskOptions) -> Answer:
        request = validate_fields(AskRequest, {"question": question, **options})
        return await self._answerer.ask(request.to_command())

    def _opened_service(self) -> AnswerService:
        self._runner.check_open()
        return self._answer_service
