"""The OpenAI-compatible API, tested with OpenAI's client over a real server."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import httpx
import openai
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from openai import OpenAI, Stream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import SecretStr

from app.api import event_stream
from app.api.markdown import render_markdown
from app.api.openai.answer_text import (
    PageNumbers,
    StreamedText,
    parse_answer_text,
    url_citations,
)
from app.api.openai.request import ChatMessage, read_conversation
from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from schemas.answer import Answer, CompleteSources, Event, Page, Source, Sources, Step
from schemas.errors import QuestionError
from schemas.question import StructuredQuestion
from tests.live_server import live_server
from tests.model_replies import MakeClient, draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import events

QUESTION = "发货接口是哪个"
STEPS = ("调用“订单发货”接口提交发货。[1]", "发货前先取得运单号。[1]")
SCRIPTED: dict[str, object] = {
    "chat_model": "openai:scripted-chat",
    "chat_api_key": SecretStr("test-key"),
}


def open_client(url: str, key: str = "none") -> OpenAI:
    """OpenAI's client without automatic retries."""
    return OpenAI(
        base_url=f"{url}/v1",
        api_key=key,
        max_retries=0,
        timeout=20,
        http_client=openai.DefaultHttpxClient(trust_env=False),
    )


def user(text: object) -> Any:
    return {"role": "user", "content": text}


def complete(client: OpenAI, *messages: Any, model: str = "apidesk", **more: Any) -> ChatCompletion:
    completion = client.chat.completions.create(model=model, messages=messages, **more)
    assert isinstance(completion, ChatCompletion)
    return completion


def streamed(
    client: OpenAI, *messages: Any, model: str = "apidesk", **more: Any
) -> Stream[ChatCompletionChunk]:
    coming = client.chat.completions.create(model=model, messages=messages, stream=True, **more)
    assert isinstance(coming, Stream)
    return coming


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


@pytest.fixture(scope="module")
def plain(sample_service: AnswerService) -> Iterator[OpenAI]:
    """A client of a server without a model."""
    with live_server(sample_service) as url, open_client(url) as client:
        yield client


@pytest.fixture
def scripted(sample_service: AnswerService, model_server: ModelServer) -> Iterator[OpenAI]:
    """A client of a server with the scripted model."""
    changed = SCRIPTED | {
        "chat_base_url": model_server.base_url,
    }
    settings = sample_service.settings.model_copy(update=changed)
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
    with live_server(answer_service) as url, open_client(url) as client:
        yield client


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
        "id", "type", "confidence", "sources", "relatedUrl", "unverified", "unsupported", "degraded",
        "answeredBy", "structured",
    }  # fmt: skip
    assert details["structured"]["error"] == "44203"
    assert details["sources"][0]["pageUrl"] == details["relatedUrl"][0] == page


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
    document = (Path(__file__).resolve().parents[1] / "docs/how-to/connect-clients.md").read_text(
        encoding="utf-8"
    )
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", document, re.DOTALL)[:2]
    exec(code.replace("http://127.0.0.1:8000/v1", str(plain.base_url)), {})
    assert capsys.readouterr().out == printed


# A conversation


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
        ("发货接口的错误码", "没有"),
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
    model_server.reply(structured(), lambda request: cut_off(request, "close"))
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
    model_server.default = cut_off
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


def cut_off(request: Recorded, action: Literal["stall", "close"] = "stall") -> Reply:
    """The answer streamed up to its second step, then silence or the end."""
    text = json.dumps({"question": "q", "answer": list(STEPS)}, ensure_ascii=False)
    sent, written = 0, ""
    for event in events(Reply(text), request):
        sent += len(event)
        written += json.loads(event.removeprefix(b"data: "))["choices"][0]["delta"]["content"]
        if "发货前先" in written:
            break
    return Reply(text, action=action, reset_after=sent)


# Responses


def test_response_equals_the_completion(plain: OpenAI) -> None:
    completion = complete(plain, user(QUESTION)).choices[0].message
    response = plain.responses.create(
        model="apidesk", input=QUESTION, instructions="Be brief.", temperature=0.2
    )
    assert (response.output_text, response.status) == (completion.content, "completed")
    assert response.usage is not None
    assert response.usage.total_tokens == 0
    (item,) = response.output
    assert item.type == "message"
    (part,) = item.content
    assert part.type == "output_text"
    cited = [note.url_citation.model_dump() for note in completion.annotations or []]
    assert [note.model_dump(exclude={"type"}) for note in part.annotations] == cited
    details = (response.model_extra or {})["apidesk"]
    assert details["sources"] == (completion.model_extra or {})["apidesk"]["sources"]


