"""GET /health/live and /health/ready"""

import asyncio
import time
from contextlib import suppress
from typing import Literal

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec

from app.description.tags import OPERATING
from app.desk import Desk
from app.model_check import probe
from runnables.models.chat_model import ChatModel
from schemas.errors import ApideskError, ModelError
from schemas.wire import WireModel

State = Literal["ok", "degraded", "failed"]

PROBE_EVERY = 30.0
"""Seconds after which a model that failed is tried again, when somebody asks whether it works."""


class Live(WireModel):
    """The process answers."""

    status: State = "ok"


class Check(WireModel):
    """One thing that answering needs."""

    status: State
    detail: str


class Ready(WireModel):
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
async def ready(desk: NamedDependency[Desk]) -> Response[Ready]:
    """200 when everything that answering needs is there, else 503; each part is named."""
    checks = {
        "milvus": await _milvus(desk),
        "collection": await _collection(desk),
        "ingestion": await _ingestion(desk),
        **await _models(desk),
    }
    states = {check.status for check in checks.values()}
    status: State = "failed" if "failed" in states else "degraded" if "degraded" in states else "ok"
    return Response(
        Ready(status=status, checks=checks), status_code=503 if status == "failed" else 200
    )


async def _models(desk: Desk) -> dict[str, Check]:
    """A check a model. Without a word from any model the documents are quoted: degraded, not dead."""
    if desk.models is None:
        return {"model": Check(status="ok", detail=desk.settings.chat_model)}
    down: State = "degraded" if desk.settings.on_model_failure == "extractive" else "failed"
    models = desk.models.all
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


async def _milvus(desk: Desk) -> Check:
    try:
        await asyncio.to_thread(desk.collection.exists)
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail="embedded" if desk.settings.embedded else "server")


async def _ingestion(desk: Desk) -> Check:
    """What the last run came to. Answers go on from what was indexed before: degraded, not dead."""
    try:
        last = next(iter(await asyncio.to_thread(desk.job.runs.latest, 1)), None)
    except ApideskError:
        return Check(status="degraded", detail="the database does not answer")
    if last is None:
        return Check(status="ok", detail="never run here")
    detail = f"{last.state} at {last.started_at:%Y-%m-%d %H:%M} UTC"
    if last.state == "failed":
        return Check(status="degraded", detail=f"{detail}: see GET /ingestions/{last.id}")
    return Check(status="ok", detail=detail)


async def _collection(desk: Desk) -> Check:
    try:
        await asyncio.to_thread(desk.collection.refresh)
        rows = desk.collection.contract.rows
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail=f"{desk.settings.collection}: {rows} chunks")
