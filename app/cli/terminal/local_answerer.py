"""This process's own answer service, used where no server holds the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.cli.terminal.progress import ingestion_progress
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from app.service.middleware import SessionAnswerer
from app.service.sessions import SessionStore
from schemas.answer import Answer, EventSink, Source
from schemas.settings import Settings


class LocalAnswerer:
    """A desk, and the sessions in its database. Opening it blocks."""

    def __init__(self, answer_service: AnswerService) -> None:
        self._answer_service = answer_service
        self._history = SessionStore.open(answer_service.settings)
        self._conversations = SessionAnswerer(answer_service, self._history)

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """The answer, remembered where a session is named. Raises ApideskError."""
        return await self._conversations.ask(asked, listener)

    async def retrieve(self, asked: AskCommand) -> list[Source]:
        """The k best chunks. Raises ApideskError."""
        return await self._answer_service.retrieve(asked)

    def close(self) -> None:
        """Close the sessions; the desk is closed by whoever opened it."""
        self._history.close()


@asynccontextmanager
async def open_local_answerer(settings: Settings) -> AsyncIterator[LocalAnswerer]:
    """A desk ready to answer; a first ingestion is shown. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        with ingestion_progress() as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress)
            )
        local = await asyncio.to_thread(LocalAnswerer, answer_service)
        stack.push_async_callback(asyncio.to_thread, local.close)
        yield local
