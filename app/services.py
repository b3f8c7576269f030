"""What the routes talk to: the desk, and around it what remembers, counts and lets in."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.asked import Answerer
from app.caching.answers import CachedAnswers
from app.caching.cached_desk import CachedDesk
from app.conversations import Conversations
from app.desk import Desk
from app.history import History
from app.ingestions import Ingestions
from app.insights.reports import Reports
from app.page.files import PageFiles
from app.page.suggestions import Suggestions
from app.records.keeper import Keeper
from app.records.recorded import Recorded
from app.records.store import RecordStore
from app.security.keyring import Keyring
from app.security.keys import Keys
from app.security.limits import Limits
from app.security.metered import Metered
from app.telemetry.loop_lag import watch_loop
from ingestion.database import open_engine


class Services:
    """All over one open desk and one database. Opening it blocks.

    Raises ConfigurationError, and StoreUnavailable when the database does not answer.
    """

    def __init__(self, desk: Desk, local_key: str | None = None) -> None:
        settings = desk.settings
        self.desk = desk
        self.limits = Limits(settings)
        self.ingestions = Ingestions(desk.job)
        self._engine = open_engine(settings)
        self.history = History(self._engine, settings)
        self.keeper = Keeper(self._engine, settings)
        self.keyring = Keyring(Keys(self._engine), settings.admin_key, local_key)
        self._cached = CachedAnswers(self._engine, settings.cache_days)
        answerer: Answerer = Metered(desk, self.limits)
        if settings.cache_answers:
            answerer = CachedDesk(desk, answerer, self._cached)
        self.files = PageFiles(desk.platform.platform)
        self.suggestions = Suggestions(desk.collection)
        self.answerer = Recorded(Conversations(answerer, self.history), self.keeper)
        self.reports = Reports(RecordStore(self._engine), desk)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block everything goes on that is not begun by a request; after it all is closed.

        With an embedded store, which serves one process, the schedule of platform.toml is kept here.
        """
        plan = self.desk.platform.ingestion if self.desk.settings.embedded else None
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, self._engine.dispose)
            stack.push_async_callback(self.limits.close)
            stack.callback(self.history.close)
            stack.callback(self._cached.close)
            await stack.enter_async_context(self.keyring.running())
            await stack.enter_async_context(self.keeper.running())
            await stack.enter_async_context(self.ingestions.running(plan))
            stack.callback(asyncio.create_task(watch_loop(self.desk.metrics)).cancel)
            yield

    @property
    def by_name(self) -> Mapping[str, object]:
        """What a route may ask for, by the name of its parameter."""
        return {
            "answerer": self.answerer,
            "desk": self.desk,
            "files": self.files,
            "history": self.history,
            "ingestions": self.ingestions,
            "keeper": self.keeper,
            "limits": self.limits,
            "reports": self.reports,
            "suggestions": self.suggestions,
        }
