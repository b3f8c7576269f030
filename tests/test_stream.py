"""Streaming of answers as server-sent events over real HTTP."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from app.api import event_stream
from app.cli.terminal.answer_output import live_answer
from app.service.answer_service import AnswerService
from runnables.answer.write_answer import complete_steps
from schemas.answer import Answer, Event, EventSink, Sources, Step
from tests.live_server import live_server
from tests.model_replies import STEPS, draft, interrupted_answer, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.openai_objects import events

QUESTION = "发货接口是哪个"

Serve = Callable[..., Any]


@pytest.fixture
def serve(sample_service: AnswerService, model_server: ModelServer) -> Serve:
    """Serve the samples with the scripted model."""

    @contextmanager
    def serving(**overrides: object) -> Iterator[str]:
        settings = sample_service.settings.model_copy(update=model_server.settings | overrides)
        with live_server(
            AnswerService(settings, sample_service.platform, sample_service.job)
        ) as url:
            yield url

    return serving


@contextmanager
def stream_events(
    url: str, question: str = QUESTION, **body: object
) -> Iterator[Iterator[ServerSentEvent]]:
    """Yield the events of an answer as they arrive."""
    with (
        httpx.Client(base_url=url, timeout=20, trust_env=False) as client,
        connect_sse(client, "POST", "/ask", json={"question": question, **body}) as source,
    ):
        assert source.response.headers["content-type"].startswith("text/event-stream")
        yield source.iter_sse()


def test_events_are_sent_in_order(serve: Serve, model_server: ModelServer) -> None:
    model_server.reply(structured(), draft(*STEPS))
    with serve() as url, stream_events(url) as stream:
        received = list(stream)

    assert [event.event for event in received] == [
        "structured",
        "sources",
        "step",
        "step",
        "answer",
    ]
    assert received[0].json()["apiName"] == "订单发货"
    sources = received[1].json()["sources"]
    assert [source["number"] for source in sources] == list(range(1, len(sources) + 1))
    assert [received[2].json()["text"], received[3].json()["text"]] == list(STEPS)
    answer = Answer.model_validate(received[-1].json())
    assert answer.answer == list(STEPS)
    assert answer.sources[0].text == sources[0]["text"]
    assert model_server.chat_requests[1].body["stream"] is True


def test_steps_are_held_until_one_is_supported(serve: Serve, model_server: ModelServer) -> None:
    """Steps without support may be replaced by a quote, which clients that append text cannot show."""
    unsupported = "清晨的海边有许多贝壳。[1]"
    model_server.reply(structured(), draft(unsupported), structured(), draft(unsupported, *STEPS))
    with serve() as url:
        with stream_events(url) as stream:
            replaced = list(stream)
        with stream_events(url) as stream:
            kept = list(stream)
    assert unsupported not in "".join(event.data for event in replaced)
    steps = [event.json() for event in kept if event.event == "step"]
    assert [step["text"] for step in steps] == [unsupported, *STEPS]
    assert [step["number"] for step in steps] == [1, 2, 3]
    assert [step["supported"] for step in steps] == [False, True, True]
    assert [event.event for event in kept].count("sources") == 1


@pytest.mark.acceptance
def test_step_is_sent_before_the_model_finishes(serve: Serve, model_server: ModelServer) -> None:
    """The model falls silent within its second step, after the first was sent."""
    model_server.reply(structured())
    model_server.default = interrupted_answer
    with serve(request_timeout=6) as url, stream_events(url) as stream:
        received = [next(stream) for _ in range(3)]
        assert [event.event for event in received] == ["structured", "sources", "step"]
        assert received[-1].json() == {
            "number": 1, "text": STEPS[0], "unverified": [], "supported": True,
        }  # fmt: skip
        rest = list(stream)

    # The model never ended: the documents are quoted, and the steps are sent again after `sources`.
    assert [event.event for event in rest[:2]] == ["sources", "step"]
    answer = Answer.model_validate(rest[-1].json())
    assert answer.answered_by == "extractive"
    assert [e.json()["text"] for e in rest if e.event == "step"] == answer.answer


def test_step_of_a_second_attempt_is_sent_before_the_model_finishes(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.reply(structured(), "This reply is not JSON. " * 200)
    model_server.default = interrupted_answer
    with serve(request_timeout=6) as url, stream_events(url) as stream:
        received = [next(stream) for _ in range(3)]
    assert [event.event for event in received] == ["structured", "sources", "step"]
    assert received[-1].json()["text"] == STEPS[0]


def test_streamed_tool_call_needs_no_finish_reason(serve: Serve, model_server: ModelServer) -> None:
    def called(request: Recorded) -> Reply:
        arguments = draft(*STEPS).model_dump(mode="json", by_alias=True)
        reply = Reply(tool_calls=(ToolCall("answer", arguments),))
        sent = [e for e in events(reply, request) if b'"finish_reason": "' not in e]
        return Reply(body=b"".join(sent))

    model_server.reply(structured(), called)
    with serve() as url, stream_events(url) as stream:
        answer = Answer.model_validate(list(stream)[-1].json())
    assert answer.answer == list(STEPS)
    assert len(model_server.chat_requests) == 2


def ended_answer(request: Recorded) -> Reply:
    """Return a reply whose stream ends in order within the second step, without a finish reason."""
    reply = interrupted_answer(request)
    return Reply(body=b"".join(events(reply, request))[: reply.reset_after])


def test_stream_without_an_end_is_repeated(serve: Serve, model_server: ModelServer) -> None:
    model_server.reply(structured(), ended_answer, draft(*STEPS))
    with serve() as url, stream_events(url) as stream:
        answer = Answer.model_validate(list(stream)[-1].json())
    assert answer.answer == list(STEPS)
    assert answer.degraded is None


@pytest.mark.usefixtures("no_backoff")
def test_streams_without_an_end_are_a_model_failure(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.reply(structured())
    model_server.default = ended_answer
    with serve() as url, stream_events(url) as stream:
        answer = Answer.model_validate(list(stream)[-1].json())
    assert answer.answered_by == "extractive"
    assert answer.degraded == "model_unavailable"


def test_disconnect_cancels_the_model_call(serve: Serve, model_server: ModelServer) -> None:
    model_server.reply(structured())
    model_server.default = interrupted_answer
    with serve(request_timeout=60) as url:
        with stream_events(url) as stream:
            assert [next(stream).event for _ in range(3)][-1] == "step"
        assert model_server.abandoned.wait(10)


def test_disconnect_before_the_first_event_cancels_the_model_call(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.default = Reply(structured(), action="stall")
    with (
        serve(request_timeout=60) as url,
        httpx.Client(base_url=url, timeout=0.5, trust_env=False) as client,
    ):
        with (
            pytest.raises(httpx.ReadTimeout),
            connect_sse(client, "POST", "/ask", json={"question": QUESTION}) as source,
        ):
            next(source.iter_sse())
        assert model_server.abandoned.wait(10)


def test_stream_usage_is_requested_once_from_a_server_without_it(
    serve: Serve, model_server: ModelServer
) -> None:
    def says(request: Recorded) -> Said:
        if "stream_options" in request.body:
            return Reply("Unrecognized request argument: stream_options", status=400)
        return structured() if is_classification(request) else draft(*STEPS)

    model_server.default = says
    with serve() as url:
        for _ in range(2):
            with stream_events(url) as stream:
                answer = list(stream)[-1].json()
            assert answer["answer"] == list(STEPS)
            assert answer["degraded"] is None
    assert sum("stream_options" in request.body for request in model_server.chat_requests) == 1


def test_structured_is_sent_again_if_rules_classify_after_all_models_failed(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.default = Reply("no", status=400)
    with serve() as url, stream_events(url) as stream:
        received = list(stream)
    assert received[0].event == "structured"
    classifications = [event.json() for event in received if event.event == "structured"]
    assert [each["type"] for each in classifications] == ["general", "api_call"]
    assert classifications[-1] == received[-1].json()["structured"]


def test_heartbeat_is_sent_while_the_model_is_silent(
    serve: Serve, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_INTERVAL_S", 0.05)
    model_server.reply(Reply(structured(), delay=0.5), draft(*STEPS))
    with (
        serve() as url,
        httpx.Client(base_url=url, timeout=20, trust_env=False) as client,
        client.stream(
            "POST", "/ask", json={"question": QUESTION}, headers={"accept": "text/event-stream"}
        ) as response,
    ):
        lines = list(response.iter_lines())
    assert lines.count(":") + lines.count(": ") >= 3
    assert any(line == "event: answer" for line in lines)


def test_error_after_the_first_byte_is_an_event(serve: Serve, model_server: ModelServer) -> None:
    model_server.reply(structured(), *[Reply("no", status=400)] * 9)
    with serve(on_model_failure="error") as url, stream_events(url) as stream:
        received = list(stream)
    assert received[0].event == "structured"
    assert received[-1].event == "error"
    problem = received[-1].json()
    assert (problem["status"], problem["code"]) == (503, "model_refused")
    assert "APIDESK_CHAT_MODEL" in problem["detail"]


@pytest.mark.parametrize(
    ("body", "replies", "status"),
    [
        ({"question": " "}, [], 400),
        ({"question": QUESTION, "k": 0}, [], 400),
        ({"question": QUESTION}, [Reply("no", status=401)] * 9, 503),
    ],
)
def test_error_before_the_first_byte_is_a_problem(
    serve: Serve, model_server: ModelServer, body: dict[str, Any], replies: list[Reply], status: int
) -> None:
    model_server.reply(*replies)
    with serve(on_model_failure="error") as url:
        accept = {"accept": "text/event-stream"}
        response = httpx.post(f"{url}/ask", json=body, headers=accept, trust_env=False)
    assert response.status_code == response.json()["status"] == status
    assert response.headers["content-type"] == "application/problem+json"
    model_server.replies.clear()


def test_extractive_answers_and_refusals_are_streamed(serve: Serve) -> None:
    with serve(chat_model="extractive") as url:
        for question, kind in ((QUESTION, "api_call"), ("今天天气怎么样", "unknown")):
            with stream_events(url, question) as stream:
                received = list(stream)
            answer = Answer.model_validate(received[-1].json())
            assert answer.type == kind
            assert [e.event for e in received[:2]] == ["structured", "sources"]
            assert [e.json()["text"] for e in received if e.event == "step"] == answer.answer
            assert len(received[1].json()["sources"]) == len(answer.sources)


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/html, */*", ""])
def test_json_is_the_default_format(sample_service: AnswerService, accept: str) -> None:
    with live_server(sample_service) as url:
        response = httpx.post(
            f"{url}/ask", json={"question": QUESTION}, headers={"accept": accept}, trust_env=False
        )
    assert response.headers["content-type"] == "application/json"
    assert Answer.model_validate(response.json()).answer


def test_terminal_shows_steps_as_they_arrive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps are shown on stderr; another `sources` event removes them."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal

    async def received() -> None:
        async with live_answer() as listener:
            assert listener is not None
            await listener(Event("sources", Sources(sources=[])))
            await listener(Event("step", step(1, "first by the first model")))
            await listener(Event("sources", Sources(sources=[])))
            await listener(Event("step", step(1, "first by the second")))

    asyncio.run(received())
    shown = capsys.readouterr()
    assert shown.out == ""
    last = shown.err.rpartition("first by the second")
    assert "first by the first model" in last[0]
    assert "first by the first model" not in last[2]


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    async def received() -> EventSink | None:
        async with live_answer() as listener:
            return listener

    assert asyncio.run(received()) is None
    assert capsys.readouterr().err == ""


def step(number: int, text: str) -> Step:
    return Step(number=number, text=text, unverified=[], supported=True)


WHOLE = json.dumps({"question": "q", "answer": ["一 [1]", 'two "x"', "三"], "relatedUrl": []})


@pytest.mark.parametrize("end", range(0, len(WHOLE) + 1, 3))
@pytest.mark.parametrize("before", ["", "<think>{}</think>", "```json\n", "Here:\n"])
def test_only_complete_steps_are_parsed(before: str, end: int) -> None:
    steps = complete_steps(before + WHOLE[:end])
    assert steps == ["一 [1]", 'two "x"', "三"][: len(steps)]
    if end == len(WHOLE):
        assert len(steps) == 3
    for step in steps:
        assert json.dumps(step) in WHOLE[:end]


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{", '{"answer": "one"', '{"answer": [{"a": 1}]}', "[1", "{]"]
)
def test_text_that_is_not_a_list_of_steps_yields_no_steps(text: str) -> None:
    assert complete_steps(text) == []
