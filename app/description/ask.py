"""What Litestar has no words for in the description of POST /ask: its events, and what can follow."""

from dataclasses import dataclass

from litestar.openapi.spec import (
    Example,
    Link,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIType

from schemas.answer import Answer, Source
from schemas.question import StructuredQuestion

EVENTS = "text/event-stream"

STEP = (
    "Update SKU Price error `44203` (Price outside the range of the category). Cause: The category "
    "has a lowest or highest price, and the new price falls outside it. Usually yuan were sent "
    "instead of fen. Remedy: Check the unit first: 139 CNY is 13900. The permitted range is given in "
    "error_message. [1]"
)

ANSWER = Answer(
    id="01a1ff87-c014-73d0-a8f6-8c1069c64748",
    question="what does error 44203 mean?",
    introduction="Hello, this is the documentation desk of the Qingqiao Open Platform.",
    answer=[STEP],
    related_url=["https://open.example.com/#/api?apiId=1206"],
    type="api_call",
    structured=StructuredQuestion(type="api_call", api_name="Update SKU Price", error="44203"),
    sources=[
        Source(
            number=1,
            source="reference",
            document_id="1206",
            title="Update SKU Price",
            section="Error codes",
            page_url="https://open.example.com/#/api?apiId=1206",
            api_name="Update SKU Price",
            api_url="/dop/api/v1/product/sku_price",
            metadata={"version": "v1"},
            score=21.6,
            text="| Error code | Message | Cause | Remedy |…",
        )
    ],
    confidence="high",
    language="en",
    answered_by="extractive",
    session="mine",
    timings={"retrieve": 34, "answer": 2, "total": 56},
)
"""What the sample platform answers."""

LINKS = {
    "judge": Link(operation_id="feedback", parameters={"answer_id": "$response.body#/id"}),
    "forget": Link(operation_id="deleteSession", parameters={"session": "$response.body#/session"}),
}


@dataclass
class AskOperation(Operation):
    """The operation, completed."""

    def __post_init__(self) -> None:
        """Add an example, the events, and what a caller may do with the answer."""
        answered = (self.responses or {})["200"]
        assert isinstance(answered, OpenAPIResponse)
        assert answered.content
        (whole,) = answered.content.values()
        whole.examples = {"answer": Example(value=ANSWER.model_dump(mode="json", by_alias=True))}
        events = Schema(type=OpenAPIType.STRING, description="Server-sent events, JSON in each")
        answered.content[EVENTS] = OpenAPIMediaType(events)
        answered.links = dict(LINKS)
