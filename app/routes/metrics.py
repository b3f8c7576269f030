"""GET /metrics"""

import asyncio

from litestar import Response, get
from litestar.di import NamedDependency

from app.description.tags import OPERATING
from app.desk import Desk
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
async def metrics(desk: NamedDependency[Desk]) -> Response[bytes]:
    """All metrics, in Prometheus's text format; always 200 while the process runs."""
    desk.see_circuits()
    ingested = await ingestion_metrics(desk.job)
    body = await asyncio.to_thread(desk.metrics.exposition, ingested)
    return Response(body)
