"""Runs the ingestion job on its schedule, for `apidesk schedule`.

The code is in a separate module, so that the process does not import the server.
"""

import asyncio
import logging

from app.telemetry.ingestion_metrics import log_ingestion_run
from app.telemetry.logs import configure_logging
from ingestion.job import IngestionJob, run_in_thread
from ingestion.platform_config import read_platform
from ingestion.runs import run_on_schedule
from schemas.errors import ConfigurationError
from schemas.settings import Settings

log = logging.getLogger(__name__)


async def run_scheduler(settings: Settings) -> None:
    """Run the job on the schedule of platform.toml until cancelled. Raises ApideskError."""
    configure_logging(settings.log_level, settings.log_format)
    plan = read_platform(settings.platform).ingestion
    if not plan.schedule:
        raise ConfigurationError(f"{settings.platform}: [ingestion] has no schedule")
    job = await asyncio.to_thread(IngestionJob.connect, settings)

    async def run_job() -> None:
        run = job.new_run("schedule")
        try:
            await run_in_thread(job, run)
        finally:
            log_ingestion_run(run)

    log.info("ingestion scheduled: %s (%s)", plan.schedule, plan.timezone)
    try:
        await run_on_schedule(plan, run_job)
    finally:
        job.close()
