"""GET /insights: the report on recorded questions, as JSON or CSV."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from litestar import MediaType, Request, Response, get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, Operation, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import FromQuery, QueryParameter

from app.analytics.insights.report import InsightsReports, to_csv
from app.api.openapi import OPERATING_TAG
from schemas.errors import StoreUnavailable
from schemas.insights import Insights, Table

MAX_DAYS = 36_500
"""Maximum number of days in a report."""

CSV = "text/csv"

REPORT_RESPONSE = ResponseSpec(
    Insights,
    generate_examples=False,
    description="The report, or only `table` if it is given; CSV with `Accept: text/csv`",
)


@dataclass
class InsightsOperation(Operation):
    """The OpenAPI operation, with the CSV response that Litestar cannot derive from the handler."""

    def __post_init__(self) -> None:
        """Add the CSV media type."""
        response = (self.responses or {})["200"]
        assert isinstance(response, OpenAPIResponse)
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
    table: FromQuery[Table | None] = None,
    format: FromQuery[Literal["json", "csv"] | None] = None,
) -> Response[Any]:
    """Return question counts by type and by API, documentation gaps, errors, and feedback.

    With `Accept: text/csv` or `format=csv`, return one table as CSV: `table`, or `gaps` by default.
    """
    if not (format == "csv" or (format is None and _prefers_csv(request))):
        return Response((await reports.build(days, table)).as_json(table))
    table = table or "gaps"
    name = f"insights-{table}-{days}-days.csv"
    return Response(
        to_csv(await reports.build(days, table), table),
        media_type=CSV,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _prefers_csv(request: Request[Any, Any, Any]) -> bool:
    return request.accept.best_match([MediaType.JSON, CSV]) == CSV
