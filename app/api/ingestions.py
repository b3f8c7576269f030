"""POST /ingestions, GET /ingestions and GET /ingestions/{id}: start and inspect ingestion runs."""

from litestar import Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import JSONBody

from app.api.fields import PathId, parse_id
from app.api.openapi import DOCUMENTS_TAG
from app.service.ingestion_service import IngestionService
from schemas.base import ApiModel
from schemas.errors import IngestionRunning, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun

LOCATION = ResponseHeader(
    "Location",
    documentation_only=True,
    value="",
    description="The path of the run",
    required=True,
)


class IngestionRuns(ApiModel):
    """The latest runs, newest first."""

    ingestions: list[IngestionRun]


@post(
    "/ingestions",
    status_code=202,
    operation_id="ingest",
    summary="Start an ingestion",
    response_description="The run, which continues in the background",
    tags=[DOCUMENTS_TAG],
    response_headers=[LOCATION],
    needs="ingest",
    errors=(IngestionRunning, StoreUnavailable),
)
async def start_ingestion(
    data: JSONBody[IngestionOptions], ingestions: NamedDependency[IngestionService]
) -> Response[IngestionRun]:
    """Index the changed documents of the platform. 409 if another run is in progress."""
    run = await ingestions.start("request", data)
    return Response(run, status_code=202, headers={"Location": f"/ingestions/{run.id}"})


@get(
    "/ingestions",
    operation_id="ingestions",
    summary="List ingestion runs",
    response_description="The runs, newest first",
    tags=[DOCUMENTS_TAG],
    needs="ingest",
    errors=(StoreUnavailable,),
)
async def list_ingestions(ingestions: NamedDependency[IngestionService]) -> IngestionRuns:
    """Return the latest 50 runs with their reports, including those of other processes."""
    return IngestionRuns(ingestions=await ingestions.latest())


@get(
    "/ingestions/{run_id:str}",
    operation_id="ingestion",
    summary="Get an ingestion run",
    response_description="The current state of the run",
    tags=[DOCUMENTS_TAG],
    needs="ingest",
    errors=(StoreUnavailable,),
)
async def get_ingestion(
    run_id: PathId, ingestions: NamedDependency[IngestionService]
) -> IngestionRun:
    """Return the progress of a run, and its report once it has ended."""
    run = await ingestions.get(parse_id(run_id).hex)
    if run is None:
        raise NotFoundException
    return run
