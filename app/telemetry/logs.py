"""Configures the log: its levels, its format, and the fields of a request's log line."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TextIO

import structlog
from structlog.dev import (
    Column,
    ConsoleRenderer,
    KeyValueColumnFormatter,
    LogLevelColumnFormatter,
    plain_traceback,
)
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.types import Processor

LogFormat = Literal["auto", "json", "console"]

_ROOT = __name__.removesuffix("app.telemetry.logs")  # "apidesk." in the wheel, otherwise empty

APPLICATION_LOGGERS = (*(f"{_ROOT}{name}" for name in ("app", "runnables", "ingestion")), "uvicorn")
"""The loggers of apidesk's packages and of uvicorn."""

PROVIDER_LOGGER = f"{_ROOT}ingestion.providers"
"""The logger of model providers' error messages, which are masked because they may quote a question."""

NOISY_LOGGERS = ("grpc._server", "milvus_lite.server_manager", "langsmith", "opentelemetry")
"""Loggers whose errors are not shown, because apidesk reports the errors itself or they are harmless.

The clients of LangSmith and OpenTelemetry, for example, log an error for every lost batch of traces.
app.telemetry.tracing logs only the first loss.
"""

_fields: ContextVar[dict[str, object] | None] = ContextVar("request_fields", default=None)


def configure_logging(level: str, log_format: LogFormat = "auto") -> None:
    """Log to stderr. Loggers of the application use `level`, and libraries use WARNING.

    If the root logger already has handlers, they are kept. Those that write to stderr get the new format.
    """
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
            handler.setFormatter(log_formatter(log_format, handler.stream))
    for name in APPLICATION_LOGGERS:
        logging.getLogger(name).setLevel(level)
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def is_json(log_format: LogFormat, stream: TextIO) -> bool:
    """Return whether the log on `stream` is written as JSON."""
    return log_format == "json" or (log_format == "auto" and not stream.isatty())


def log_formatter(log_format: LogFormat, stream: TextIO) -> logging.Formatter:
    """Return a formatter for all loggers. It writes JSON, or text that is coloured on a terminal.

    Each line includes the fields that are bound to structlog's context, such as the request id.
    """
    renderers = _json() if is_json(log_format, stream) else _text(colours=stream.isatty())
    return ProcessorFormatter(
        processors=[
            ProcessorFormatter.remove_processors_meta,
            structlog.contextvars.merge_contextvars,
            *renderers,
        ],
        foreign_pre_chain=_PRE_CHAIN,
    )


def structured_logger(name: str) -> BoundLogger:
    """Return the standard library's logger `name`, wrapped so that lines can have fields."""
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[*_PRE_CHAIN, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=BoundLogger,
    )
    return logger


@contextmanager
def log_context() -> Iterator[dict[str, object]]:
    """Yield the dict of a request, which collects the fields passed to `bind_log_context` within the block.

    The fields become part of the one log line of the request, and of no other line. The dict also collects
    fields from the tasks and the `asyncio.to_thread` calls that the block starts.
    """
    fields: dict[str, object] = {}
    token = _fields.set(fields)
    try:
        yield fields
    finally:
        _fields.reset(token)


def bind_log_context(**fields: object) -> None:
    """Add fields to the log line of the current request (see `log_context`), if there is one."""
    bound = _fields.get()
    if bound is not None:
        bound.update(fields)


def mask_provider_messages() -> None:
    """Mask secrets and personal data in providers' error messages, which may quote a question."""
    logger = logging.getLogger(PROVIDER_LOGGER)
    if _mask_record not in logger.filters:
        logger.addFilter(_mask_record)


def _mask_record(record: logging.LogRecord) -> bool:
    from app.masking.masking import mask  # compiles many patterns, and is rarely needed

    record.msg, record.args = mask(record.getMessage()), ()
    return True


_PRE_CHAIN: list[Processor] = [
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
]


def _json() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


def _text(*, colours: bool) -> list[Processor]:
    """Return the processors that render a line as text.

    Tracebacks are plain, because rich tracebacks would show the values of variables, such as keys.
    """
    style = ConsoleRenderer.get_default_column_styles(colours)
    levels = ConsoleRenderer.get_default_level_styles(colours)

    def value_column(key: str, value_style: str) -> Column:
        return Column(key, KeyValueColumnFormatter(None, value_style, style.reset, str))

    columns = [
        value_column("timestamp", style.timestamp),
        Column("level", LogLevelColumnFormatter(levels, reset_style=style.reset)),
        value_column("logger", style.logger_name),
        value_column("event", style.bright),
        Column("", KeyValueColumnFormatter(style.kv_key, style.kv_value, style.reset, repr)),
    ]
    return [ConsoleRenderer(columns=columns, sort_keys=False, exception_formatter=plain_traceback)]
