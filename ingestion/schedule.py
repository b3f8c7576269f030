"""Runs the ingestion job by a cron expression and retries a run that fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tenacity import AsyncRetrying, retry_if_not_exception_type, stop_after_attempt, wait_fixed

from schemas.errors import ConfigurationError, IngestionRunning, IngestionStopped
from schemas.platform import IngestionSchedule

if TYPE_CHECKING:
    from cronsim import CronSim

MAX_SLEEP_S = 30.0
"""A change of the clock, or a suspended machine, is noticed within this time."""

log = logging.getLogger(__name__)


def cron(schedule: IngestionSchedule, after: datetime) -> "CronSim":
    """Return an iterator over the scheduled times after `after`.

    Raises ConfigurationError for an invalid expression or time zone.
    """
    from cronsim import CronSim, CronSimError

    try:
        zone = ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"ingestion.timezone: no zone is called {schedule.timezone!r}"
        ) from None
    try:
        return CronSim(schedule.schedule or "", after.astimezone(zone))
    except CronSimError as error:
        raise ConfigurationError(f"ingestion.schedule: {schedule.schedule!r}: {error}") from None


async def run_on_schedule(
    schedule: IngestionSchedule, run: Callable[[], Awaitable[object]]
) -> None:
    """Await `run` at each scheduled time, until cancelled. Times that pass during a run are skipped."""
    while True:
        await _sleep_until(next(cron(schedule, datetime.now(UTC))))
        await _run_with_retries(schedule, run)


async def _sleep_until(moment: datetime) -> None:
    while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(seconds, MAX_SLEEP_S))


async def _run_with_retries(
    schedule: IngestionSchedule, run: Callable[[], Awaitable[object]]
) -> None:
    retrying = AsyncRetrying(
        retry=retry_if_not_exception_type((IngestionRunning, IngestionStopped)),
        wait=wait_fixed(schedule.retry_seconds),
        stop=stop_after_attempt(1 + schedule.retries),
        reraise=True,
    )

    async def attempt() -> None:
        await run()

    try:
        await retrying(attempt)
    except IngestionRunning as error:
        log.info("skipped a scheduled ingestion: %s", error)
    except Exception as error:
        # The report has the error; the next scheduled run starts as usual.
        log.error("a scheduled ingestion failed: %s", error)
