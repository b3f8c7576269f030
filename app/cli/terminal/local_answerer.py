"""Answers questions in this process. The module is separate, because its imports take two seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from app.service.middleware import SessionAnswerer
from app.service.session_store import SessionStore
from app.telemetry.progress import ingestion_progress
from schemas.answer import Answer, EventSink, Source
from schemas.settings import Settings


class LocalAnswerer:
    """Answers questions within the sessions of the database."""

    def __init__(self, answer_service: AnswerService) -> None:
        self._answer_service = answer_service
        self._sessions = SessionStore(answer_service.engine, answer_service.settings)
        self._session_answerer = SessionAnswerer(answer_service, self._sessions)

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer the question, in the session of `command` if it has one. Raises ApideskError."""
        return await self._session_answerer.ask(command, on_event)

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks, at most k. Raises ApideskError."""
        return await self._answer_service.retrieve(command)

    def close(self) -> None:
        """Close the sessions. The answer service stays open."""
        self._sessions.close()


@asynccontextmanager
async def open_local_answerer(settings: Settings) -> AsyncIterator[LocalAnswerer]:
    """Open an answer service, and show the progress of a first ingestion. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        with ingestion_progress() as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress)
            )
        answerer = LocalAnswerer(answer_service)
        stack.push_async_callback(asyncio.to_thread, answerer.close)
        yield answerer
