"""Routes that start and list ingestion runs, and report on recorded questions.

The admin page calls these routes.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from litestar import Request, Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, Operation, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import FromQuery, JSONBody, QueryParameter
from pydantic import ConfigDict

from app.analytics.insights.report import InsightsReports, to_csv
from app.api.fields import PathId, not_found, parse_id, prefers
from app.api.openapi import DOCUMENTS_TAG, OPERATING_TAG, success_response
from app.service.ingestion_service import IngestionService
from schemas.base import ApiModel
from schemas.choices import TableName
from schemas.errors import IngestionRunning, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.insights import Insights

LOCATION = ResponseHeader(
    "Location",
    documentation_only=True,
    value="",
    description="The path of the run",
    required=True,
)

MAX_DAYS = 36_500
"""Maximum number of days in a report."""

CSV = "text/csv"

REPORT_RESPONSE = ResponseSpec(
    Insights,
    generate_examples=False,
    description="The report as JSON; if `table` is given, the other tables are omitted. "
    "With `format=csv` or `Accept: text/csv`, one table as CSV",
)


class IngestionRequest(IngestionOptions):
    """The body of `POST /ingestions`: the options of the run."""

    # Accept only the names in the OpenAPI schema: `dryRun`, not `dry_run`.
    model_config = ConfigDict(populate_by_name=False)


class IngestionRuns(ApiModel):
    """The latest runs, at most 50, newest first."""

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
    data: JSONBody[IngestionRequest], ingestions: NamedDependency[IngestionService]
) -> Response[IngestionRun]:
    """Update the index: add new documents, replace changed ones and remove deleted ones.

    Returns 409 if another run is in progress.
    """
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
    """Return the latest runs of all processes, at most 50, with their reports."""
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
    run = await ingestions.get(parse_id(run_id, "ingestion run").hex)
    if run is None:
        raise not_found("ingestion run")
    return run


@dataclass
class InsightsOperation(Operation):
    """The OpenAPI operation of `GET /insights`, with the CSV response.

    Litestar cannot derive this response from the handler.
    """

    def __post_init__(self) -> None:
        """Add the CSV media type."""
        response = success_response(self)
        response.content = {
            **(response.content or {}),
            CSV: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)),
        }


@get(
    "/insights",
    operation_id="insights",
    summary="Report on questions and documentation gaps",
    responses={200: REPORT_RESPONSE},
    operation_class=InsightsOperation,
    tags=[OPERATING_TAG],
    needs="admin",
    errors=(StoreUnavailable,),
)
async def insights(
    request: Request[Any, Any, Any],
    reports: NamedDependency[InsightsReports],
    days: Annotated[int, QueryParameter(ge=1, le=MAX_DAYS)] = 30,
    table: FromQuery[TableName | None] = None,
    format: FromQuery[Literal["json", "csv"] | None] = None,
) -> Response[Any]:
    """Report on the last `days` days: question counts, gaps, error codes in questions, and feedback.

    With `Accept: text/csv` or `format=csv`, return one table as CSV: `table`, or `gaps` by default.
    `format` takes precedence over `Accept`.
    """
    wants_csv = prefers(request, CSV) if format is None else format == "csv"
    if not wants_csv:
        return Response((await reports.build(days, table)).as_json(table))
    table = table or "gaps"
    name = f"insights-{table}-{days}-days.csv"
    return Response(
        to_csv(await reports.build(days, table), table),
        media_type=CSV,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
