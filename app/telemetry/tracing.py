"""Sends one trace per question to LangSmith, to an OpenTelemetry collector, or to both.

Ratings are sent to LangSmith, as feedback on the traces. Sending does not delay answers. Secrets are masked
in traces; with APIDESK_TRACE_CONTENT=false, all texts are removed.
"""

import logging
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

import requests
import structlog
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers import LangChainTracer
from langchain_core.tracers.schemas import Run
from langsmith import Client
from langsmith.utils import get_tracer_project, tracing_is_enabled
from urllib3 import Retry

from app.masking.masking import mask
from app.telemetry.trace_content import ANSWER_METADATA, SecretMask, redact_run
from schemas.answer import Answer
from schemas.errors import ConfigurationError
from schemas.insights import Feedback
from schemas.question import AnswerMode
from schemas.settings import Settings, variable_if_unset

if TYPE_CHECKING:
    from app.telemetry.spans import SpanExport

SEND_TIMEOUTS_S = (3.0, 5.0)
"""Seconds to wait for a connection, and seconds to wait between two bytes of a reply."""

CLOSE_TIMEOUT_S = 3.0
"""Seconds to wait for the pending traces of each destination when tracing is closed."""

SPAN_TTL_VARIABLE = "LANGSMITH_OTEL_SPAN_TTL_SECONDS"
"""LangSmith's environment variable that sets how long its client keeps the spans of an unfinished run."""

SPAN_TTL_MARGIN_S = 60
"""Seconds, in addition to APIDESK_REQUEST_TIMEOUT, that the spans of an unfinished run are kept."""

FEEDBACK_KEY = "user_rating"
"""Name of the feedback in LangSmith. Its score there is 1 for a helpful answer, 0 for an unhelpful one."""

log = logging.getLogger(__name__)


class AnswerTracer(LangChainTracer):
    """Adds the ANSWER_METADATA of an answer to its trace, so that LangSmith can filter traces by them.

    It also masks errors, because LangSmith's client has no option that changes only the errors.
    """

    def _on_chain_end(self, run: Run) -> None:
        answer = (run.outputs or {}).get("output")
        if run.parent_run_id is None and isinstance(answer, Answer):
            fields = answer.model_dump(mode="json", by_alias=True, include=set(ANSWER_METADATA))
            run.metadata.update({key: value for key, value in fields.items() if value is not None})
        super()._on_chain_end(run)

    @staticmethod
    def _update_run_single(run: Run) -> None:
        if run.error:  # the message of a provider may quote a question
            run.error = mask(run.error)
        LangChainTracer._update_run_single(run)


class FeedbackSender:
    """Sends ratings to LangSmith. A second rating of an answer replaces the first one."""

    def __init__(self, client: Client, with_comments: bool) -> None:
        self._client = client
        self._with_comments = with_comments

    def send(self, answer_id: UUID, feedback: Feedback) -> None:
        """Send a rating; LangSmith receives the score -1 as 0.

        If `feedback.score` is 0, delete the earlier rating instead. This method blocks. A failure is only
        logged.
        """
        feedback_id = uuid5(answer_id, FEEDBACK_KEY)
        comment = feedback.comment if self._with_comments else ""
        try:
            if feedback.score == 0:
                self._client.delete_feedback(feedback_id)
                return
            self._client.create_feedback(
                trace_id=answer_id,
                key=FEEDBACK_KEY,
                score=max(feedback.score, 0),
                comment=comment or None,
                feedback_id=feedback_id,
                session_id=self._project_id,
            )
        except Exception as error:  # apidesk has already stored the rating
            log.warning("a rating was not sent to LangSmith: %s", type(error).__name__)

    @cached_property
    def _project_id(self) -> UUID:
        project_id: UUID = self._client.read_project(project_name=get_tracer_project()).id
        return project_id