def test_response_streams_steps(scripted: OpenAI, model_server: ModelServer) -> None:
    """The client's own accumulator accepts the events."""
    model_server.reply(structured(), draft(*STEPS))
    with scripted.responses.stream(model="apidesk", input=QUESTION) as stream:
        received = list(stream)
        response = stream.get_final_response()
    deltas = [event.delta for event in received if event.type == "response.output_text.delta"]
    assert deltas[0] == STEPS[0]
    assert "".join(deltas) == response.output_text
    kinds = [event.type for event in received]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added",
    ]  # fmt: skip
    assert kinds[-1] == "response.completed"
    assert "response.output_text.annotation.added" in kinds
    numbers = [event.sequence_number for event in received if event.type != "response.completed"]
    assert numbers == list(range(len(received) - 1))


def test_response_uses_the_earlier_messages(plain: OpenAI) -> None:
    first = plain.responses.create(model="apidesk", input=QUESTION)
    messages: Any = [
        user(QUESTION),
        *(item.model_dump() for item in first.output),
        user("那错误码呢"),
    ]
    details = plain.responses.create(model="apidesk", input=messages).model_extra or {}
    source = details["apidesk"]["sources"][0]
    assert (source["apiName"], source["section"]) == ("订单发货", "错误码")


def test_response_error_is_sent_as_an_event(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(structured(), *[Reply("no", status=400)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "input": QUESTION, "stream": True}
    lines = [line.strip() for line in http.post("/v1/responses", json=body).text.split("\n")]
    model_server.replies.clear()
    assert lines.count("event: error") == 1
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    error = json.loads(data[-1])
    assert (error["type"], error["code"], error["param"]) == ("error", "model_refused", None)


# A stream whose steps are sent again


def answer_of(*steps: str, nearest: tuple[Page, ...] = ()) -> Answer:
    return Answer(
        id="1", question="q", introduction="", answer=list(steps), related_url=[], type="general",
        structured=StructuredQuestion(type="general"), sources=[], confidence="low", language="en",
        answered_by="extractive", nearest=list(nearest),
    )  # fmt: skip


def stream_text(*parts: str | Answer | list[Source] | None) -> str:
    """Return the streamed text. The events are given as steps, None (restart), sources of a complete answer,
    or the answer.
    """
    streamed = StreamedText()
    for event in parts:
        if isinstance(event, Answer):
            streamed.add(Event("answer", event))
        elif isinstance(event, list):
            streamed.add(Event("sources", CompleteSources(sources=event)))
        elif event is None:
            streamed.add(Event("sources", Sources(sources=[])))
        else:
            streamed.add(Event("step", Step(number=1, text=event, unverified=[], supported=True)))
    return streamed.text


WITHDRAWN = "\n\n---\n\nPlease ignore the text above. Corrected answer:\n\n"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([None, "a", "b", answer_of("a", "b")], "a\n\nb"),
        ([answer_of("a", "b")], "a\n\nb"),
        ([None, None, "a", answer_of("a")], "a"),
        ([None, "a", None, "a", "b", answer_of("a", "b")], "a\n\nb"),
        ([None, "a", None, "x", None, "b", answer_of("b")], f"a{WITHDRAWN}b"),
        ([None, "a", "b", answer_of("a")], f"a\n\nb{WITHDRAWN}a"),
    ],
)
def test_streamed_text_is_continued_or_corrected(
    parts: list[str | Answer | None], text: str
) -> None:
    assert stream_text(*parts) == text


# Citations


def test_citations_are_numbered_by_page() -> None:
    """Clients take `[n]` as the n-th distinct URL among the annotations."""
    a, b, c = (f"https://d.example/{page}" for page in "abc")
    shown = [source(n, page_url=url) for n, url in ((1, a), (2, b), (3, c), (4, b), (5, b))]
    steps = ("x [4][5], y [2]", "z `[5]` items[3] [3]", "w [9]")
    answer = answer_of(*steps).model_copy(update={"sources": shown[1:]})
    numbers = PageNumbers()
    numbers.apply(Event("sources", Sources(sources=shown)))
    streamed = [
        numbers.apply(Event("step", Step(number=1, text=text, unverified=[], supported=True))).data
        for text in steps
    ]
    numbered = numbers.answer(answer)
    expected = ["x [1], y [1]", "z `[5]` items[2] [2]", "w [9]"]
    assert [step.text for step in streamed if isinstance(step, Step)] == numbered.answer == expected
    assert [(s.number, s.page_url) for s in numbered.sources] == [(1, b), (1, b), (1, b), (2, c)]
    urls = [citation["url"] for citation in url_citations(render_markdown(numbered), numbered)]
    assert list(dict.fromkeys(urls)) == [b, c]


