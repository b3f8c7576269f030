"""Sends LangSmith's runs as OpenTelemetry spans, over OTLP/HTTP. Requires the extra `otel`.

LangSmith's client converts runs to spans. The tracer provider is private, so the global tracer provider of
the process does not change.
"""

import threading
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Status, StatusCode


class SpanExport:
    """Owns a `provider` that sends spans to `endpoint`; `on_loss` is called if spans are lost."""

    def __init__(self, endpoint: str, on_loss: Callable[[], None]) -> None:
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over the default name.
        default = Resource.create({"service.name": "apidesk"})
        resource = default.merge(OTELResourceDetector().detect())
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._exporter = LossReportingExporter(endpoint, on_loss)
        self.provider.add_span_processor(ErrorStatusProcessor(self._exporter))

    def close(self, timeout_s: float) -> None:
        """Send pending spans for at most `timeout_s` seconds, then stop within another second.

        Without this limit, the provider would try for 30 seconds.
        """
        closing = threading.Thread(target=self.provider.shutdown, name="trace-close", daemon=True)
        closing.start()
        closing.join(timeout_s)
        if closing.is_alive():
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # stops its retries
            closing.join(1)


class ErrorStatusProcessor(BatchSpanProcessor):
    """A processor that gives failed runs the status ERROR.

    LangSmith's client sets OK when a run starts, and OpenTelemetry does not let later calls replace OK.
    """

    def on_end(self, span: ReadableSpan) -> None:
        """Correct the status, and queue the span."""
        if any(event.name == "exception" for event in span.events):
            span._status = Status(StatusCode.ERROR)
        super().on_end(span)


class LossReportingExporter(OTLPSpanExporter):
    """An exporter that calls `on_loss` after a failed export."""

    def __init__(self, endpoint: str, on_loss: Callable[[], None]) -> None:
        super().__init__(endpoint)
        self._on_loss = on_loss

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export the spans, and call `on_loss` if this fails."""
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._on_loss()
        return result
