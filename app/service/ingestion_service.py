"""Runs ingestion on request or on a schedule: inside the server, or for `apidesk schedule`.

This module must not import the server, which `apidesk schedule` does not need.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from app.telemetry.logs import configure_logging, structured_logger
from ingestion.job import IngestionJob, ProgressCallback, run_in_thread
from ingestion.platform_config import read_platform
from ingestion.runs import run_on_schedule
from schemas.errors import ConfigurationError
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.platform import IngestionSchedule
from schemas.settings import Settings

log = structured_logger(__name__)

STOP_TIMEOUT_S = 30
"""Seconds that a stopping server waits for a run to finish its current document."""


def log_ingestion_run(run: IngestionRun) -> None:
    """Log the result of `run` if it has ended."""
    if run.finished_at is None:
        return
    log_line = log.warning if run.state == "failed" else log.info
    log_line(
        "ingestion",
        ingestion=run.id,
        trigger=run.trigger,
        state=run.state,
        seconds=run.seconds,
        added=sum(source.added for source in run.sources),
        changed=sum(source.changed for source in run.sources),
        deleted=sum(source.deleted for source in run.sources),
        refused=len(run.refused),
        error=run.error,
    )


class IngestionService:
    """Starts ingestion runs in this process, and lists those of all processes."""

    def __init__(self, job: IngestionJob) -> None:
        self._job = job
        self._tasks: set[asyncio.Task[IngestionRun]] = set()

    async def start(self, trigger: Trigger, options: IngestionOptions) -> IngestionRun:
        """Start a run, and return it once it is in progress.

        Raises IngestionRunning if another run is in progress, and StoreUnavailable if the database does not
        answer. A later error is not raised, but stored in the run.
        """
        run = self._job.new_run(trigger, options)
        loop = asyncio.get_running_loop()
        has_started = asyncio.Event()

        def progress(_: IngestionRun) -> None:
            loop.call_soon_threadsafe(has_started.set)

        task = self._start(run, progress)
        waiting = asyncio.create_task(has_started.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not has_started.is_set():
            task.result()  # raises the error
        return run

    async def run(self, trigger: Trigger) -> IngestionRun:
        """Start a run, wait for its end and return it. Raises ApideskError.

        If the caller is cancelled, the run continues, so that `running` can wait for its end.
        """
        task = self._start(self._job.new_run(trigger))
        await asyncio.wait((task,))  # `await task` would pass the cancellation on to the task
        return task.result()

    async def get(self, run_id: str) -> IngestionRun | None:
        """Return the run with this id in its current state, or None. Raises StoreUnavailable."""
        return await asyncio.to_thread(self._job.runs.get, run_id)

    async def latest(self) -> list[IngestionRun]:
        """Return the last runs, at most 50, newest first. Raises StoreUnavailable."""
        return await asyncio.to_thread(self._job.runs.latest)

    @asynccontextmanager
    async def running(self, schedule: IngestionSchedule | None) -> AsyncIterator[None]:
        """Follow `schedule`, if any, within the block.

        When the block ends, stop the run in progress, and wait at most STOP_TIMEOUT_S seconds for its end.
        If several processes run on this machine, only one of them follows the schedule.
        """
        scheduled = None
        if schedule and schedule.schedule:
            scheduled = asyncio.create_task(self._follow_schedule(schedule))
        try:
            yield
        finally:
            self._job.stop()
            if scheduled:
                scheduled.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT_S)

    async def _follow_schedule(self, schedule: IngestionSchedule) -> None:
        async with self._job.scheduling():
            await run_on_schedule(schedule, lambda: self.run("schedule"))

    def _start(
        self, run: IngestionRun, progress: ProgressCallback = lambda run: None
    ) -> asyncio.Task[IngestionRun]:
        task = asyncio.create_task(asyncio.to_thread(self._job.run, run, progress))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_end, run))
        return task

    def _on_end(self, run: IngestionRun, task: asyncio.Task[IngestionRun]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # asyncio logs an exception that is never retrieved
        log_ingestion_run(run)


async def run_scheduler(settings: Settings) -> None:
    """Run ingestion on the schedule in platform.toml until cancelled. Raises ApideskError."""
    configure_logging(settings.log_level, settings.log_format)
    schedule = read_platform(settings.platform).ingestion
    if not schedule.schedule:
        raise ConfigurationError(
            f"{settings.platform}: [ingestion] has no schedule: add one, such as "
            'schedule = "0 3 * * *"'
        )
    job = await asyncio.to_thread(IngestionJob.connect, settings, long_lived=True)

    async def run_job() -> None:
        run = job.new_run("schedule")
        try:
            await run_in_thread(job, run)
        finally:
            log_ingestion_run(run)

    log.info("ingestion scheduled", schedule=schedule.schedule, timezone=schedule.timezone)
    try:
        await run_on_schedule(schedule, run_job)
    finally:
        job.close()
