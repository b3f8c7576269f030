"""GET /insights"""

from typing import Annotated, Any, Literal

from litestar import MediaType, Request, Response, get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import FromQuery, QueryParameter

from app.analytics.insights.report import InsightsReports, csv_of
from app.api.openapi import CSV, OPERATING, InsightsOperation
from schemas.errors import StoreUnavailable
from schemas.insights import Insights, Table

MOST_DAYS = 36_500

REPORTED = ResponseSpec(
    Insights,
    generate_examples=False,
    description="The report; with `table`, that table alone; with Accept: text/csv, CSV",
)


@get(
    "/insights",
    operation_id="insights",
    summary="What questions say about the documentation",
    responses={200: REPORTED},
    operation_class=InsightsOperation,
    tags=[OPERATING],
    needs="admin",
    errors=(StoreUnavailable,),
)
async def insights(
    request: Request[Any, Any, Any],
    reports: NamedDependency[InsightsReports],
    days: Annotated[int, QueryParameter(ge=1, le=MOST_DAYS)] = 30,
    table: FromQuery[Table | None] = None,
    format: FromQuery[Literal["json", "csv"] | None] = None,
) -> Response[Any]:
    """Counts by type and by API, what the documentation does not answer, errors, and feedback.

    With `Accept: text/csv` or `format=csv` one table comes as CSV: `table`, or else `gaps`.
    """
    if not (format == "csv" or (format is None and _prefers_csv(request))):
        return Response((await reports.make(days, table)).as_json(table))
    table = table or "gaps"
    name = f"insights-{table}-{days}-days.csv"
    return Response(
        csv_of(await reports.make(days, table), table),
        media_type=CSV,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _prefers_csv(request: Request[Any, Any, Any]) -> bool:
    return request.accept.best_match([MediaType.JSON, CSV]) == CSV
