"""LangSmith's client, so bounded that a server which is down, slow or refuses harms nobody but traces."""

from typing import TYPE_CHECKING, Any

import requests
from langsmith import Client
from urllib3 import Retry

from app.telemetry.textless import redact_run
from app.telemetry.trace_loss import TraceLossWarning

if TYPE_CHECKING:  # comes with the extra `otel`
    from app.telemetry.spans import SpanExport

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
