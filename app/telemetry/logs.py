"""Facts for a request's line in the log, noted by whoever learns them while it is answered.
Where the log goes, what it looks like and what of it is worth reading.
"""

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

_facts: ContextVar[dict[str, object] | None] = ContextVar("request_facts", default=None)


@contextmanager
def log_context() -> Iterator[dict[str, object]]:
    """What is noted within the block, in tasks and threads that it begins as well."""
    facts: dict[str, object] = {}
    token = _facts.set(facts)
    try:
        yield facts
    finally:
        _facts.reset(token)


def bind_log_context(**facts: object) -> None:
    """Note `facts` for the request that is being answered, if there is one."""
    noted = _facts.get()
    if noted is not None:
        noted.update(facts)


LogFormat = Literal["auto", "json", "console"]

OURS = ("app", "runnables", "ingestion", "uvicorn")

NOISE = ("grpc._server", "milvus_lite.server_manager", "langsmith", "opentelemetry")
"""Milvus Lite logs as errors, with stacks, a call of its own client that it does not know, and a store
that another process holds; the second comes to the user as our own StoreLocked. LangSmith's client and
OpenTelemetry's say of each batch of traces that it was lost; app.telemetry.trace_client says it once."""


def configure_logging(level: str, log_format: LogFormat = "auto") -> None:
    """Log to stderr: our own loggers at `level`, libraries from WARNING on.

    Where a process logs elsewhere already, that stays as it is.
    """
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
            handler.setFormatter(log_formatter(log_format, handler.stream))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    for name in NOISE:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def is_json(log_format: LogFormat, stream: TextIO) -> bool:
    """Whether the log on `stream` is for programs."""
    return log_format == "json" or (log_format == "auto" and not stream.isatty())


def log_formatter(log_format: LogFormat, stream: TextIO) -> logging.Formatter:
    """Formats any record, whoever logged it: one JSON object a line, or text, coloured on a terminal.

    Whatever is bound to the context (the request's id) stands in each line.
    """
    rendered = _json() if is_json(log_format, stream) else _text(colours=stream.isatty())
    return ProcessorFormatter(
        processors=[
            ProcessorFormatter.remove_processors_meta,
            structlog.contextvars.merge_contextvars,
            *rendered,
        ],
        foreign_pre_chain=_PRE_CHAIN,
    )


def structured_logger(name: str) -> BoundLogger:
    """The standard library's logger `name`, for lines that have fields."""
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[*_PRE_CHAIN, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=BoundLogger,
    )
    return logger


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
    """Stacks are Python's own: rich ones would show the values of variables, keys among them."""
    style = ConsoleRenderer.get_default_column_styles(colours)
    levels = ConsoleRenderer.get_default_level_styles(colours)

    def said(key: str, value_style: str) -> Column:
        return Column(key, KeyValueColumnFormatter(None, value_style, style.reset, str))

    columns = [
        said("timestamp", style.timestamp),
        Column("level", LogLevelColumnFormatter(levels, reset_style=style.reset)),
        said("logger", style.logger_name),
        said("event", style.bright),
        Column("", KeyValueColumnFormatter(style.kv_key, style.kv_value, style.reset, repr)),
    ]
    return [ConsoleRenderer(columns=columns, sort_keys=False, exception_formatter=plain_traceback)]
