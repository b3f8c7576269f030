"""Misbehaving models: the caller gets an answer or a documented problem, whatever the model sends."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from schemas.answer import Answer, AnswerDraft
from schemas.question import StructuredQuestion
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("no_backoff")]

QUESTION = "发货接口是哪个"
STEP = "用“订单发货”接口。[1]"
MODEL = "openai:scripted-chat"
INVALID = "model_output_invalid"
UNAVAILABLE = "model_unavailable"
TIMEOUT = "model_timeout"
REFUSED = "model_refused"
STATUS = {INVALID: 502, UNAVAILABLE: 503, REFUSED: 503, TIMEOUT: 504}
"""Codes of the documented problems of models."""

Bend = Callable[[str], Said]
"""Turns the JSON of a good model into the reply of a misbehaving one."""


def good(request: Recorded) -> str:
    """Return the reply of a good model."""
    reply = structured() if is_classification(request) else draft(STEP)
    return reply.model_dump_json(by_alias=True)


def bent(bend: Bend) -> Callable[[Recorded], Said]:
    """Return a script that applies `bend` to every reply."""
    return lambda request: bend(good(request))


def fields(text: str) -> dict[str, Any]:
    """Return the object in `text` if it is an answer; classifications are left alone."""
    value: dict[str, Any] = json.loads(text)
    return value


def changed(**changes: object) -> Bend:
    """Replace fields of the answer; leave the classification unchanged."""

    def bend(text: str) -> str:
        value = fields(text)
        return json.dumps(value | changes) if "answer" in value else text

    return bend


def without(*names: str) -> Bend:
    """Remove fields from the reply."""
    return lambda text: json.dumps({k: v for k, v in fields(text).items() if k not in names})


def schema_of(text: str) -> str:
    """Return the schema instead of an object."""
    schema = AnswerDraft if "answer" in fields(text) else StructuredQuestion
    return json.dumps(schema.model_json_schema())


def raw(content: str) -> Bend:
    """Return a completion with `content` inserted unescaped into a JSON string."""
    choice = '{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}'
    body = (
        '{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[' + choice + "]}"
    )
    return lambda _: Reply(body=(body % content).encode("utf-8", "surrogateescape"))


SERVED: list[Any] = [
    pytest.param(lambda t: f"好的，这是结果：\n{t}\n希望有帮助！", id="prose around"),
    pytest.param(
        lambda t: f"Use {{this}} as is: {t} (see {{that}})", id="prose with braces around"
    ),
    pytest.param(lambda t: f"```json\n{t}\n```", id="fence"),
    pytest.param(lambda t: f"Sure!\n```json\n{t}", id="unclosed fence"),
    pytest.param(lambda t: f"<think>Maybe {{}}?</think>\n{t}", id="thinking"),
    pytest.param(
        lambda t: f'<think>{{"answer": ["{"x" * 300}"]}}</think>{t}', id="thinking in JSON"
    ),
    pytest.param(lambda t: f"They ask for…\n</think>\n{t}", id="thinking that nothing opens"),
    pytest.param(lambda t: f"<think>Hm. {t}", id="unclosed thinking"),
    pytest.param(lambda t: f"{schema_of(t)}\n{t}", id="schema, then the object"),
    pytest.param(changed(answer=STEP), id="answer is a string"),
    pytest.param(changed(relatedUrl=None), id="links are null"),
    pytest.param(changed(relatedUrl=[1, None, {}]), id="links are numbers"),
    pytest.param(changed(question=None, introduction=None), id="texts are null"),
    pytest.param(changed(answer=[{"step": STEP}]), id="steps are objects"),
    pytest.param(lambda t: json.dumps(fields(t) | {"mood": "sunny"}), id="a field more"),
    pytest.param(
        without("question", "introduction", "relatedUrl", "requestParam"), id="fields less"
    ),
    pytest.param(lambda t: json.dumps({"answer": fields(t)}), id="wrapped in answer"),
    pytest.param(lambda t: json.dumps({"result": fields(t)}), id="wrapped in result"),
    pytest.param(lambda t: json.dumps([fields(t)]), id="in a list"),
    pytest.param(lambda t: t.replace('"', "'"), id="single quotes"),
    pytest.param(lambda t: t[:-1] + ",}", id="comma at the end"),
    pytest.param(lambda t: t[:-1], id="no brace at the end"),
    pytest.param(lambda t: Reply(t[:-1], finish_reason="length"), id="out of length"),
    pytest.param(lambda t: '{"answer": ["no"], "type": "unknown", ' + t[1:], id="duplicate keys"),
    pytest.param(lambda t: '{"response": NaN, "n": -Infinity, ' + t[1:], id="NaN and Infinity"),
    pytest.param(lambda t: '{"response": [1e999], ' + t[1:], id="a number too large for JSON"),
    pytest.param(lambda t: '{"response": ' + "9" * 5_000 + ", " + t[1:], id="5,000 digits"),
    pytest.param(
        lambda t: t[:-1] + r', "requestParam": {"\ud800": "\udfff"}, "error": "\ud83dx"}',
        id="lone surrogates in the classification",
    ),
    pytest.param(
        lambda t: t.replace("[1]", r"\ud800 \ud83d\ude00[1]"), id="lone surrogates in the answer"
    ),
    pytest.param(lambda t: f"\ufeff{t}\0", id="byte order mark and NUL"),
    pytest.param(
        lambda t: Reply(tool_calls=[ToolCall("AnswerDraft", t)], text=None), id="tool call"
    ),
    pytest.param(lambda t: Reply(text=t, delay=0.2), id="slow"),
    pytest.param(lambda t: Reply(text=t, chunk_size=64, chunk_delay=0.01), id="piece by piece"),
    pytest.param(lambda t: t + " " * 500_000, id="500 KB of blanks after it"),
    pytest.param(
        lambda t: json.dumps(fields(t) | {"requestParam": "size=L"}), id="parameters are text"
    ),
]
"""Replies that can be parsed."""


@pytest.mark.parametrize("bend", SERVED)
def test_readable_replies_are_served(
    model_client: MakeClient, model_server: ModelServer, bend: Bend
) -> None:
    model_server.default = bent(bend)

    answer = answered(model_client())

    assert "订单发货" in " ".join(answer.answer)
    assert answer.answered_by == MODEL
    assert answer.degraded is None
    assert answer.type == "api_call"


AS_TEXT = [
    pytest.param(lambda _: f"{STEP}\n" * 20_000, id="500 KB of text"),
    pytest.param(lambda _: STEP, id="plain text"),
    pytest.param(lambda _: f"They ask…</think>{STEP}", id="plain text after thinking"),
    pytest.param(raw(r"订单发货 \ud800"), id="plain text with a lone surrogate"),
    pytest.param(lambda _: Reply(refusal="订单发货：I cannot help"), id="refusal field"),
]
"""Replies without JSON: accepted as an answer, not as a classification."""


@pytest.mark.parametrize("bend", AS_TEXT)
def test_text_is_accepted_as_an_answer_but_not_as_a_classification(
    model_client: MakeClient, model_server: ModelServer, bend: Bend
) -> None:
    model_server.default = bent(bend)

    answer = answered(model_client())

    assert answer.confidence == "low"
    assert answer.answered_by in (MODEL, "extractive")
    assert answer.degraded in (INVALID, "question_not_classified")
    assert "</think>" not in " ".join(answer.answer)
    refused(model_client(on_model_failure="error"), INVALID, UNAVAILABLE)

    model_server.default = lambda r: good(r) if is_classification(r) else bend(good(r))
    answer = answered(model_client())
    assert answer.confidence in ("low", "medium")
    # A text that says too little to find its source becomes "not covered".
    assert "订单发货" in " ".join(answer.answer) or answer.nearest


def test_refusal_as_text_is_not_shown_as_an_answer(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    refusal = "I'm sorry, but I can't talk about 订单发货."
    model_server.default = lambda r: good(r) if is_classification(r) else refusal
    answer = answered(model_client())
    assert answer.confidence == "low"
    assert refusal not in " ".join(answer.answer)
    assert answer.nearest


DEGRADED = [
    pytest.param(schema_of, INVALID, id="schema echoed"),
    pytest.param(lambda _: "", INVALID, id="empty"),
    pytest.param(lambda _: Reply(text=None), INVALID, id="null"),
    pytest.param(lambda _: "<think>Well, {", INVALID, id="thinking only"),
    pytest.param(lambda _: "{}", INVALID, id="an empty object"),
    pytest.param(lambda _: '{"answer": [], "type": "?"}', INVALID, id="no steps"),
    pytest.param(lambda _: '{"answer": 5, "type": 5}', INVALID, id="numbers"),
    pytest.param(lambda _: '{"response": ' * 20_000, INVALID, id="nested without end"),
    pytest.param(
        lambda _: '{"type": "general", "response": ' + "[" * 900 + "]" * 900 + "}",
        INVALID,
        id="nested deeply",
    ),
    pytest.param(lambda _: '{"mood": "' + "x" * 500_000, INVALID, id="500 KB of JSON"),
    pytest.param(lambda _: '{"mood": ["' + '"a' * 30_000, INVALID, id="slow to repair"),
    pytest.param(lambda _: Reply(status=400, text="no"), REFUSED, id="400"),
    pytest.param(lambda _: Reply(status=500), UNAVAILABLE, id="500"),
    pytest.param(lambda _: Reply(status=429, headers={"retry-after": "0"}), UNAVAILABLE, id="429"),
    pytest.param(
        lambda _: Reply(status=429, headers={"retry-after": "86400"}),
        UNAVAILABLE,
        id="429 for a day",
    ),
    pytest.param(lambda t: Reply(t, action="reset"), UNAVAILABLE, id="reset at once"),
    pytest.param(
        lambda t: Reply(t, action="reset", reset_after=40), UNAVAILABLE, id="reset mid-body"
    ),
    pytest.param(
        lambda t: Reply(t, action="close", reset_after=40), UNAVAILABLE, id="closed mid-body"
    ),
    pytest.param(
        lambda _: Reply(body=b"<html>Bad gateway</html>", headers={"content-type": "text/html"}),
        UNAVAILABLE,
        id="a page of HTML",
    ),
    pytest.param(raw("订单发货 \udcff\udcfe"), UNAVAILABLE, id="a body that is not UTF-8"),
    pytest.param(lambda _: Reply(body=b"{"), UNAVAILABLE, id="a body that is not JSON"),
    pytest.param(lambda _: Reply(body=b'{"choices": []}'), UNAVAILABLE, id="no choices"),
    pytest.param(lambda _: Reply(body=b"[]"), UNAVAILABLE, id="a list for a completion"),
    pytest.param(lambda _: Reply("", finish_reason="content_filter"), INVALID, id="filtered"),
]
"""Behaviours without a usable reply, with the code of their problem."""


@pytest.mark.parametrize(("bend", "code"), DEGRADED)
def test_unusable_replies_fall_back_or_raise_the_problem(
    model_client: MakeClient, model_server: ModelServer, bend: Bend, code: str
) -> None:
    model_server.default = bent(bend)

    answer = answered(model_client())

    assert answer.answered_by == "extractive"
    assert answer.degraded == code
    assert answer.sources
    refused(model_client(on_model_failure="error"), code)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda t: Reply(t, action="stall"), id="no answer"),
        pytest.param(lambda t: Reply(t, action="stall", reset_after=40), id="half an answer"),
        pytest.param(lambda t: Reply(t, chunk_size=1, chunk_delay=1), id="a byte a second"),
    ],
)
def test_every_outcome_meets_the_deadline(
    model_client: MakeClient, model_server: ModelServer, reply: Bend
) -> None:
    model_server.default = bent(reply)
    deadline = 4

    def asked(client: TestClient[Litestar]) -> tuple[Any, float]:
        started = time.monotonic()
        return client.post("/ask", json={"question": QUESTION}), time.monotonic() - started

    clients = [
        model_client(request_timeout=deadline),
        model_client(request_timeout=deadline, on_model_failure="error"),
    ]
    with ThreadPoolExecutor() as pool:
        (fallback, seconds), (failed, failure_seconds) = pool.map(asked, clients)

    assert fallback.status_code == 200, fallback.text
    answer = Answer.model_validate(fallback.json())
    assert answer.answered_by == "extractive"
    assert answer.degraded == TIMEOUT
    assert failed.json()["code"] == TIMEOUT
    assert max(seconds, failure_seconds) < deadline + 1


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("{" * 500_000, id="500 KB of braces"),
        pytest.param('{"mood": ["' + '"a' * 30_000, id="slow to repair"),
    ],
)
def test_reply_does_not_block_the_event_loop(
    sample_service: AnswerService, model_server: ModelServer, reply: str
) -> None:
    """Other requests are served while a hostile reply is parsed."""
    model_server.default = reply
    settings = sample_service.settings.model_copy(update=model_server.settings)
    service = AnswerService(settings, sample_service.platform, sample_service.job)

    async def longest_pause() -> float:
        answering = asyncio.create_task(service.ask(AskCommand(QUESTION)))
        pauses = [0.0]
        while not answering.done():
            started = time.monotonic()
            await asyncio.sleep(0.01)
            pauses.append(time.monotonic() - started)
        assert (await answering).degraded == INVALID
        return max(pauses)

    assert asyncio.run(longest_pause()) < 3


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([Reply(status=429, headers={"retry-after": "0"})] * 2, id="429 twice"),
        pytest.param([Reply(status=500)], id="500"),
        pytest.param([Reply(action="reset", reset_after=9)], id="reset"),
        pytest.param([Reply("{}")], id="nonsense"),
    ],
)
def test_recoverable_failures_do_not_degrade_the_answer(
    model_client: MakeClient, model_server: ModelServer, failures: list[Reply]
) -> None:
    model_server.reply(*failures)
    model_server.default = bent(str)

    answer = answered(model_client())

    assert answer.answer == [STEP]
    assert answer.degraded is None
    assert len(model_server.chat_requests) == len(failures) + 2


@pytest.mark.parametrize(
    ("refused_modes", "first", "then"),
    [
        (["json_schema"], ["json_schema", "json_object", "json_object"], ["json_object"] * 2),
        (
            ["json_schema", "json_object"],
            ["json_schema", "json_object", "json_object", None, None],
            [None, None],
        ),
    ],
)
def test_refused_output_mode_is_not_tried_again(
    model_client: MakeClient,
    model_server: ModelServer,
    refused_modes: list[str],
    first: list[str | None],
    then: list[str | None],
) -> None:
    client = model_client()
    model_server.route(
        lambda request: mode(request) in refused_modes,
        Reply("response_format is not supported", status=400),
    )
    model_server.default = bent(str)

    assert answered(client).answer == [STEP]
    assert [mode(r) for r in model_server.chat_requests] == first
    assert answered(client).answer == [STEP]
    assert [mode(r) for r in model_server.chat_requests[len(first) :]] == then


def test_mode_that_ends_in_server_errors_is_not_tried_again(
    model_client: MakeClient, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """llama-cpp-python answers 500 to a JSON schema."""
    client = model_client()
    reason = Reply("Input should be 'json_object', not with sk-secret", status=500)
    model_server.route(lambda request: mode(request) == "json_schema", reason)
    model_server.default = bent(str)

    answer = answered(client)

    assert answer.degraded is None
    assert answer.answered_by == MODEL
    modes = [mode(request) for request in model_server.chat_requests]
    assert modes == ["json_schema", "json_object"] * 2
    assert answered(client).degraded is None
    assert [mode(r) for r in model_server.chat_requests[4:]] == ["json_object"] * 2
    assert "Input should be 'json_object'" in caplog.text
    assert "secret" not in caplog.text


def test_single_server_error_does_not_change_the_mode(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(Reply(status=500))
    model_server.default = bent(str)
    client = model_client()

    answered(client)
    answered(client)

    modes = [mode(request) for request in model_server.chat_requests]
    assert modes == ["json_schema", "json_object", *["json_schema"] * 3]


def test_schema_is_sent_with_the_format_json_object(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    """llama-cpp-python constrains replies to such a schema; other servers refuse it."""
    refuses_schema = False

    def reply(request: Recorded) -> Said:
        form = request.body["response_format"]
        if form["type"] == "json_schema" or ("schema" in form and refuses_schema):
            return Reply("unknown parameter", status=400)
        return good(request)

    model_server.default = reply
    assert answered(model_client()).degraded is None
    write = model_server.chat_requests[-1].body["response_format"]
    assert "answer" in write["schema"]["properties"]

    refuses_schema = True
    assert answered(model_client()).degraded is None
    assert model_server.chat_requests[-1].body["response_format"] == {"type": "json_object"}


def test_answer_cut_at_any_character_is_served(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    client = model_client()
    steps = [STEP, "再看返回码。[2]"]
    whole = draft(*steps).model_dump_json(by_alias=True)
    served = 0
    for point in range(50):
        text = whole[: point * len(whole) // 50]
        model_server.default = lambda r, text=text: good(r) if is_classification(r) else text
        answer = answered(client)
        if answer.answered_by == MODEL:
            assert answer.answer == steps[: len(answer.answer)]
            if answer.degraded is None:  # only the last brace is missing
                assert answer.answer == steps
            else:
                assert answer.degraded == "answer_incomplete"
                assert answer.confidence != "high"
            served += 1
        else:
            assert answer.degraded == INVALID
    assert served >= 10


@needs_shared_data
def test_broken_json_gets_an_answer(model_client: MakeClient, model_server: ModelServer) -> None:
    client = model_client()
    lines = (SHARED_DATA / "json_repair_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        model_server.default = str(json.loads(line)["input"])
        answered(client)


def test_random_misbehaviour_gets_an_answer_or_a_problem(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    count, deadline = 300, 3
    chance = random.Random(20)
    bends = [case.values[0] for case in (*SERVED, *AS_TEXT, *DEGRADED)]
    never: Bend = lambda text: Reply(text, action="stall")  # noqa: E731

    def misbehave(request: Recorded) -> Said:
        lot = chance.random()
        bend: Bend = str if lot < 0.3 else never if lot > 0.98 else chance.choice(bends)
        return bend(good(request))

    model_server.default = misbehave
    clients = [
        model_client(request_timeout=deadline, on_model_failure=what)
        for what in ("extractive", "error")
    ]

    def one(number: int) -> tuple[bool, bool]:
        """Whether the request returned 200 in time."""
        started = time.monotonic()
        response = clients[number % 2].post("/ask", json={"question": QUESTION})
        seconds = time.monotonic() - started
        if response.status_code == 200:
            Answer.model_validate_json(response.content)
        else:
            assert response.status_code == STATUS[response.json()["code"]], response.text
        return response.status_code == 200, seconds < deadline + 1

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(one, range(count)))

    assert len(outcomes) == count
    assert all(in_time for _, in_time in outcomes)
    assert any(answered for answered, _ in outcomes[::2])
    assert any(answered for answered, _ in outcomes[1::2])


def mode(request: Recorded) -> str | None:
    """Return the output mode of a request."""
    kind: str | None = request.body.get("response_format", {}).get("type")
    return kind


def answered(client: TestClient[Litestar]) -> Answer:
    """Return the validated answer to the question."""
    return Answer.model_validate(ask(client, QUESTION))


def refused(client: TestClient[Litestar], *codes: str) -> None:
    """Check that the question ends in a documented problem."""
    response = client.post("/ask", json={"question": QUESTION})
    problem = response.json()
    assert problem["code"] in codes, response.text
    assert response.status_code == problem["status"] == STATUS[problem["code"]]
    assert response.headers["content-type"] == "application/problem+json"
