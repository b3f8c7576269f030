"""GET /health/live, GET /health/ready and GET /metrics: the state of the service for operators."""

import asyncio
import time
from contextlib import suppress
from typing import Any, Literal

from litestar import Request, Response, get, head
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec

from app.api.openapi import OPERATING_TAG
from app.security.api_keys import Caller
from app.service.answer_service import AnswerService
from app.service.record_writer import RecordWriter
from app.telemetry.metrics import collect_ingestion_metrics
from ingestion.providers import ModelRole
from runnables.models.chat_model import ChatModel
from runnables.models.structured_output import probe_model
from schemas.base import ApiModel
from schemas.errors import ApideskError, ModelError

HealthState = Literal["ok", "degraded", "failed"]

PROBE_INTERVAL_S = 30.0
"""Minimum time between a failed call to a model and the next probe of this model, in seconds.

A probe is a small call with which a readiness check tests the model.
"""

CHECK_TIMEOUT_S = 2.0
"""Seconds that a readiness check waits for the database, or for the probe of a model."""

PROMETHEUS_TEXT = "text/plain; version=0.0.4"


class Live(ApiModel):
    """The response of a running process."""

    status: HealthState = "ok"


class Check(ApiModel):
    """The state of one dependency."""

    status: HealthState
    detail: str | None = None
    """Names, counts and the last error; null if the caller lacks the scope `admin`."""


class Ready(ApiModel):
    """The overall state and the state of each dependency."""

    status: HealthState
    checks: dict[str, Check]


NOT_READY_RESPONSE = ResponseSpec(Ready, False, "A required dependency has failed")


@get(
    "/health/live",
    operation_id="live",
    summary="Check liveness",
    response_description="The process is running",
    tags=[OPERATING_TAG],
    sync_to_thread=False,
    needs=None,
)
def live() -> Live:
    """Return 200 as long as the process runs."""
    return Live()


@head("/health/live", include_in_schema=False, sync_to_thread=False, needs=None)
def live_head() -> Response[None]:
    """Return the headers of `GET /health/live`."""
    return Response(None)


@get(
    "/health/ready",
    operation_id="ready",
    summary="Check readiness",
    response_description="Questions can be answered; `status` is `degraded` if quality is reduced",
    tags=[OPERATING_TAG],
    responses={503: NOT_READY_RESPONSE},
    needs=None,
)
async def ready(
    request: Request[Any, Any, Any],
    answer_service: NamedDependency[AnswerService],
    record_writer: NamedDependency[RecordWriter],
) -> Response[Ready]:
    """Return the state of each dependency, with HTTP status 503 if a required one has failed.

    With an API key of the scope `admin`, or if no key is configured, the details are included.
    """
    report = await _check_all(answer_service, record_writer)
    caller: Caller | None = request.scope.get("user")
    if caller is None or not caller.has_scope("admin"):
        states = {name: Check(status=check.status) for name, check in report.checks.items()}
        report = Ready(status=report.status, checks=states)
    return Response(report, status_code=_status_code(report))


def _status_code(report: Ready) -> int:
    return 503 if report.status == "failed" else 200


async def _check_all(answer_service: AnswerService, record_writer: RecordWriter) -> Ready:
    milvus, collection, ingestion, models = await asyncio.gather(
        _check_milvus(answer_service),
        _check_collection(answer_service),
        _check_ingestion(answer_service),
        _check_models(answer_service),
    )
    checks = {
        "milvus": milvus,
        "collection": collection,
        "ingestion": ingestion,
        **_check_records(record_writer),
        **models,
        **_check_embeddings(answer_service),
    }
    states = {check.status for check in checks.values()}
    worst_first: tuple[HealthState, ...] = ("failed", "degraded", "ok")
    status = next(state for state in worst_first if state in states)
    return Ready(status=status, checks=checks)


@head("/health/ready", include_in_schema=False, needs=None)
async def ready_head(
    answer_service: NamedDependency[AnswerService], record_writer: NamedDependency[RecordWriter]
) -> Response[None]:
    """Return the status of `GET /health/ready`."""
    report = await _check_all(answer_service, record_writer)
    return Response(None, status_code=_status_code(report))


async def _check_models(answer_service: AnswerService) -> dict[str, Check]:
    """Check the chat models.

    A model that does not work is `degraded` if questions can still be answered, and `failed` if not.
    Questions can be answered if APIDESK_ON_MODEL_FAILURE is `extractive`, or if at least one model in
    `ChatModels.answer_models` and at least one in `ChatModels.extraction_models` works.
    """
    models = answer_service.models
    if models is None:
        return {"model": Check(status="ok", detail=answer_service.settings.chat_model)}
    problems = await asyncio.gather(
        *(_model_problem(model, answer_service.model_probes) for model in models.all)
    )
    working = {m.role for m, problem in zip(models.all, problems, strict=True) if problem is None}
    can_answer = answer_service.settings.on_model_failure == "extractive" or all(
        any(model.role in working for model in group)
        for group in (models.answer_models, models.extraction_models)
    )
    failed_state: HealthState = "degraded" if can_answer else "failed"
    return {
        f"model:{model.role.purpose.lower()}": Check(status="ok", detail=model.name)
        if problem is None
        else Check(status=failed_state, detail=problem)
        for model, problem in zip(models.all, problems, strict=True)
    }