# Markdown


def test_nearest_pages_are_links() -> None:
    page = Page(title="A *b* [c]", page_url="https://open.example.com/a (b)?c=<d>")
    text = render_markdown(answer_of("Not covered.", nearest=(page,)))
    assert text == (
        "Not covered.\n\n**Pages that may help**\n\n"
        r"- [A \*b\* \[c\]](https://open.example.com/a%20%28b%29?c=%3Cd%3E)"
    )
    assert parse_answer_text(text) == "Not covered."


def source(number: int = 2, **fields: str) -> Source:
    given = {"title": "Guide", "section": "", "page_url": "", "text": "t"} | fields
    return Source(
        number=number, source="s", document_id="d", api_name="", api_url="", score=1.0, **given
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"confidence": "high"}, ""),
        ({"confidence": "medium"},
         "> **Note:** This may answer the question only in part. Check it against the pages below."),
        ({"language": "zh"}, "> **提示：** 文档没有明确回答这个问题，请对照下面的页面核对。"),
        ({"sources": []}, ""),
        ({"sources": [], "degraded": "model_timeout"},
         "> **Note:** Degraded: The configured model did not reply in time. A fallback answered instead."),
        ({"sources": [], "unsupported": [1], "unverified": ["user_id", "/v1/x"], "language": "zh"},
         "> **提示：** 文档没有明确回答这个问题，请对照下面的页面核对。  \n"
         "> 文档中没有找到：user_id, /v1/x  \n> 缺少依据的步骤：1"),
    ],
)  # fmt: skip
def test_doubts_are_stated_first(fields: dict[str, object], note: str) -> None:
    answer = answer_of("a [2]", "b").model_copy(update={"sources": [source()]} | fields)
    text = render_markdown(answer)
    assert text.startswith(f"{note}\n\na [2]\n\nb" if note else "a [2]\n\nb")
    assert stream_text(None, answer) == stream_text(answer.sources, "a [2]", "b", answer) == text
    streamed = stream_text(None, "a [2]", answer)
    assert streamed.startswith(f"a [2]\n\nb\n\n{note}".strip())
    assert parse_answer_text(text) == parse_answer_text(streamed) == "a [2]\n\nb"


@pytest.mark.parametrize(
    "text", ["", "**Sources**", "a **Sources**\n\nb", "**Sources**\n\n- a\n\nb", "- a"]
)
def test_text_of_other_origin_is_kept(text: str) -> None:
    assert parse_answer_text(text) == text


def test_source_without_a_page_is_not_a_link() -> None:
    answer = answer_of("a [2]").model_copy(update={"sources": [source()], "confidence": "high"})
    assert render_markdown(answer) == "a [2]\n\n**Sources**\n\n- [2] Guide"


# Errors


