"""Creates the objects that the routes use, such as the stores and the middleware of the answer service."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.analytics.insights.report import InsightsReports
from app.security.api_keys import ApiKeyStore, Keyring
from app.security.rate_limits import RateLimiter
from app.service.answer_cache import AnswerCache
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer
from app.service.ingestion_service import IngestionService
from app.service.middleware import (
    CachingAnswerer,
    MeteringAnswerer,
    RecordingAnswerer,
    SessionAnswerer,
)
from app.service.record_writer import RecordWriter
from app.service.records import RecordStore
from app.service.session_store import SessionStore
from app.telemetry.metrics import measure_loop_lag


class Container:
    """Contains the objects that the routes use. The stores share the database of the answer service.

    The constructor blocks. `local_key` is described in `create_app`. Raises ConfigurationError for invalid
    settings, and StoreUnavailable if the database cannot be used.
    """

    def __init__(self, answer_service: AnswerService, local_key: str | None = None) -> None:
        settings = answer_service.settings
        engine = answer_service.engine
        self.answer_service = answer_service
        self.limits = RateLimiter(settings)
        self.keyring = Keyring(ApiKeyStore(engine), settings.admin_key, local_key)
        self.ingestions = IngestionService(answer_service.job)
        self.session_store = SessionStore(engine, settings)
        self.record_writer = RecordWriter(engine, settings, answer_service.metrics.lost_records.inc)
        self.records = RecordStore(engine)
        self.reports = InsightsReports(self.records, answer_service)
        self._answer_cache = AnswerCache(engine, settings.cache_days)
        self.metering = MeteringAnswerer(answer_service, self.limits)
        self.answerer = self._build_answerer()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the background tasks within the block; at its end, close the stores and the database.

        With Milvus Lite, this process also runs the scheduled ingestions. With a Milvus server, `apidesk
        schedule` runs them.
        """
        answer_service = self.answer_service
        is_embedded = answer_service.settings.embedded
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, answer_service.engine.dispose)
            stack.push_async_callback(self.limits.close)
            stack.push_async_callback(asyncio.to_thread, self.session_store.close)
            stack.callback(self._answer_cache.close)
            await stack.enter_async_context(self.keyring.running())
            await stack.enter_async_context(self.record_writer.running())
            await stack.enter_async_context(
                self.ingestions.running(answer_service.platform.ingestion if is_embedded else None)
            )
            lag_task = asyncio.create_task(measure_loop_lag(answer_service.metrics))
            stack.callback(lag_task.cancel)
            yield

    @property
    def dependencies(self) -> Mapping[str, object]:
        """The attributes of this container that Litestar injects into routes, by parameter name."""
        return {
            "answerer": self.answerer,
            "answer_service": self.answer_service,
            "ingestions": self.ingestions,
            "metering": self.metering,
            "record_writer": self.record_writer,
            "reports": self.reports,
            "session_store": self.session_store,
        }

    def _build_answerer(self) -> Answerer:
        answerer: Answerer = self.metering
        if self.answer_service.settings.cache_answers:
            answerer = CachingAnswerer(self.answer_service, answerer, self._answer_cache)
        answerer = SessionAnswerer(answerer, self.session_store)
        return RecordingAnswerer(answerer, self.record_writer)