async def _model_problem(
    model: ChatModel, probes: dict[ModelRole, "asyncio.Task[None]"]
) -> str | None:
    """Return the error of the model's last call, or None if that call succeeded.

    The model is probed first if it has not been called, or if the error is older than PROBE_INTERVAL_S. If
    the probe takes longer than CHECK_TIMEOUT_S, it continues, and later checks use its result. If no call
    has ended yet and the probe is still running, a message that says so is returned.
    """
    last = model.last_called_at
    probe = probes.get(model.role)
    needs_probe = last is None or (model.last_error and time.monotonic() - last > PROBE_INTERVAL_S)
    if needs_probe and (probe is None or probe.done()):
        probe = probes[model.role] = asyncio.create_task(_probe(model))
    if probe is not None:
        await asyncio.wait({probe}, timeout=CHECK_TIMEOUT_S)
        if not probe.done() and not model.last_error and not model.has_replied:
            return f"{model.role.setting}: the model has not replied to the first call yet"
    return str(model.last_error) if model.last_error else None


async def _probe(model: ChatModel) -> None:
    with suppress(ModelError):
        await probe_model(model)


def _check_embeddings(answer_service: AnswerService) -> dict[str, Check]:
    """Check the last call of the embedding model.

    A failure is not fatal, because retrieval then uses full-text search only.
    """
    embeddings = answer_service.query_embeddings
    if embeddings is None:
        return {}
    if embeddings.last_error is not None:
        check = Check(status="degraded", detail=str(embeddings.last_error))
    else:
        check = Check(status="ok", detail=embeddings.role.model)
    return {"model:embedding": check}


async def _check_milvus(answer_service: AnswerService) -> Check:
    try:
        await asyncio.to_thread(answer_service.collection.exists)
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail="embedded" if answer_service.settings.embedded else "server")


async def _check_ingestion(answer_service: AnswerService) -> Check:
    """Check the last run that has ended and was not a dry run.

    A failed run is not fatal, because the previous index is still used.
    """
    try:
        runs = await answer_service.job.runs.latest_within(CHECK_TIMEOUT_S)
    except ApideskError:
        detail = "the database does not answer: sessions, feedback and reports are unavailable"
        return Check(status="degraded", detail=detail)
    ended_runs = (run for run in runs if run.state != "running" and not run.options.dry_run)
    last = next(ended_runs, None)
    if last is None:
        return Check(status="ok", detail="no ingestion has finished yet")
    detail = f"{last.state}, started at {last.started_at:%Y-%m-%d %H:%M} UTC"
    if last.state == "failed":
        return Check(status="degraded", detail=f"{detail}: see GET /ingestions/{last.id}")
    if last.unread:
        unread = ", ".join(last.unread)
        detail = f"{detail}, nothing could be read from {unread}: see GET /ingestions/{last.id}"
        return Check(status="degraded", detail=detail)
    return Check(status="ok", detail=detail)


def _check_records(record_writer: RecordWriter) -> dict[str, Check]:
    """Return a check only if question records are lost, or cannot be delivered to the database.

    Such a problem is not fatal, because answers do not depend on records.
    """
    problem = record_writer.problem
    return {"records": Check(status="degraded", detail=problem)} if problem else {}


async def _check_collection(answer_service: AnswerService) -> Check:
    try:
        await asyncio.to_thread(answer_service.collection.refresh)
        rows = answer_service.collection.manifest.rows
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail=f"{answer_service.collection.alias}: {rows} chunks")


@get(
    "/metrics",
    operation_id="metrics",
    summary="Get Prometheus metrics",
    response_description="The metrics in text format",
    tags=[OPERATING_TAG],
    media_type=PROMETHEUS_TEXT,
    needs="admin",
    limited=False,
)
async def metrics(answer_service: NamedDependency[AnswerService]) -> Response[bytes]:
    """Return all metrics in the Prometheus text format."""
    answer_service.update_circuit_gauge()
    ingestion_metrics = await collect_ingestion_metrics(answer_service.job)
    body = await asyncio.to_thread(answer_service.metrics.exposition, ingestion_metrics)
    return Response(body)


@head(
    "/metrics",
    include_in_schema=False,  # the OpenAPI document describes GET only
    sync_to_thread=False,
    media_type=PROMETHEUS_TEXT,
    needs="admin",
    limited=False,
)
def metrics_head() -> Response[None]:
    """Return the headers of `GET /metrics`."""
    return Response(None)
