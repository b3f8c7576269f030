"""GET /health/live and /health/ready
GET /metrics
"""

import asyncio
import time
from contextlib import suppress
from typing import Literal

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec

from app.api.openapi import OPERATING
from app.cli.setup.trial import probe
from app.service.answer_service import AnswerService
from app.telemetry.ingestion_metrics import ingestion_metrics
from runnables.models.chat_model import ChatModel
from schemas.base import ApiModel
from schemas.errors import ApideskError, ModelError

State = Literal["ok", "degraded", "failed"]

PROBE_EVERY = 30.0
"""Seconds after which a model that failed is tried again, when somebody asks whether it works."""


class Live(ApiModel):
    """The process answers."""

    status: State = "ok"


class Check(ApiModel):
    """One thing that answering needs."""

    status: State
    detail: str


class Ready(ApiModel):
    """Whether questions can be answered, and what each part says."""

    status: State
    checks: dict[str, Check]


NOT_READY = ResponseSpec(Ready, False, "Something that answering needs is not there")


@get(
    "/health/live",
    operation_id="live",
    summary="Is the process up?",
    response_description="It is",
    tags=[OPERATING],
    sync_to_thread=False,
    needs=None,
)
def live() -> Live:
    """Always 200 while the process runs."""
    return Live()


@get(
    "/health/ready",
    operation_id="ready",
    summary="Can questions be answered?",
    response_description="They can, if need be less well; `status` says so",
    tags=[OPERATING],
    responses={503: NOT_READY},
    needs=None,
)
async def ready(answer_service: NamedDependency[AnswerService]) -> Response[Ready]:
    """200 when everything that answering needs is there, else 503; each part is named."""
    checks = {
        "milvus": await _milvus(answer_service),
        "collection": await _collection(answer_service),
        "ingestion": await _ingestion(answer_service),
        **await _models(answer_service),
    }
    states = {check.status for check in checks.values()}
    status: State = "failed" if "failed" in states else "degraded" if "degraded" in states else "ok"
    return Response(
        Ready(status=status, checks=checks), status_code=503 if status == "failed" else 200
    )


async def _models(answer_service: AnswerService) -> dict[str, Check]:
    """A check a model. Without a word from any model the documents are quoted: degraded, not dead."""
    if answer_service.models is None:
        return {"model": Check(status="ok", detail=answer_service.settings.chat_model)}
    down: State = (
        "degraded" if answer_service.settings.on_model_failure == "extractive" else "failed"
    )
    models = answer_service.models.all
    problems = await asyncio.gather(*(_problem(model) for model in models))
    return {
        f"model:{model.role.prefix.lower()}": Check(status="ok", detail=model.name)
        if problem is None
        else Check(status=down, detail=problem)
        for model, problem in zip(models, problems, strict=True)
    }


async def _problem(model: ChatModel) -> str | None:
    """What is wrong with `model`: by its last call, or by a tiny one where that is unknown or old."""
    unknown = model.asked_at is None
    if unknown or (model.problem and time.monotonic() - (model.asked_at or 0) > PROBE_EVERY):
        with suppress(ModelError):
            await probe(model)
    return str(model.problem) if model.problem else None


async def _milvus(answer_service: AnswerService) -> Check:
    try:
        await asyncio.to_thread(answer_service.collection.exists)
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail="embedded" if answer_service.settings.embedded else "server")


async def _ingestion(answer_service: AnswerService) -> Check:
    """What the last run came to. Answers go on from what was indexed before: degraded, not dead."""
    try:
        last = next(iter(await asyncio.to_thread(answer_service.job.runs.latest, 1)), None)
    except ApideskError:
        return Check(status="degraded", detail="the database does not answer")
    if last is None:
        return Check(status="ok", detail="never run here")
    detail = f"{last.state} at {last.started_at:%Y-%m-%d %H:%M} UTC"
    if last.state == "failed":
        return Check(status="degraded", detail=f"{detail}: see GET /ingestions/{last.id}")
    return Check(status="ok", detail=detail)


async def _collection(answer_service: AnswerService) -> Check:
    try:
        await asyncio.to_thread(answer_service.collection.refresh)
        rows = answer_service.collection.contract.rows
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail=f"{answer_service.settings.collection}: {rows} chunks")


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
