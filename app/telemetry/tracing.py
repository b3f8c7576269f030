"""Traces that cannot be sent are lost, within bounds: nobody waits for them for long.
What is left of a run where texts are not to leave: APIDESK_TRACE_CONTENT=false.
LangSmith's client, so bounded that a server which is down, slow or refuses harms nobody but traces.
Each question as one trace: in LangSmith, at an OpenTelemetry collector, in both, or in neither.
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
from schemas.settings import Settings

if TYPE_CHECKING:
    from app.telemetry.spans import SpanExport

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


KEPT = ("session_id", "request_id", "answer_id", "rung", "revision_id", "langgraph_node")
"""Metadata that are names or ids; LangSmith's own begin with `ls_` and name the model."""

_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def redact_run(shown: dict[str, Any]) -> dict[str, Any]:
    """Of a run's outputs, metadata or error: token usage, ids and scores of documents, the error's name.

    LangSmith's client calls it for each of the three, an error being `{"error": text}`.
    """
    kept = {key: value for key, value in shown.items() if key in KEPT or key.startswith("ls_")}
    if usage := _usage(shown):
        kept["usage_metadata"] = usage
    if isinstance(documents := shown.get("documents"), list):
        kept["documents"] = [_document(each) for each in documents if isinstance(each, dict)]
    if "error" in shown:
        name = _NAME.match(str(shown["error"]))
        kept["error"] = name[0] if name else "error"
    return kept


def _usage(shown: dict[str, Any]) -> Any:
    """The token usage of a model's run: it stands in its metadata, and deep in its outputs."""
    try:
        return shown["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return shown.get("usage_metadata")


def _document(document: dict[str, Any]) -> dict[str, Any]:
    """As LangSmith shows documents, without what they say."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}


SEND_SECONDS = (3.0, 5.0)
"""To connect, and between two bytes of a reply."""


class BoundedSession(requests.Session):
    """No request takes longer than SEND_SECONDS, and none begins once it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._closed = False

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As `requests` does, in time. Raises requests.ConnectionError when closed."""
        if self._closed:
            raise requests.ConnectionError("the session is closed")
        return super().request(*args, **(kwargs | {"timeout": SEND_SECONDS}))

    def close(self) -> None:
        """Refuse all further requests."""
        self._closed = True
        super().close()


def open_client(langsmith: bool, spans: "SpanExport | None", content: bool) -> Client:
    """A client that sends runs to the LangSmith which its own variables name, makes spans of them, or
    both; without `content` they hold no texts.

    One client for both: a second tracer would miss the runs that LangChain's agent makes by itself.
    """
    client = Client(
        session=BoundedSession(),
        retry_config=Retry(0),  # the client tries three times by itself
        tracing_mode="hybrid" if langsmith and spans else "otel" if spans else "langsmith",
        otel_tracer_provider=spans.provider if spans else None,
        tracing_error_callback=TraceLossWarning(
            "LangSmith; see LANGSMITH_ENDPOINT and LANGSMITH_API_KEY"
        ),
        hide_inputs=None if content else True,
        anonymizer=None if content else redact_run,
        disable_prompt_cache=True,
    )
    if spans:
        client.otel_exporter = spans.exporter
    return client


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
