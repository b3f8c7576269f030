"""GET /health/live and /health/ready"""

import asyncio
from typing import Literal

from litestar import Response, get
from litestar.di import NamedDependency

from app.desk import Desk
from schemas.errors import ApideskError
from schemas.wire import WireModel

State = Literal["ok", "failed"]


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


@get("/health/live", operation_id="live", summary="Is the process up?", sync_to_thread=False)
def live() -> Live:
    """Always 200 while the process runs."""
    return Live()


@get("/health/ready", operation_id="ready", summary="Can questions be answered?")
async def ready(desk: NamedDependency[Desk]) -> Response[Ready]:
    """200 when everything that answering needs is there, else 503; each part is named."""
    checks = {
        "milvus": await _milvus(desk),
        "collection": _collection(desk),
        "model": Check(status="ok", detail=desk.settings.chat_model),
    }
    failed = any(check.status == "failed" for check in checks.values())
    return Response(
        Ready(status="failed" if failed else "ok", checks=checks),
        status_code=503 if failed else 200,
    )


async def _milvus(desk: Desk) -> Check:
    try:
        await asyncio.to_thread(desk.collection.exists)
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail="embedded" if desk.settings.embedded else "server")


def _collection(desk: Desk) -> Check:
    try:
        rows = desk.collection.contract.rows
    except ApideskError as error:
        return Check(status="failed", detail=str(error))
    return Check(status="ok", detail=f"{desk.settings.collection}: {rows} chunks")
