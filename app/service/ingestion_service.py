"""Runs ingestion inside the server, one run at a time, on request or on a schedule."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from app.telemetry.ingestion_metrics import log_ingestion_run
from ingestion.job import IngestionJob
from ingestion.runs import run_on_schedule
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.platform import IngestionSchedule

STOP_TIMEOUT_S = 30
"""Seconds to wait for a run to end when the server stops; it ends at its next document."""


class IngestionService:
    """Starts and lists the runs of this server's ingestion job."""

    def __init__(self, job: IngestionJob) -> None:
        self._job = job
        self._tasks: set[asyncio.Task[IngestionRun]] = set()

    async def start(self, trigger: Trigger, options: IngestionOptions) -> IngestionRun:
        """Start a run, and return it once it is in progress.

        Raises IngestionRunning if another run is in progress, and the run's error if it fails at once.
        """
        run = self._job.new_run(trigger, options)
        has_started = asyncio.Event()
        task = self._start(run, has_started)
        waiting = asyncio.create_task(has_started.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not has_started.is_set():
            task.result()
        return run

    async def run(self, trigger: Trigger) -> IngestionRun:
        """Start a run, wait for its end and return it. Raises ApideskError."""
        return await self._start(self._job.new_run(trigger), asyncio.Event())

    async def get(self, run_id: str) -> IngestionRun | None:
        """Return the run with this id in its current state, or None."""
        return await asyncio.to_thread(self._job.runs.get, run_id)

    async def latest(self) -> list[IngestionRun]:
        """Return the last runs, newest first."""
        return await asyncio.to_thread(self._job.runs.latest)

    @asynccontextmanager
    async def running(self, plan: IngestionSchedule | None) -> AsyncIterator[None]:
        """Follow the schedule of `plan` within the block; at its end, stop the run in progress."""
        scheduled = None
        if plan and plan.schedule:
            scheduled = asyncio.create_task(run_on_schedule(plan, lambda: self.run("schedule")))
        try:
            yield
        finally:
            self._job.stop()
            if scheduled:
                scheduled.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT_S)

    def _start(self, run: IngestionRun, has_started: asyncio.Event) -> asyncio.Task[IngestionRun]:
        loop = asyncio.get_running_loop()

        def progress(_: IngestionRun) -> None:
            loop.call_soon_threadsafe(has_started.set)

        task = asyncio.create_task(asyncio.to_thread(self._job.run, run, progress))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, run))
        return task

    def _ended(self, run: IngestionRun, task: asyncio.Task[IngestionRun]) -> None:
        """Log the end of a run.

        Its exception is retrieved, because asyncio would log it otherwise. The run itself has the error.
        """
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()
        log_ingestion_run(run)
