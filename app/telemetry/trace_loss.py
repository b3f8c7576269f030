"""Traces that cannot be sent are lost, within bounds: nobody waits for them for long."""

import logging

CLOSE_SECONDS = 3.0
"""How long closing waits for what has not been sent."""

log = logging.getLogger(__name__)


class TraceLossWarning:
    """Says once that traces are lost; answers do not suffer, so the log need not either."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._said = False

    def __call__(self, error: Exception | None = None) -> None:
        """Traces have not arrived, by `error` where it is known."""
        if not self._said:
            self._said = True
            why = f" ({type(error).__name__})" if error else ""
            log.warning("traces are lost, answers are not: %s%s", self._where, why)
