"""Each question as one trace: in LangSmith, at an OpenTelemetry collector, in both, or in neither."""

from importlib.metadata import version
from typing import TYPE_CHECKING
from uuid import UUID

import structlog
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.utils import tracing_is_enabled

from app.telemetry.trace_client import open_client
from app.telemetry.trace_loss import CLOSE_SECONDS
from schemas.errors import ConfigurationError
from schemas.question import AnswerMode
from schemas.settings import Settings

if TYPE_CHECKING:  # comes with the extra `otel`
    from app.telemetry.spans import SpanExport


class Tracing:
    """Where the runs of a desk are sent; nowhere without a client."""

    def __init__(self, platform: str, client: Client | None, spans: "SpanExport | None") -> None:
        self._client = client
        self._spans = spans
        self._tags = [f"platform:{platform}", f"version:{version('apidesk')}"]

    def config(
        self,
        run_id: UUID,
        mode: AnswerMode | None = None,
        session: str | None = None,
        *callbacks: BaseCallbackHandler,
    ) -> RunnableConfig:
        """The config of a run that is traced under `run_id`, with its tags and metadata.

        `callbacks` hear of it besides. Tags and metadata are those of each run below too; by `session_id`
        LangSmith shows threads.
        """
        request = structlog.contextvars.get_contextvars().get("request_id")
        answer = str(run_id) if mode else None  # a span has an id of another kind
        metadata = {"answer_id": answer, "session_id": session, "request_id": request}
        # A tracer for each run, as LangChain would make it: it never forgets what has streamed.
        tracers = [LangChainTracer(client=self._client)] if self._client else []
        return {
            "run_id": run_id,
            "callbacks": [*tracers, *callbacks],
            "tags": [*self._tags, f"mode:{mode}"] if mode else [*self._tags],
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }

    def close(self) -> None:
        """Send what waits, within a few seconds; what cannot be sent until then is lost."""
        if self._client:
            self._client.close(timeout=CLOSE_SECONDS)  # its threads end by themselves
        if self._spans:
            self._spans.close()


def open_tracing(settings: Settings, platform: str) -> Tracing:
    """Tracing as LangSmith's variables and OpenTelemetry's ask for it.

    Raises ConfigurationError for a collector without the extra `otel`.
    """
    langsmith, spans = tracing_is_enabled(), _open_spans(settings)
    if not langsmith and not spans:
        return Tracing(platform, None, None)
    return Tracing(platform, open_client(bool(langsmith), spans, settings.trace_content), spans)


def _open_spans(settings: Settings) -> "SpanExport | None":
    if not settings.traces_endpoint:
        return None
    try:
        from app.telemetry.spans import SpanExport
    except ImportError:
        needed = "OTEL_EXPORTER_OTLP_ENDPOINT needs a package: pip install 'apidesk[otel]'"
        raise ConfigurationError(needed) from None
    return SpanExport(settings.traces_endpoint, settings.request_timeout)
