"""Traces: one per question, sent to LangSmith, to an OpenTelemetry collector, or to both.

Traces never delay answers. With APIDESK_TRACE_CONTENT=false, texts are removed before sending.
"""

import logging
import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import UUID

import requests
import structlog
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.utils import tracing_is_enabled
from urllib3 import Retry

from schemas.errors import ConfigurationError
from schemas.question import AnswerMode
from schemas.settings import Settings, variable_if_unset

if TYPE_CHECKING:
    from app.telemetry.spans import SpanExport

KEPT_METADATA = ("session_id", "request_id", "answer_id", "rung", "revision_id", "langgraph_node")
"""Metadata that are names or ids. LangSmith's own metadata begin with `ls_` and name the model."""

_ERROR_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def redact_run(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the token usage, the ids and scores of documents, and the error's type.

    LangSmith's client calls this function for a run's outputs, for its metadata, and for its error,
    which it passes as `{"error": text}`.
    """
    redacted = {
        key: value for key, value in fields.items() if key in KEPT_METADATA or key.startswith("ls_")
    }
    if usage := _usage_metadata(fields):
        redacted["usage_metadata"] = usage
    if isinstance(documents := fields.get("documents"), list):
        redacted["documents"] = [
            _redact_document(each) for each in documents if isinstance(each, dict)
        ]
    if "error" in fields:
        name = _ERROR_NAME.match(str(fields["error"]))
        redacted["error"] = name[0] if name else "error"
    return redacted


def _usage_metadata(fields: dict[str, Any]) -> Any:
    """A model's run holds its token usage in its metadata, and deep in its outputs."""
    try:
        return fields["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return fields.get("usage_metadata")


def _redact_document(document: dict[str, Any]) -> dict[str, Any]:
    """The structure in which LangSmith displays documents, without their text."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}


SEND_TIMEOUTS_S = (3.0, 5.0)
"""The time to connect, and the time between two bytes of a reply."""

CLOSE_TIMEOUT_S = 3.0
"""How long closing waits for pending traces."""

SPAN_TTL_VARIABLE = "LANGSMITH_OTEL_SPAN_TTL_SECONDS"
"""LangSmith's setting for how long its client keeps the spans of a run that has not ended."""

SPAN_TTL_MARGIN_S = 60
"""How long the spans of a question are kept beyond APIDESK_REQUEST_TIMEOUT."""

log = logging.getLogger(__name__)


class Tracing:
    """Creates the run configs of one answer service. Without a client, nothing is traced."""

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
        """Return the config of a run that is traced under `run_id`, with its tags and metadata.

        The run's children inherit tags, metadata and `callbacks`. LangSmith groups runs into threads by
        the metadata `session_id`.
        """
        request = structlog.contextvars.get_contextvars().get("request_id")
        answer = str(run_id) if mode else None  # OpenTelemetry gives its spans other ids
        metadata = {"answer_id": answer, "session_id": session, "request_id": request}
        # One tracer for each run, as LangChain does it: a tracer never forgets the streamed runs.
        tracers = [LangChainTracer(client=self._client)] if self._client else []
        return {
            "run_id": run_id,
            "callbacks": [*tracers, *callbacks],
            "tags": [*self._tags, f"mode:{mode}"] if mode else [*self._tags],
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }

    def close(self) -> None:
        """Send pending traces within a few seconds; the rest is lost."""
        if self._client:
            self._client.close(timeout=CLOSE_TIMEOUT_S)  # does not wait for the client's threads
        if self._spans:
            self._spans.close(CLOSE_TIMEOUT_S)


def open_tracing(settings: Settings, platform: str) -> Tracing:
    """Return tracing as the environment variables of LangSmith and OpenTelemetry configure it.

    Raises ConfigurationError for a collector without the extra `otel`.
    """
    langsmith, spans = bool(tracing_is_enabled()), _open_spans(settings)
    if not langsmith and not spans:
        return Tracing(platform, None, None)
    return Tracing(platform, _open_client(settings, langsmith, spans), spans)


class TraceLossWarning:
    """Logs the first loss of traces; later ones are not worth a line in the log."""

    def __init__(self, destination: str) -> None:
        self._destination = destination
        self._is_logged = False

    def __call__(self, error: Exception | None = None) -> None:
        """Report that traces were lost, because of `error` if it is known."""
        if not self._is_logged:
            self._is_logged = True
            cause = f" ({type(error).__name__})" if error else ""
            log.warning("traces are lost; answers are not affected: %s%s", self._destination, cause)


class BoundedSession(requests.Session):
    """A session whose requests time out after SEND_TIMEOUTS_S, and fail once it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request. Raises requests.ConnectionError if the session is closed."""
        if self._is_closed:
            raise requests.ConnectionError("the session is closed")
        return super().request(*args, **(kwargs | {"timeout": SEND_TIMEOUTS_S}))

    def close(self) -> None:
        """Refuse all further requests."""
        self._is_closed = True
        super().close()


def _open_client(settings: Settings, langsmith: bool, spans: "SpanExport | None") -> Client:
    """A client that sends runs to LangSmith, to the provider of `spans`, or to both.

    One client serves both: a second tracer would miss the runs that LangChain's agent starts itself.
    """
    content = settings.trace_content
    # By default the client keeps unfinished spans, with their texts, for an hour.
    span_ttl_s = int(settings.request_timeout) + SPAN_TTL_MARGIN_S
    with variable_if_unset(SPAN_TTL_VARIABLE, str(span_ttl_s)):
        return Client(
            session=BoundedSession(),
            retry_config=Retry(0),  # the client itself tries three times
            tracing_mode="hybrid" if langsmith and spans else "otel" if spans else "langsmith",
            otel_tracer_provider=spans.provider if spans else None,
            tracing_error_callback=TraceLossWarning(
                "LangSmith; see LANGSMITH_ENDPOINT and LANGSMITH_API_KEY"
            ),
            hide_inputs=None if content else True,
            anonymizer=None if content else redact_run,
            disable_prompt_cache=True,
        )


def _open_spans(settings: Settings) -> "SpanExport | None":
    if not settings.traces_endpoint:
        return None
    try:
        from app.telemetry.spans import SpanExport
    except ImportError:
        message = "OTEL_EXPORTER_OTLP_ENDPOINT needs a package: pip install 'apidesk[otel]'"
        raise ConfigurationError(message) from None
    on_loss = TraceLossWarning("the OpenTelemetry collector; see OTEL_EXPORTER_OTLP_ENDPOINT")
    return SpanExport(settings.traces_endpoint, on_loss)