@pytest.mark.parametrize(
    ("body", "status", "param", "code", "sentence"),
    [
        ({"model": "gpt-5"}, 404, "model", "model_not_found", "model: gpt-5 does not exist; available: apidesk"),
        ({"model": "apidesk-tools"}, 404, "model", "model_not_found", "model: apidesk-tools does not exist"),
        ({"n": 2}, 400, "n", "invalid_input", "n: Input should be 1"),
        ({"messages": []}, 400, "messages", "invalid_input", "messages: contain no user message"),
        ({"messages": [user(" ")]}, 400, "messages", "invalid_input", "question: is empty"),
        ({"messages": [user("问" * 20_001)]}, 413, "messages", "too_large", "question: 20001 characters"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "data:"}}])]}, 400, "messages",
         "invalid_input", "messages: only text is supported, not image_url"),
        ({"messages": [user(7)]}, 400, "messages", "invalid_input", "messages.0.content.str: Input should be a valid string; "),
        ({"messages": "hello"}, 400, "messages", "invalid_input", "messages: "),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "invalid_input",
         "response_format.type: Input should be 'text'"),
        ({"tool_choice": "required"}, 400, "tool_choice", "invalid_input", "tool_choice: Input should be 'none' or 'auto'"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice", "invalid_input", "tool_choice: "),
        ({"temperature": "hot"}, 400, "temperature", "invalid_input", "temperature: Input should be a valid number"),
        ({"temperature": 3}, 400, "temperature", "invalid_input", "temperature: Input should be less than or equal to 2"),
        ({"max_tokens": -1}, 400, "max_tokens", "invalid_input", "max_tokens: Input should be greater than or equal to 1"),
        ({"logprobs": True}, 400, "logprobs", "invalid_input", "logprobs: Input should be False"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_invalid_input_returns_one_sentence(
    client: TestClient[Litestar],
    body: dict[str, Any],
    status: int,
    param: str,
    code: str,
    sentence: str,
    stream: bool,
) -> None:
    request = {"model": "apidesk", "messages": [user(QUESTION)], "stream": stream} | body
    response = client.post("/v1/chat/completions", json=request)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error")
    assert error["message"].startswith(sentence)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "gpt-5"}, 404, "model"),
        ({"input": []}, 400, "input"),
        ({"input": " "}, 400, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}, 400, "input"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}}, 400, "text"),
        ({"previous_response_id": "resp_1"}, 400, "previous_response_id"),
        ({"background": True}, 400, "background"),
        ({"max_output_tokens": 0}, 400, "max_output_tokens"),
    ],
)  # fmt: skip
def test_invalid_response_request_names_its_parameter(
    client: TestClient[Litestar], body: dict[str, Any], status: int, param: str
) -> None:
    response = client.post("/v1/responses", json={"model": "apidesk", "input": QUESTION} | body)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/embeddings", b"{}", 404),
        ("GET", "/v1/chat/completions", b"", 405),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"", 400),
    ],
)
def test_errors_under_v1_have_the_openai_format(
    client: TestClient[Litestar], method: str, path: str, body: bytes, status: int
) -> None:
    response = client.request(method, path, content=body)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_errors_outside_v1_are_problem_details(client: TestClient[Litestar]) -> None:
    for response in (client.get("/v2/models"), client.get("/ask")):
        assert response.headers["content-type"] == "application/problem+json"


def test_api_keys_and_rate_limits_apply(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('keys') / 'apidesk.db'}"
    limited = {"database_url": url, "rate_limit": "1/hour"}
    settings = sample_service.settings.model_copy(update=limited)
    with closing(ApiKeyStore.open(settings)) as stored:
        key, other = (stored.add(scope, (scope,), None)[1] for scope in ("ask", "ingest"))
    with live_server(
        AnswerService(settings, sample_service.platform, sample_service.job)
    ) as server:
        for wrong, error in (
            ("wrong", openai.AuthenticationError),
            (other, openai.PermissionDeniedError),
        ):
            with open_client(server, wrong) as client, pytest.raises(error):
                client.models.list()
        with open_client(server, key) as client:
            assert complete(client, user(QUESTION)).choices
            with pytest.raises(openai.RateLimitError) as limit:
                complete(client, user(QUESTION))
    assert int(limit.value.response.headers["retry-after"]) > 0
    assert limit.value.code == "rate_limited"
    assert limit.value.type == "rate_limit_error"


@pytest.mark.parametrize("stream", [False, True])
def test_model_failure_returns_a_server_error(
    model_client: MakeClient, model_server: ModelServer, stream: bool
) -> None:
    model_server.reply(*[Reply("no", status=401)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "messages": [user(QUESTION)], "stream": stream}
    response = http.post("/v1/chat/completions", json=body)
    model_server.replies.clear()
    assert response.status_code == 503
    assert "retry-after" in response.headers
    assert response.json()["error"]["type"] == "server_error"


def test_error_after_the_first_chunk_is_sent_as_an_event(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(structured(), *[Reply("no", status=400)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "messages": [user(QUESTION)], "stream": True}
    lines = http.post("/v1/chat/completions", json=body).text.split("\n")
    model_server.replies.clear()
    data = [line.strip() for line in lines if line.startswith("data: ")]
    error = json.loads(data[-1].removeprefix("data: "))["error"]
    assert (error["type"], error["code"]) == ("server_error", "model_refused")


def test_question_is_recorded(client: TestClient[Litestar]) -> None:
    """A question to /v1 is recorded and can be rated."""
    body = {"model": "apidesk", "messages": [user(QUESTION)]}
    completion = client.post("/v1/chat/completions", json=body).json()
    answer_id = completion["choices"][0]["message"]["apidesk"]["id"]
    assert client.post(f"/answers/{answer_id}/feedback", json={"score": 1}).status_code == 204
