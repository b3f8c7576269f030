"""Chat completions, tested with OpenAI's client over a real server."""

import re
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from openai import OpenAI, Stream
from openai.types.chat import ChatCompletionChunk

from app.api import event_stream
from app.api.openai.answer_text import parse_answer_text
from app.api.openai.protocol import ChatMessage, read_conversation
from app.service.answer_service import AnswerService
from schemas.errors import QuestionError
from tests.model_replies import STEPS, draft, interrupted_answer, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_api.openai_client import QUESTION, complete, user


def streamed(
    client: OpenAI, *messages: Any, model: str = "apidesk", **more: Any
) -> Stream[ChatCompletionChunk]:
    coming = client.chat.completions.create(model=model, messages=messages, stream=True, **more)
    assert isinstance(coming, Stream)
    return coming


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


# Models


def test_models_are_listed(plain: OpenAI, scripted: OpenAI) -> None:
    assert [model.id for model in plain.models.list()] == ["apidesk"]
    assert [model.id for model in scripted.models.list()] == ["apidesk", "apidesk-tools"]
    assert scripted.models.retrieve("apidesk-tools").object == "model"
    with pytest.raises(openai.NotFoundError):
        plain.models.retrieve("apidesk-tools")


# A completion


def test_completion_ends_with_source_links(plain: OpenAI) -> None:
    completion = complete(plain, user("what does error 44203 mean?"), temperature=0.2, tools=[])
    (choice,) = completion.choices
    text = choice.message.content or ""
    page = "https://open.example.com/#/api?apiId=1206"
    assert "44203" in text.split("\n\n**Sources**")[0]
    assert text.endswith(f"**Sources**\n\n- [1] [Update SKU Price > Error codes]({page})")
    assert "**Sources**" not in parse_answer_text(text)
    assert (choice.finish_reason, completion.model) == ("stop", "apidesk")
    assert completion.usage is not None
    assert completion.usage.total_tokens == 0

    (annotation,) = choice.message.annotations or []
    cited = annotation.url_citation
    assert (cited.url, cited.title) == (page, "Update SKU Price > Error codes")
    linked = text[cited.start_index : cited.end_index]
    assert linked == f"[Update SKU Price > Error codes]({page})"

    details = (choice.message.model_extra or {})["apidesk"]
    assert set(details) == {
        "id", "type", "confidence", "sources", "relatedUrl", "nearest", "unverified", "unsupported",
        "degraded", "answeredBy", "structured",
    }  # fmt: skip
    assert details["structured"]["error"] == "44203"
    assert details["sources"][0]["pageUrl"] == details["relatedUrl"][0] == page


def test_sections_of_one_page_share_a_citation(plain: OpenAI) -> None:
    """Clients merge annotations with the same URL and show the title of the first."""
    message = complete(plain, user("怎么给订单发货？")).choices[0].message
    sources = (message.model_extra or {})["apidesk"]["sources"]
    (page,) = {source["pageUrl"] for source in sources}
    sections = [source["section"] for source in sources]
    assert len(sections) > 1
    (annotation,) = message.annotations or []
    cited = annotation.url_citation
    assert (cited.url, cited.title) == (page, f"订单发货 > {', '.join(sections)}")
    assert (message.content or "").endswith(f"**出处**\n\n- [1] [{cited.title}]({page})")


def test_off_topic_question_is_refused(plain: OpenAI) -> None:
    (choice,) = complete(plain, user("今天天气怎么样")).choices
    assert choice.message.content
    assert "出处" not in choice.message.content
    assert choice.message.annotations == []
    assert (choice.message.model_extra or {})["apidesk"]["type"] == "unknown"


def test_usage_reports_the_tokens_of_the_provider(
    scripted: OpenAI, model_server: ModelServer
) -> None:
    counts = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
    model_server.reply(Reply(structured(), usage=counts), Reply(draft(*STEPS), usage=counts))
    usage = complete(scripted, user(QUESTION)).usage
    assert usage is not None
    assert usage.model_dump(include=set(counts)) == {k: 2 * v for k, v in counts.items()}


def test_tools_model_calls_tools(scripted: OpenAI, model_server: ModelServer) -> None:
    def says(request: Recorded) -> Reply:
        if request.body.get("tools"):
            return Reply("enough")
        return Reply(structured() if is_classification(request) else draft(*STEPS))

    model_server.default = says
    complete(scripted, user(QUESTION), model="apidesk-tools")
    offered = [request.body.get("tools") for request in model_server.chat_requests]
    assert [bool(tools) for tools in offered] == [False, True, False]


def test_documented_example_runs(plain: OpenAI, capsys: pytest.CaptureFixture[str]) -> None:
    document = (Path(__file__).resolve().parents[2] / "docs/how-to/connect-clients.md").read_text(
        encoding="utf-8"
    )
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", document, re.DOTALL)[:2]
    exec(code.replace("http://127.0.0.1:8000/v1", str(plain.base_url)), {})
    assert capsys.readouterr().out == printed


