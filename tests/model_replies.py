"""Requests to a service with the scripted model, and the replies of that model."""

import json
from collections.abc import Callable
from typing import Any, Literal

from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr

from schemas.answer import AnswerDraft
from schemas.question import StructuredQuestion
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import events

KEY = "sk-never-to-be-seen"
CHAT = "openai:chat"
DOWN = Reply("overloaded", status=503, headers={"retry-after": "0"})

STEPS = ("调用“订单发货”接口提交发货。[1]", "发货前先取得运单号。[1]")

MakeClient = Callable[..., TestClient[Litestar]]


def is_classification(request: Recorded) -> bool:
    """Return whether the request is a classification, whose prompt has no documents and no history."""
    return "<documents>" not in request.text and "<history>" not in request.text


def structured(**fields: Any) -> StructuredQuestion:
    """Return a classification for the model to reply."""
    return StructuredQuestion(**({"type": "api_call", "api_name": "订单发货"} | fields))


def draft(*steps: str, related: tuple[str, ...] = ()) -> AnswerDraft:
    """Return an answer for the model to reply."""
    return AnswerDraft(
        question="发货接口是哪个",
        introduction="您好。",
        answer=list(steps),
        related_url=list(related),
    )


def interrupted_answer(request: Recorded, action: Literal["close", "stall"] = "stall") -> Reply:
    """Return a reply that streams an answer up to its second step, then stalls or closes the connection."""
    assert not is_classification(request)
    text = draft(*STEPS).model_dump_json(by_alias=True)
    sent, sent_text = 0, ""
    for event in events(Reply(text), request):
        sent += len(event)
        sent_text += json.loads(event.removeprefix(b"data: "))["choices"][0]["delta"]["content"]
        if STEPS[1][:4] in sent_text:
            break
    return Reply(text, action=action, reset_after=sent)


def ask(client: TestClient[Litestar], question: str, **body: object) -> dict[str, Any]:
    """Ask `question`, check for status 200 and return the body."""
    response = client.post("/ask", json={"question": question, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def chat(server: ModelServer, role: str = "chat", model: str = CHAT) -> dict[str, object]:
    """Return the settings of the model for one role."""
    return {
        f"{role}_model": model,
        f"{role}_base_url": server.base_url,
        f"{role}_api_key": SecretStr(KEY),
    }


def answer_all(server: ModelServer, step: str = "发货用“订单发货”接口。[1]") -> None:
    """Let the server answer every request."""
    server.default = lambda request: structured() if is_classification(request) else draft(step)
