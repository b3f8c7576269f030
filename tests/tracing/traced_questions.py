"""The scripted model, the questions and the answer services of traced questions."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from app.service.answer_service import AnswerService
from schemas.question import Turn
from tests.model_replies import draft, structured
from tests.model_script import Answer as ModelAnswer
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "operate.md"

QUESTION = "发货接口是哪个"
ANSWER = "订单发货用它。[1]"
SHIPPED = Turn(
    question=QUESTION,
    answer="订单发货。",
    api_name="订单发货",
    api_url=None,
    asked_at=datetime.now(UTC),
)


def reply(request: Recorded) -> ModelAnswer:
    """The model's reply to the prompt of each step."""
    question = request.text.rpartition("<question>")[2]
    if "tools" in request.body:
        has_searched = any(message["role"] == "tool" for message in request.body["messages"])
        call = ToolCall("search", {"query": "订单发货"})
        return Reply("够了") if has_searched else Reply(tool_calls=[call])
    if "<history>" in request.text:
        return {"question": QUESTION}
    if "<documents>" in request.text:
        return draft(ANSWER)
    return structured(type="unknown") if "天气" in question else structured()


MakeService = Callable[..., AnswerService]


@contextmanager
def open_services(sample_service: AnswerService, server: ModelServer) -> Iterator[MakeService]:
    """Create answer services with the samples and the scripted model, and close their tracing."""
    with ExitStack() as stack:

        def make(**overrides: object) -> AnswerService:
            settings = sample_service.settings.model_copy(update=server.settings | overrides)
            answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
            stack.callback(answer_service.tracing.close)
            return answer_service

        yield make


def documented_tree() -> str:
    """The tree in the first text block of the section on tracing in docs/how-to/operate.md."""
    section = DOCS.read_text(encoding="utf-8").partition("## Tracing")[2]
    match = re.search(r"```text\n(ask\n.*?)\n```", section, re.DOTALL)
    assert match
    return match[1]