def test_follow_up_uses_the_earlier_messages(plain: OpenAI) -> None:
    system = {"role": "system", "content": "Speak of the weather."}
    messages = [system, user(QUESTION)]
    for question in ("那错误码呢", "权限包呢？"):
        answer = complete(plain, *messages).choices[0].message.content
        messages += [{"role": "assistant", "content": answer}, user(question)]
    details = (complete(plain, *messages).choices[0].message.model_extra or {})["apidesk"]
    assert (details["sources"][0]["apiName"], details["sources"][0]["section"]) == (
        "订单发货",
        "权限包",
    )


def spoken(role: str, content: object) -> ChatMessage:
    return ChatMessage.model_validate({"role": role, "content": content})


def test_history_contains_answered_questions_only(sample_service: AnswerService) -> None:
    answered = "看[1]。\n\n**出处**\n\n- [1] [发货](https://open.example.com/a)"
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    messages = [
        spoken("developer", "Be brief."),
        spoken("user", "not answered"),
        spoken(
            "user", [{"type": "text", "text": "发货接口"}, image, {"type": "text", "text": "呢"}]
        ),
        spoken("assistant", answered),
        spoken("tool", "42"),
        spoken("user", "那错误码呢"),
        spoken("assistant", None),
        spoken("assistant", "没有"),
        spoken("user", "last"),
        spoken("assistant", "a beginning"),
    ]
    text, history = read_conversation(messages, sample_service.settings)
    assert text == "last"
    assert [(turn.question, turn.answer) for turn in history] == [
        ("发货接口\n呢", "看[1]。"),
        ("发货的错误码", "没有"),
    ]
    few = sample_service.settings.model_copy(update={"history_turns": 1, "history_chars": 60})
    long = [spoken("user", "q"), spoken("assistant", "a" * 90)] * 3
    _, (turn,) = read_conversation([*long, spoken("user", "last")], few)
    assert len(turn.question + turn.answer) == 60


def test_content_other_than_text_is_rejected(sample_service: AnswerService) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    with pytest.raises(QuestionError, match="only text is supported, not image_url"):
        read_conversation([spoken("user", [image])], sample_service.settings)


# A stream


def test_stream_returns_the_same_text_as_a_completion(plain: OpenAI) -> None:
    completion = complete(plain, user(QUESTION)).choices[0].message
    chunks = list(streamed(plain, user(QUESTION)))
    assert text_of(chunks) == completion.content
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    last = chunks[-1].choices[0].delta.model_extra or {}
    assert last["annotations"] == [note.model_dump() for note in completion.annotations or []]
    details = (completion.model_extra or {})["apidesk"]
    assert last["apidesk"] | {"id": details["id"]} == details


def test_stream_includes_usage_on_request(scripted: OpenAI, model_server: ModelServer) -> None:
    counts = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
    for options in ({"include_usage": True}, None):
        model_server.reply(Reply(structured(), usage=counts), Reply(draft(*STEPS), usage=counts))
        *chunks, last = streamed(scripted, user(QUESTION), stream_options=options)
        assert all(chunk.usage is None for chunk in chunks)
        if options:
            assert last.choices == []
            assert last.usage is not None
            assert last.usage.total_tokens == 1_460
        else:
            assert last.usage is None


def test_step_is_sent_before_the_model_finishes(
    scripted: OpenAI, model_server: ModelServer
) -> None:
    """The model breaks off within its second step: the text sent so far is corrected."""
    model_server.reply(structured(), lambda request: interrupted_answer(request, "close"))
    model_server.default = Reply("no", status=400)
    coming = streamed(scripted, user(QUESTION))
    begun = [next(coming), next(coming)]
    assert text_of(begun) == STEPS[0]
    text = text_of([*begun, *coming])
    withdrawn, _, answer = text.partition("\n\n---\n\n请忽略以上内容，以下是更正后的回答：\n\n")
    assert withdrawn == STEPS[0]
    assert "**出处**" in answer
    assert parse_answer_text(text) == parse_answer_text(answer)


def test_disconnect_cancels_the_model_call(scripted: OpenAI, model_server: ModelServer) -> None:
    model_server.reply(structured())
    model_server.default = interrupted_answer
    coming = streamed(scripted, user(QUESTION))
    assert text_of([next(coming), next(coming)]) == STEPS[0]
    coming.close()
    assert model_server.abandoned.wait(10)


def test_heartbeat_is_sent_while_the_model_is_silent(
    scripted: OpenAI, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_INTERVAL_S", 0.05)
    model_server.reply(Reply(structured(), delay=0.5), draft(*STEPS))
    body = {"model": "apidesk", "messages": [user(QUESTION)], "stream": True}
    with httpx.stream(
        "POST", f"{scripted.base_url}chat/completions", json=body, timeout=20, trust_env=False
    ) as response:
        lines = list(response.iter_lines())
    assert response.headers["content-type"].startswith("text/event-stream")
    assert lines.count(":") + lines.count(": ") >= 3
    assert [line for line in lines if line][-1] == "data: [DONE]"


def test_question_is_recorded(client: TestClient[Litestar]) -> None:
    """A question to /v1 is recorded and can be rated."""
    body = {"model": "apidesk", "messages": [user(QUESTION)]}
    completion = client.post("/v1/chat/completions", json=body).json()
    answer_id = completion["choices"][0]["message"]["apidesk"]["id"]
    assert client.post(f"/answers/{answer_id}/feedback", json={"score": 1}).status_code == 204
