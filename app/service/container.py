"""What the routes talk to: the desk, and around it what remembers, counts and lets in."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.analytics.insights.report import InsightsReports
from app.api.page import PageFiles
from app.api.suggestions import SuggestedQuestions
from app.security.api_keys import ApiKeyStore
from app.security.keyring import Keyring
from app.security.rate_limits import RateLimiter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer
from app.service.cache import AnswerCache
from app.service.ingestion_service import IngestionService
from app.service.middleware import (
    CachingAnswerer,
    MeteringAnswerer,
    RecordingAnswerer,
    SessionAnswerer,
)
from app.service.record_writer import RecordWriter
from app.service.records import RecordStore
from app.service.sessions import SessionStore
from app.telemetry.metrics import watch_loop
from ingestion.database.engine import open_engine


class Container:
    """All over one open desk and one database. Opening it blocks.

    Raises ConfigurationError, and StoreUnavailable when the database does not answer.
    """

    def __init__(self, answer_service: AnswerService, local_key: str | None = None) -> None:
        settings = answer_service.settings
        self.answer_service = answer_service
        self.limits = RateLimiter(settings)
        self.ingestions = IngestionService(answer_service.job)
        self._engine = open_engine(settings)
        self.history = SessionStore(self._engine, settings)
        self.keeper = RecordWriter(self._engine, settings)
        self.keyring = Keyring(ApiKeyStore(self._engine), settings.admin_key, local_key)
        self._cached = AnswerCache(self._engine, settings.cache_days)
        answerer: Answerer = MeteringAnswerer(answer_service, self.limits)
        if settings.cache_answers:
            answerer = CachingAnswerer(answer_service, answerer, self._cached)
        self.files = PageFiles(answer_service.platform.platform)
        self.suggestions = SuggestedQuestions(answer_service.collection)
        self.answerer = RecordingAnswerer(SessionAnswerer(answerer, self.history), self.keeper)
        self.reports = InsightsReports(RecordStore(self._engine), answer_service)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block everything goes on that is not begun by a request; after it all is closed.

        With an embedded store, which serves one process, the schedule of platform.toml is kept here.
        """
        plan = (
            self.answer_service.platform.ingestion
            if self.answer_service.settings.embedded
            else None
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, self._engine.dispose)
            stack.push_async_callback(self.limits.close)
            stack.callback(self.history.close)
            stack.callback(self._cached.close)
            await stack.enter_async_context(self.keyring.running())
            await stack.enter_async_context(self.keeper.running())
            await stack.enter_async_context(self.ingestions.running(plan))
            stack.callback(asyncio.create_task(watch_loop(self.answer_service.metrics)).cancel)
            yield

    @property
    def by_name(self) -> Mapping[str, object]:
        """What a route may ask for, by the name of its parameter."""
        return {
            "answerer": self.answerer,
            "answer_service": self.answer_service,
            "files": self.files,
            "history": self.history,
            "ingestions": self.ingestions,
            "keeper": self.keeper,
            "limits": self.limits,
            "reports": self.reports,
            "suggestions": self.suggestions,
        }
