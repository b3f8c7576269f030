"""Ingestion inside the server: runs are begun by a request or by the schedule, one at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from app.telemetry.ingestion_metrics import log_run
from ingestion.job import IngestionJob
from ingestion.schedule import run_on_schedule
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.platform import IngestionSchedule

SECONDS_TO_STOP = 30
"""How long a run may take to come to its next document when the server stops."""


class IngestionService:
    """The runs of this server's job."""

    def __init__(self, job: IngestionJob) -> None:
        self._job = job
        self._tasks: set[asyncio.Task[IngestionRun]] = set()

    async def begin(self, trigger: Trigger, options: IngestionOptions) -> IngestionRun:
        """Begin a run and return as soon as it goes on.

        Raises IngestionRunning when another one does, and what a run fails with at once.
        """
        run = self._job.new_run(trigger, options)
        begun = asyncio.Event()
        task = self._start(run, begun)
        waiting = asyncio.create_task(begun.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not begun.is_set():
            task.result()
        return run

    async def do(self, trigger: Trigger) -> IngestionRun:
        """A run, to its end. Raises ApideskError."""
        return await self._start(self._job.new_run(trigger), asyncio.Event())

    async def get(self, run_id: str) -> IngestionRun | None:
        """The run with this id, as it is now."""
        return await asyncio.to_thread(self._job.runs.get, run_id)

    async def latest(self) -> list[IngestionRun]:
        """The last runs, latest first."""
        return await asyncio.to_thread(self._job.runs.latest)

    @asynccontextmanager
    async def running(self, plan: IngestionSchedule | None) -> AsyncIterator[None]:
        """Within the block the schedule of `plan` is kept; at its end what runs is stopped."""
        scheduled = None
        if plan and plan.schedule:
            scheduled = asyncio.create_task(run_on_schedule(plan, lambda: self.do("schedule")))
        try:
            yield
        finally:
            self._job.stop()
            if scheduled:
                scheduled.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=SECONDS_TO_STOP)

    def _start(self, run: IngestionRun, begun: asyncio.Event) -> asyncio.Task[IngestionRun]:
        loop = asyncio.get_running_loop()

        def progress(_: IngestionRun) -> None:
            loop.call_soon_threadsafe(begun.set)

        task = asyncio.create_task(asyncio.to_thread(self._job.run, run, progress))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, run))
        return task

    def _ended(self, run: IngestionRun, task: asyncio.Task[IngestionRun]) -> None:
        """Its report says how it went; nobody may be waiting for its exception."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
        log_run(run)
