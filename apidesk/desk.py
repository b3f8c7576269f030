"""Opens apidesk in a Python program."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from anyio.from_thread import start_blocking_portal
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from apidesk.event_loop import EventLoopRunner
from apidesk.pipeline import AnswerPipeline
from apidesk.retriever import DocumentRetriever
from apidesk.tools import ToolFactory
from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from app.service.middleware import SessionAnswerer
from app.service.session_store import SessionStore
from runnables.models.custom_models import CustomModels
from schemas.answer import Answer, Source
from schemas.choices import Language
from schemas.errors import ApideskError
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
    """Return a desk over the documents of `platform`, to be used in a `with` or `async with` block.

    `platform` is the path of a platform.toml; None means APIDESK_PLATFORM. `model` writes the answers, and
    `reranker` orders the retrieved chunks; None means those of the settings. `settings` override the
    environment, such as `top_k=3` for APIDESK_TOP_K. At the start of the block, the platform is indexed if
    it has never been indexed. Raises ApideskError, here and at the start of the block.
    """
    if platform is not None:
        settings["platform"] = Path(platform)
    return Apidesk(read_settings(**settings), CustomModels(model, reranker))


class Apidesk:
    """An open platform: its answers, its retriever and its tools.

    In an `async with` block, everything runs on the event loop of the block, and synchronous methods are
    for other threads. In a `with` block, everything runs in a thread with its own event loop, and all
    methods can be used everywhere.
    """

    def __init__(self, settings: Settings, models: CustomModels) -> None:
        self._settings = settings
        self._models = models
        self._runner = EventLoopRunner()
        self._async_stack = AsyncExitStack()
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        self._runner.attach()
        opened = open_answer_service(self._settings, models=self._models)
        self._answer_service = await self._async_stack.enter_async_context(opened)
        self._async_stack.callback(self._runner.detach)
        sessions = SessionStore(self._answer_service.engine, self._settings)
        self._async_stack.push_async_callback(asyncio.to_thread, sessions.close)
        self._answerer = SessionAnswerer(self._answer_service, sessions)
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

    @cached_property
    def pipeline(self) -> AnswerPipeline:
        """The pipeline: a Runnable from a question to an Answer."""
        return AnswerPipeline(self._answer_service, self._runner)

    @cached_property
    def retriever(self) -> DocumentRetriever:
        """The search of the pipeline."""
        return DocumentRetriever(answer_service=self._answer_service, runner=self._runner)

    @cached_property
    def tools(self) -> list[BaseTool]:
        """The tools `ask`, `outline`, `search` and `open`. The first use blocks the event loop."""
        return ToolFactory(self._answer_service, self.pipeline, self._runner).tools()

    def ask(
        self,
        question: str,
        *,
        k: int | None = None,
        language: Language | None = None,
        filters: Filters | None = None,
        mode: AnswerMode = "pipeline",
        session: str | None = None,
    ) -> Answer:
        """Return the answer to `question`.

        The options are those of `POST /ask`; `session` names a conversation to continue or start. Raises
        ApideskError.
        """
        command = AskCommand(question, k, language, filters, mode, session)
        return self._runner.run(self._ask(command))

    async def aask(
        self,
        question: str,
        *,
        k: int | None = None,
        language: Language | None = None,
        filters: Filters | None = None,
        mode: AnswerMode = "pipeline",
        session: str | None = None,
    ) -> Answer:
        """Return the answer to `question`; see `ask`."""
        command = AskCommand(question, k, language, filters, mode, session)
        return await self._runner.arun(self._ask(command))

    async def _ask(self, command: AskCommand) -> Answer:
        return await self._answerer.ask(command)
