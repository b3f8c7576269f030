"""When the ingestion job runs by itself: a cron expression, and a retry when a run fails."""

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

LONGEST_SLEEP = 30.0
"""Seconds; a clock that is set, or a machine that was asleep, is noticed after them."""

log = logging.getLogger(__name__)


def cron(plan: IngestionSchedule, after: datetime) -> "CronSim":
    """The times that `plan` names after `after`, one after the other.

    Raises ConfigurationError for an expression or a zone that is none.
    """
    from cronsim import CronSim, CronSimError

    try:
        zone = ZoneInfo(plan.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"ingestion.timezone: no zone is called {plan.timezone!r}"
        ) from None
    try:
        return CronSim(plan.schedule or "", after.astimezone(zone))
    except CronSimError as error:
        raise ConfigurationError(f"ingestion.schedule: {plan.schedule!r}: {error}") from None


async def run_on_schedule(plan: IngestionSchedule, run: Callable[[], Awaitable[object]]) -> None:
    """Await `run` whenever `plan` says, until cancelled. A time that passes during a run is skipped."""
    while True:
        await _sleep_until(next(cron(plan, datetime.now(UTC))))
        await _with_retries(plan, run)


async def _sleep_until(moment: datetime) -> None:
    while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(seconds, LONGEST_SLEEP))


async def _with_retries(plan: IngestionSchedule, run: Callable[[], Awaitable[object]]) -> None:
    retrying = AsyncRetrying(
        retry=retry_if_not_exception_type((IngestionRunning, IngestionStopped)),
        wait=wait_fixed(plan.retry_seconds),
        stop=stop_after_attempt(1 + plan.retries),
        reraise=True,
    )

    async def attempt() -> None:
        await run()

    try:
        await retrying(attempt)
    except IngestionRunning as error:
        log.info("skipped a scheduled ingestion: %s", error)
    except (
        Exception
    ) as error:  # the next time comes all the same, and the report says what happened
        log.error("a scheduled ingestion failed: %s", error)
