"""What one process and many have in common: to whom they listen, and how."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.security.keyring import Keyring
from app.security.loopback import MAKE_A_KEY, is_loopback
from app.serving.stopping import graceful_seconds
from app.telemetry.ingestion_log import log_run
from app.telemetry.logs import is_json
from app.terminal.progress import ingestion_progress
from ingestion.job import IngestionProgress
from schemas.errors import ConfigurationError
from schemas.settings import Settings

log = logging.getLogger(__name__)


def check_doors(settings: Settings, host: str) -> None:
    """Refuse an address that others reach while no key is configured; say when doors are open.

    It blocks. Raises ConfigurationError, and StoreUnavailable when the database does not answer.
    """
    keyring = Keyring.open(settings)
    keyring.close()
    if keyring.required:
        return
    if not is_loopback(host):
        raise ConfigurationError(
            f"--host {host}: others would reach this address and do anything, since no API key is "
            f"configured: {MAKE_A_KEY}"
        )
    log.info("no API key is configured: only this machine is answered, and may do anything")


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """What uvicorn is told of Settings."""
    return {
        "log_config": None,
        "access_log": False,  # each request has a line of our own: app/telemetry/request_log.py
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": list(settings.trusted_proxies),
        "timeout_graceful_shutdown": graceful_seconds(settings),
    }


@contextmanager
def first_ingestion(settings: Settings) -> Iterator[IngestionProgress]:
    """How a first ingestion shows: as `apidesk ingest` does, or as a line of a log for programs."""
    if not is_json(settings.log_format, sys.stderr):
        with ingestion_progress() as progress:
            yield progress
        return
    yield log_run
