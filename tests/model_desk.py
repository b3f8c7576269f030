"""What tests say to a desk with the scripted model, and what that model says back."""

from collections.abc import Callable
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from schemas.answer import AnswerDraft
from schemas.question import StructuredQuestion
from tests.model_server import Recorded

MakeClient = Callable[..., TestClient[Litestar]]


def is_classification(request: Recorded) -> bool:
    """The classification is the call whose prompt holds neither documents nor a history."""
    return "<documents>" not in request.text and "<history>" not in request.text


def structured(**fields: Any) -> StructuredQuestion:
    """A classification by the model."""
    return StructuredQuestion(**({"type": "api_call", "api_name": "订单发货"} | fields))


def draft(*steps: str, related: tuple[str, ...] = ()) -> AnswerDraft:
    """An answer by the model."""
    return AnswerDraft(
        question="发货接口是哪个",
        introduction="您好。",
        answer=list(steps),
        related_url=list(related),
    )


def ask(client: TestClient[Litestar], question: str, **body: object) -> dict[str, Any]:
    """The body of the 200 that the question gets."""
    response = client.post("/ask", json={"question": question, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer
