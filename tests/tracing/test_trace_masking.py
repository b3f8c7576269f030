"""Secrets in traces are masked, as they are in the question log."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.documents import Document

from app.masking.masking import mask
from app.service.ask_command import AskCommand
from app.telemetry import trace_content
from app.telemetry.trace_content import SecretMask
from schemas.question import Question
from tests.langsmith_server import LangSmith
from tests.model_replies import draft, is_classification, structured
from tests.model_script import Answer as ModelAnswer
from tests.model_script import Recorded, Reply
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


def test_secret_is_masked_by_the_key_of_its_value() -> None:
    fields = {
        "request_param": {"password": "Harbor2291", "session_id": "s1", "page": "Harbor2292"},
        "headers": [{"name": "app_secret", "value": SECRET}],
        "text": "Harbor2291 is refused",
    }
    assert SecretMask()(fields) == {
        "request_param": {"password": "‹password›", "session_id": "s1", "page": "Harbor2292"},
        "headers": [{"name": "app_secret", "value": "‹app_secret›"}],
        "text": "‹password› is refused",
    }


def test_classified_request_parameters_are_masked(
    langsmith: LangSmith, make_traced: MakeService, model_server: ModelServer
) -> None:
    def says(request: Recorded) -> ModelAnswer:
        if is_classification(request):
            return structured(request_param={"password": "Harbor2291"})
        return draft("订单发货用它。[1]")

    model_server.default = says
    answer_service = make_traced()
    question = '发货接口报错 {"password": "Harbor2291"}'
    asyncio.run(answer_service.ask(AskCommand(question)))
    answer_service.tracing.close()
    assert b"request_param" in langsmith.sent
    assert b"Harbor2291" not in langsmith.sent


@pytest.mark.parametrize("field", ["question", "input"])
def test_tags_in_a_question_do_not_switch_masking_off(field: str) -> None:
    example = f"app_secret={SECRET}"
    text = f'<documents>\n<document number="1">\n{example}\n</document>\n</documents>'
    masked = SecretMask()({field: text, "copy": SECRET})
    assert SECRET not in str(masked)


def test_documents_that_a_tool_returns_keep_their_examples() -> None:
    found = f"<documents>\napp_secret={SECRET}\n</documents>"
    fields = {"messages": [found, "password: Harbor2291"]}
    assert SecretMask()(fields) == {"messages": [found, "password: ‹password›"]}


def test_text_with_known_secrets_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(text: str, known: Mapping[str, str]) -> str:
        calls.append(text)
        return mask(text, known)

    monkeypatch.setattr(trace_content, "mask", counted)
    secret_mask = SecretMask()
    for run in ("one", "two"):
        secret_mask({"question": f"app_secret={SECRET}", "quoted": f"{SECRET} fails", "run": run})
    assert sorted(calls) == sorted({*calls})


@pytest.mark.acceptance
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
