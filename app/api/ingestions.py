"""POST /ingestions, GET /ingestions and GET /ingestions/{id}"""

from litestar import Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import JSONBody

from app.api.fields import PathId, id_of
from app.api.openapi import DOCUMENTS
from app.service.ingestion_service import IngestionService
from schemas.base import ApiModel
from schemas.errors import IngestionRunning, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun

LOCATION = ResponseHeader(
    "Location",
    documentation_only=True,
    value="",
    description="Where the run is told",
    required=True,
)


class IngestionRuns(ApiModel):
    """The last runs, latest first."""

    ingestions: list[IngestionRun]


@post(
    "/ingestions",
    status_code=202,
    operation_id="ingest",
    summary="Begin an ingestion",
    response_description="The run, which goes on",
    tags=[DOCUMENTS],
    response_headers=[LOCATION],
    needs="ingest",
    errors=(IngestionRunning, StoreUnavailable),
)
async def begin_ingestion(
    data: JSONBody[IngestionOptions], ingestions: NamedDependency[IngestionService]
) -> Response[IngestionRun]:
    """Index what changed in the platform's documents. 409 while another run goes on."""
    run = await ingestions.begin("request", data)
    return Response(run, status_code=202, headers={"Location": f"/ingestions/{run.id}"})


@get(
    "/ingestions",
    operation_id="ingestions",
    summary="The last ingestions",
    response_description="The runs, latest first",
    tags=[DOCUMENTS],
    needs="ingest",
    errors=(StoreUnavailable,),
)
async def list_ingestions(ingestions: NamedDependency[IngestionService]) -> IngestionRuns:
    """The last 50 runs with their reports, also those of other processes and earlier starts."""
    return IngestionRuns(ingestions=await ingestions.latest())


@get(
    "/ingestions/{run_id:str}",
    operation_id="ingestion",
    summary="One ingestion",
    response_description="The run, as it is now",
    tags=[DOCUMENTS],
    needs="ingest",
    errors=(StoreUnavailable,),
)
async def get_ingestion(
    run_id: PathId, ingestions: NamedDependency[IngestionService]
) -> IngestionRun:
    """A run's progress, and its report when it has ended."""
    run = await ingestions.get(id_of(run_id).hex)
    if run is None:
        raise NotFoundException
    return run
