"""Secrets in traces are masked, as they are in the question log."""

import asyncio
import re
from typing import Any

import pytest
from langchain_core.documents import Document

from app.service.ask_command import AskCommand
from app.telemetry.trace_content import SecretMask
from schemas.question import Question
from tests.langsmith_server import LangSmith
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.otlp_server import Collector
from tests.tracing.traced_questions import SHIPPED, MakeService

SECRET = "8f3kd92jfkd8w2t1"

PHONE = "13800138000"

QUESTION = f"发货接口是哪个 app_secret={SECRET} 我的电话是{PHONE}"


async def _ignore_event(event: object) -> None:
    pass


@pytest.mark.acceptance
@pytest.mark.parametrize("mode", ["pipeline", "tools"])
def test_traces_contain_no_secrets(
    langsmith: LangSmith,
    spans: Collector,
    make_traced: MakeService,
    model_server: ModelServer,
    mode: Any,
) -> None:
    answer_service = make_traced(otel_endpoint=spans.url)

    async def ask() -> None:
        await answer_service.ask(AskCommand(QUESTION, mode=mode), on_event=_ignore_event)
        turn = SHIPPED.model_copy(update={"question": QUESTION})
        await answer_service.ask(AskCommand("它的限流呢", history=(turn,), mode=mode))
        await answer_service.retrieve(AskCommand(QUESTION))
        model_server.default = Reply(f"flagged: app_secret={SECRET}", status=400)
        await answer_service.ask(AskCommand(QUESTION, mode=mode))

    asyncio.run(ask())
    answer_service.tracing.close()
    for server in (langsmith, spans):
        sent = server.sent.decode(errors="replace")
        sent = re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), sent)
        assert "‹app_secret›" in sent
        assert "发货接口是哪个" in sent
        assert "flagged: app_secret=" in sent
        assert SECRET not in sent
        assert PHONE not in sent


def test_secret_is_masked_where_another_field_quotes_it() -> None:
    question = Question(text=f"refused: app_secret={SECRET}", k=5, language="en")
    fields = {"question": question, "values": [SECRET, {"name": f"{SECRET} again"}], "count": 3}
    masked = SecretMask()(fields)
    assert masked["question"]["text"] == "refused: app_secret=‹app_secret›"
    assert masked["values"] == ["‹app_secret›", {"name": "‹app_secret› again"}]
    assert masked["count"] == 3
    assert question.text.endswith(SECRET), "the answer needs the question as it was asked"


def test_documents_keep_their_examples() -> None:
    example = f"app_secret={SECRET}"
    prompt = (
        f'<documents>\n<document number="1">\n{example}\n</document>\n</documents>\n\n'
        f"<question>\napp_secret=q{SECRET}\n</question>"
    )
    document = Document(id="1", page_content=example, metadata={"score": 1.0})
    masked = SecretMask()({"messages": [[{"content": prompt}]], "documents": [document]})
    (content,) = masked["messages"][0][0].values()
    assert example in content
    assert content.endswith("<question>\napp_secret=‹app_secret›\n</question>")
    assert masked["documents"][0].page_content == example
