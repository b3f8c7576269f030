"""Several chat models: the fallback model and the structure model."""

from collections.abc import Iterator

import pytest

from ingestion.text.language import estimate_tokens
from tests.model_replies import CHAT, DOWN, MakeClient, answer_all, ask, chat, draft, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import completion, encoded

pytestmark = pytest.mark.usefixtures("no_backoff")

QUESTION = "发货接口是哪个"
SECOND = "openai:second"


@pytest.fixture
def second_server() -> Iterator[ModelServer]:
    """The server of the fallback or of the structure model."""
    with ModelServer() as server:
        yield server
    assert not server.faults


# --- the fallback model ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Reply(status=401), "model_refused"),
        (DOWN, "model_unavailable"),
        (Reply(""), "model_output_invalid"),
    ],
)
def test_fallback_model_answers_if_the_first_fails(
    serve_samples: MakeClient,
    model_server: ModelServer,
    second_server: ModelServer,
    failure: Reply,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "chat_fallback", SECOND))
    model_server.default = failure
    answer_all(second_server, "提交发货用“订单发货”接口。[1]")

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["提交发货用“订单发货”接口。[1]"]
    assert answer["answeredBy"] == SECOND
    assert answer["degraded"] == reason
    assert f"APIDESK_CHAT_MODEL={CHAT}" in caplog.text
    assert answer["type"] == "api_call"


@pytest.mark.acceptance
def test_fallback_model_answers_if_the_first_is_silent(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    fallback = chat(second_server, "chat_fallback", SECOND)
    client = serve_samples(**chat(model_server), **fallback, request_timeout=6)
    model_server.default = Reply(action="stall")
    answer_all(second_server, "提交发货用“订单发货”接口。[1]")

    answer = ask(client, QUESTION)

    assert answer["answeredBy"] == SECOND
    assert answer["degraded"] == "model_timeout"
    assert answer["type"] == "api_call"
    checks = client.get("/health/ready").json()["checks"]
    assert checks["model:chat"]["status"] == "degraded"
    assert checks["model:chat_fallback"]["status"] == "ok"


def test_fallback_model_is_not_called_otherwise(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "chat_fallback", SECOND))
    answer_all(model_server)
    assert ask(client, QUESTION)["degraded"] is None
    assert not second_server.requests


def test_error_of_the_first_model_is_reported(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "chat_fallback", SECOND))
    model_server.default, second_server.default = Reply(status=401), DOWN

    answer = ask(client, QUESTION)

    assert answer["answeredBy"] == "extractive"
    assert answer["degraded"] == "model_refused"


# --- two models -----------------------------------------------------------------------------------


def test_structure_model_classifies_and_structures(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "structure", SECOND))
    second_server.reply(structured(), draft("用“订单发货”接口。[1]"))
    model_server.reply("用“订单发货”接口。[1]")

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["用“订单发货”接口。[1]"]
    assert answer["answeredBy"] == CHAT
    assert answer["degraded"] is None
    (write,) = model_server.chat_requests
    classify, structure = second_server.chat_requests
    assert "json_schema" not in write.text
    assert "response_format" not in write.body
    assert "<documents>" in write.text
    assert "<written>" not in classify.text
    assert "用“订单发货”接口。[1]" in structure.text


def test_empty_text_without_a_finish_reason_is_not_structured(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    def empty(request: Recorded) -> Reply:
        whole = completion(Reply(""), request)
        whole["choices"][0]["finish_reason"] = None
        return Reply(body=encoded(whole))

    client = serve_samples(**chat(model_server), **chat(second_server, "structure", SECOND))
    second_server.reply(structured(), draft("用“订单发货”接口。[1]"))
    model_server.reply(empty, "用“订单发货”接口。[1]")

    assert ask(client, QUESTION)["degraded"] is None
    assert "用“订单发货”接口。[1]" in second_server.chat_requests[1].text
    assert len(model_server.chat_requests) == 2


@pytest.mark.parametrize("failure", [Reply(status=401), DOWN, Reply("no JSON here")])
def test_lines_become_steps_if_the_structure_model_fails(
    serve_samples: MakeClient,
    model_server: ModelServer,
    second_server: ModelServer,
    failure: Reply,
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "structure", SECOND))
    second_server.reply(structured())
    second_server.default = failure
    model_server.reply("1. 用“订单发货”接口。[1]\n\n- 先申请权限。[1]\n")

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["用“订单发货”接口。[1]", "先申请权限。[1]"]
    assert answer["confidence"] == "low"
    assert answer["answeredBy"] == CHAT


@pytest.mark.parametrize(
    ("end", "step", "degraded"),
    [("]}", "先申请权限。[1]", None), ("", None, "answer_incomplete")],
)
def test_json_of_the_chat_model_is_read_if_the_structure_model_fails(
    serve_samples: MakeClient,
    model_server: ModelServer,
    second_server: ModelServer,
    end: str,
    step: str | None,
    degraded: str | None,
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "structure", SECOND))
    second_server.reply(structured())
    second_server.default = Reply(status=401)
    last = '"先申请权限。[1]"' if step else '"先申请'
    model_server.reply(f'{{"answer": ["用“订单发货”接口。[1]", {last}{end}')

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["用“订单发货”接口。[1]", *([step] if step else [])]
    assert answer["degraded"] == degraded
    assert answer["answeredBy"] == CHAT


def test_broken_json_of_the_chat_model_is_not_shown(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    client = serve_samples(**chat(model_server), **chat(second_server, "structure", SECOND))
    second_server.reply(structured())
    second_server.default = Reply(status=401)
    model_server.reply('{"answer": ["用“订单')

    answer = ask(client, QUESTION)

    assert answer["answeredBy"] == "extractive"
    assert answer["degraded"] == "model_output_invalid"


def test_schema_is_not_counted_with_a_structure_model(
    serve_samples: MakeClient, model_server: ModelServer, second_server: ModelServer
) -> None:
    answer_all(second_server)
    model_server.default = "发货用“订单发货”接口。[1]"
    client = serve_samples(
        **chat(model_server), **chat(second_server, "structure", SECOND), chat_context_tokens=2_500
    )
    ask(client, QUESTION, k=10)
    assert estimate_tokens(model_server.chat_requests[-1].text) <= 2_500 * 0.75
