"""GET /metrics"""

import asyncio

from litestar import Response, get
from litestar.di import NamedDependency

from app.answer_service import AnswerService
from app.description.tags import OPERATING
from app.telemetry.ingestion_metrics import ingestion_metrics

PROMETHEUS_TEXT = "text/plain; version=0.0.4"


@get(
    "/metrics",
    operation_id="metrics",
    summary="What Prometheus scrapes",
    response_description="The metrics, as text",
    tags=[OPERATING],
    media_type=PROMETHEUS_TEXT,
    needs="admin",
    limited=False,
)
async def metrics(answer_service: NamedDependency[AnswerService]) -> Response[bytes]:
    """All metrics, in Prometheus's text format; always 200 while the process runs."""
    answer_service.update_circuit_gauge()
    ingested = await ingestion_metrics(answer_service.job)
    body = await asyncio.to_thread(answer_service.metrics.exposition, ingested)
    return Response(body)