class Tracing:
    """Creates the run configs of one answer service. Without a client, nothing is traced."""

    def __init__(
        self,
        platform: str,
        client: Client | None,
        spans: "SpanExport | None",
        feedback_sender: FeedbackSender | None = None,
    ) -> None:
        self._client = client
        self._spans = spans
        self._feedback_sender = feedback_sender
        self._tags = [f"platform:{platform}", f"version:{version('apidesk')}"]

    def config(
        self,
        run_id: UUID,
        mode: AnswerMode | None = None,
        session: str | None = None,
        *callbacks: BaseCallbackHandler,
    ) -> RunnableConfig:
        """Return the config of a run that is traced under `run_id`, with its tags and metadata.

        `mode` is None for a run that only retrieves. Child runs inherit the tags, the metadata and
        `callbacks`. LangSmith groups runs into threads by the metadata `session_id`.
        """
        request = structlog.contextvars.get_contextvars().get("request_id")
        # `answer_id` is for OpenTelemetry, where the ids of spans differ from those of runs.
        answer = str(run_id) if mode else None
        metadata = {"answer_id": answer, "session_id": session, "request_id": request}
        # Each run has its own tracer, as in LangChain, because a tracer keeps streamed runs in memory.
        tracers = [AnswerTracer(client=self._client)] if self._client else []
        return {
            "run_id": run_id,
            "callbacks": [*tracers, *callbacks],
            "tags": [*self._tags, f"mode:{mode}"] if mode else [*self._tags],
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }

    def send_feedback(self, answer_id: UUID, feedback: Feedback) -> None:
        """Send a rating to LangSmith; without LangSmith, do nothing.

        This method blocks, and never raises.
        """
        if self._feedback_sender:
            self._feedback_sender.send(answer_id, feedback)

    def flush(self) -> None:
        """Wait until the client has processed the pending traces. This method blocks.

        It does not wait until spans reach the OpenTelemetry collector.
        """
        if self._client:
            self._client.flush()

    def close(self) -> None:
        """Send pending traces. This method blocks.

        Traces that a destination does not accept within CLOSE_TIMEOUT_S are lost.
        """
        if self._client:
            # Waits for pending traces, but not for the client's threads to end.
            self._client.close(timeout=CLOSE_TIMEOUT_S)
        if self._spans:
            self._spans.close(CLOSE_TIMEOUT_S)


def open_tracing(settings: Settings, platform: str) -> Tracing:
    """Return the tracing that the environment variables of LangSmith and OpenTelemetry configure.

    Raises ConfigurationError if a collector is configured and the extra `otel` is not installed.
    """
    langsmith, spans = bool(tracing_is_enabled()), _open_spans(settings)
    if not langsmith and not spans:
        return Tracing(platform, None, None)
    client = _open_client(settings, langsmith, spans)
    sender = FeedbackSender(client, settings.trace_content) if langsmith else None
    return Tracing(platform, client, spans, sender)


class TraceLossWarning:
    """Logs the first loss of traces, but not the following ones."""

    def __init__(self, destination: str, variables: str) -> None:
        """Create the callback. `variables` names the environment variables that configure `destination`."""
        self._destination = destination
        self._variables = variables
        self._is_logged = False

    def __call__(self, error: Exception | None = None) -> None:
        """Report that traces were lost, because of `error` if it is known."""
        if not self._is_logged:
            self._is_logged = True
            cause = f" ({type(error).__name__})" if error else ""
            log.warning(
                "traces could not be sent to %s%s and are lost; answers are not affected. Check %s",
                self._destination,
                cause,
                self._variables,
            )


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

    There is only one client, because a second client would need a second tracer. That tracer would not
    receive the runs that LangChain's agent starts itself.
    """
    content, secret_mask = settings.trace_content, SecretMask()
    # By default the client keeps unfinished spans, with their texts, for an hour.
    span_ttl_s = int(settings.request_timeout) + SPAN_TTL_MARGIN_S
    with variable_if_unset(SPAN_TTL_VARIABLE, str(span_ttl_s)):
        return Client(
            session=BoundedSession(),
            retry_config=Retry(0),  # the client itself tries three times
            tracing_mode="hybrid" if langsmith and spans else "otel" if spans else "langsmith",
            otel_tracer_provider=spans.provider if spans else None,
            tracing_error_callback=TraceLossWarning(
                "LangSmith", "LANGSMITH_ENDPOINT and LANGSMITH_API_KEY"
            ),
            hide_inputs=secret_mask if content else True,
            hide_outputs=secret_mask,
            anonymizer=None if content else redact_run,
            disable_prompt_cache=True,  # apidesk loads no prompts from LangSmith
        )


def _open_spans(settings: Settings) -> "SpanExport | None":
    if not settings.traces_endpoint:
        return None
    try:
        from app.telemetry.spans import SpanExport
    except ImportError:
        message = "OTEL_EXPORTER_OTLP_ENDPOINT needs a package: pip install 'apidesk[otel]'"
        raise ConfigurationError(message) from None
    on_loss = TraceLossWarning("the OpenTelemetry collector", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return SpanExport(settings.traces_endpoint, on_loss)
