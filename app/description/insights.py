"""What Litestar has no words for in the description of GET /insights: one table as CSV."""

from dataclasses import dataclass

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, Operation, Schema
from litestar.openapi.spec.enums import OpenAPIType

CSV = "text/csv"


@dataclass
class InsightsOperation(Operation):
    """The report as JSON, or a table of it as CSV."""

    def __post_init__(self) -> None:
        """Complete what was made from the handler."""
        told = (self.responses or {})["200"]
        assert isinstance(told, OpenAPIResponse)
        told.content = {
            **(told.content or {}),
            CSV: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)),
        }
