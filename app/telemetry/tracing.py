"""Sends one trace per question to LangSmith, to an OpenTelemetry collector, or to both.

Sending does not delay answers. With APIDESK_TRACE_CONTENT=false, texts are removed from traces.
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
"""Metadata that are kept in redacted traces because they are names or ids.

LangSmith's own metadata, which name the model, begin with `ls_` and are kept too.
"""

SEND_TIMEOUTS_S = (3.0, 5.0)
"""Seconds to wait for a connection, and seconds to wait between two bytes of a reply."""

CLOSE_TIMEOUT_S = 3.0
"""Seconds to wait for pending traces when tracing is closed."""

SPAN_TTL_VARIABLE = "LANGSMITH_OTEL_SPAN_TTL_SECONDS"
"""LangSmith's environment variable for how long its client keeps the spans of a run in progress."""

SPAN_TTL_MARGIN_S = 60
"""Seconds for which the spans of a question are kept in addition to APIDESK_REQUEST_TIMEOUT."""

log = logging.getLogger(__name__)

_ERROR_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def redact_run(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run without texts.

    The token usage, the ids and scores of documents, the type of an error, and some metadata remain.
    LangSmith's client calls this function for the outputs of a run, for its metadata, and for its error,
    which it passes as `{"error": text}`.
    """
    redacted = {
        key: value for key, value in fields.items() if key in KEPT_METADATA or key.startswith("ls_")
    }
    if usage := _usage_metadata(fields):
        redacted["usage_metadata"] = usage
    if isinstance(documents := fields.get("documents"), list):
        redacted["documents"] = [
            _redact_document(document) for document in documents if isinstance(document, dict)
        ]
    if "error" in fields:
        name = _ERROR_NAME.match(str(fields["error"]))
        redacted["error"] = name[0] if name else "error"
    return redacted


def _usage_metadata(fields: dict[str, Any]) -> Any:
    """Return the token usage of a model's run, from its outputs or from its metadata, or None."""
    try:
        return fields["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return fields.get("usage_metadata")


def _redact_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the structure in which LangSmith displays documents, without their text."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}


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
        # Each run has its own tracer, as in LangChain, because a tracer never removes streamed runs.
        tracers = [LangChainTracer(client=self._client)] if self._client else []
        return {
            "run_id": run_id,
            "callbacks": [*tracers, *callbacks],
            "tags": [*self._tags, f"mode:{mode}"] if mode else [*self._tags],
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }

    def close(self) -> None:
        """Send pending traces. Traces that are not sent within CLOSE_TIMEOUT_S are lost."""
        if self._client:
            self._client.close(timeout=CLOSE_TIMEOUT_S)  # does not wait for the client's threads
        if self._spans:
            self._spans.close(CLOSE_TIMEOUT_S)


def open_tracing(settings: Settings, platform: str) -> Tracing:
    """Return the tracing that the environment variables of LangSmith and OpenTelemetry configure.

    Raises ConfigurationError if a collector is configured and the extra `otel` is not installed.
    """
    langsmith, spans = bool(tracing_is_enabled()), _open_spans(settings)
    if not langsmith and not spans:
        return Tracing(platform, None, None)
    return Tracing(platform, _open_client(settings, langsmith, spans), spans)


class TraceLossWarning:
    """Logs the first loss of traces, but not the following ones."""

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
    """Return a client that sends runs to LangSmith, to the provider of `spans`, or to both.

    The same client sends to both, because a second tracer would not receive the runs that LangChain's
    agent starts itself.
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
