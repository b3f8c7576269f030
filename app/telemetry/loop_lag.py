"""How late the event loop is: what blocks it delays every request at once."""

import asyncio
from collections import deque

from app.telemetry.metrics import Metrics

SLEEP_SECONDS = 0.1
"""Between two looks; a block that is longer is seen whole, a shorter one in proportion."""

REMEMBERED = 600
"""Looks of which the longest lag is told: those of a minute."""


async def watch_loop(metrics: Metrics) -> None:
    """Tell `metrics` how late each sleep wakes up, until it is cancelled."""
    loop = asyncio.get_running_loop()
    lags = deque[float](maxlen=REMEMBERED)
    while True:
        due = loop.time() + SLEEP_SECONDS
        await asyncio.sleep(SLEEP_SECONDS)
        lags.append(max(0.0, loop.time() - due))
        metrics.update_loop_lag(lags[-1], max(lags))
