"""Runs as spans for an OpenTelemetry collector, over OTLP/HTTP; needs the extra `otel`.

LangSmith's client makes the spans; the tracer provider is our own, and nobody else's.
"""

import threading
from collections.abc import Callable, Sequence

from langsmith._internal.otel._otel_exporter import OTELExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from app.telemetry.tracing import CLOSE_SECONDS, TraceLossWarning

SPARE_SECONDS = 60
"""How long after a question's own time its spans may still want their parent."""


class SpanExport:
    """Takes runs and sends them to `endpoint`; a question takes `seconds` at most."""

    def __init__(self, endpoint: str, seconds: float) -> None:
        # Its own name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES give another.
        ours = Resource.create({"service.name": "apidesk"}).merge(OTELResourceDetector().detect())
        self.provider = TracerProvider(resource=ours, shutdown_on_exit=False)
        # By default it remembers each span, with its texts, for an hour.
        remembered = int(seconds) + SPARE_SECONDS
        self.exporter = OTELExporter(self.provider, remembered)  # type: ignore[no-untyped-call]
        lost = TraceLossWarning("the OpenTelemetry collector; see OTEL_EXPORTER_OTLP_ENDPOINT")
        self._sender = WatchedExporter(endpoint, lost)
        self.provider.add_span_processor(BatchSpanProcessor(self._sender))

    def close(self) -> None:
        """Send what waits, within CLOSE_SECONDS: the provider by itself would take half a minute."""
        closing = threading.Thread(target=self.provider.shutdown, name="trace-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if closing.is_alive():
            self._sender.shutdown()  # type: ignore[no-untyped-call]  # it tries no more
            closing.join(1)


class WatchedExporter(OTLPSpanExporter):
    """Tells `lost` of spans that did not arrive."""

    def __init__(self, endpoint: str, lost: Callable[[], None]) -> None:
        super().__init__(endpoint)
        self._lost = lost

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As its base."""
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._lost()
        return result
