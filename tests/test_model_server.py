"""The scripted model server, tested with the clients of real providers."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from tests.model_script import Recorded, Reply, Scripted, ToolCall
from tests.model_server import ModelServer

KEY = "any"


class Verdict(BaseModel):
    """An answer with a structure."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    is_true: bool
    why: str


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(server: ModelServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.base_url, api_key=KEY, max_retries=0, timeout=5) as opened:
        yield opened


def ask(client: OpenAI, question: str = "why?") -> ChatCompletion:
    """One plain call."""
    return client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": question}]
    )


def said(client: OpenAI, question: str = "why?") -> str | None:
    """Return the model's reply to `question`."""
    return ask(client, question).choices[0].message.content


def stream(client: OpenAI, with_usage: bool = False) -> list[ChatCompletionChunk]:
    """The chunks of one streamed call."""
    chunks = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "why?"}],
        stream=True,
        stream_options={"include_usage": with_usage},
    )
    return list(chunks)


def connect(server: ModelServer) -> closing[HTTPConnection]:
    """Open a raw connection."""
    return closing(HTTPConnection(urlsplit(server.base_url).netloc, timeout=5))


# --- what is said -------------------------------------------------------------------------------

VERDICT = Verdict(is_true=True, why="因为")
TEXTS: list[tuple[Scripted, str | None]] = [
    ("hello", "hello"),
    ("", ""),
    ({"因": [1, None]}, '{"因": [1, null]}'),
    (VERDICT, '{"isTrue":true,"why":"因为"}'),
    (Reply(VERDICT, delay=0.01), '{"isTrue":true,"why":"因为"}'),
    (Reply(refusal="no"), None),
    (lambda request: f"you said {request.text}", "you said why?"),
    (lambda request: Reply({"asked": request.text}), '{"asked": "why?"}'),
]


@pytest.mark.parametrize(("reply", "text"), TEXTS)
def test_plain_reply(
    server: ModelServer, client: OpenAI, reply: Scripted, text: str | None
) -> None:
    server.reply(reply)
    assert said(client) == text


@pytest.mark.parametrize(("reply", "text"), TEXTS)
def test_streamed_reply(
    server: ModelServer, client: OpenAI, reply: Scripted, text: str | None
) -> None:
    server.reply(reply)
    deltas = [chunk.choices[0].delta for chunk in stream(client)]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == (text or "")


def test_stream_is_chunked_and_finished(server: ModelServer, client: OpenAI) -> None:
    server.reply("0123456789", "0123456789")
    role, *pieces, finish = stream(client)
    assert role.choices[0].finish_reason is None
    assert [piece.choices[0].delta.content for piece in pieces] == ["0123", "4567", "89"]
    assert finish.choices[0].finish_reason == "stop"
    assert {chunk.id for chunk in (role, *pieces, finish)} == {role.id}
    *_, last = stream(client, with_usage=True)
    assert last.choices == []
    assert last.usage
    assert last.usage.completion_tokens == 2


def test_tool_calls(server: ModelServer, client: OpenAI) -> None:
    calls = [ToolCall("look", {"at": "这里"}), ToolCall("listen", "{broken", id="x")]
    server.reply(Reply(tool_calls=calls), Reply(tool_calls=calls))
    choice = ask(client).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    functions = [c.function for c in choice.message.tool_calls or () if c.type == "function"]
    assert [(f.name, f.arguments) for f in functions] == [
        ("look", '{"at": "这里"}'),
        ("listen", "{broken"),
    ]
    arguments = ["", ""]
    for chunk in stream(client):
        for call in chunk.choices[0].delta.tool_calls or ():
            assert call.function
            arguments[call.index] += call.function.arguments or ""
    assert arguments == ['{"at": "这里"}', "{broken"]


def test_refusal_finish_reason_and_usage(server: ModelServer, client: OpenAI) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    server.reply(Reply(refusal="no"), Reply("cut o", finish_reason="length", usage=usage))
    assert ask(client).choices[0].message.refusal == "no"
    second = ask(client)
    assert second.choices[0].finish_reason == "length"
    assert second.usage
    assert second.usage.model_dump(include=set(usage)) == usage


# --- which reply --------------------------------------------------------------------------------


def test_queued_replies_come_in_order_then_the_default(server: ModelServer, client: OpenAI) -> None:
    server.reply("one", "two")
    server.reply("three")
    server.default = "default"
    assert [said(client) for _ in range(5)] == ["one", "two", "three", "default", "default"]


def test_routes_take_precedence_and_serve_concurrent_calls(
    server: ModelServer, client: OpenAI
) -> None:
    together = threading.Barrier(2, timeout=5)

    def meet(request: Recorded) -> str:
        together.wait()
        return request.text.upper()

    server.reply("queued")
    server.route(lambda request: "苹果" in request.text, "apple")
    server.route(lambda request: request.text.startswith("m"), meet)
    server.route(lambda request: "苹果" in request.text, "too late")
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda q: said(client, q), ["m1", "苹果", "m2", "other"]))
    assert answers == ["M1", "apple", "M2", "queued"]


def raising(request: Recorded) -> str:
    raise KeyError(request.path)


def unserialisable(request: Recorded) -> dict[str, Any]:
    return {"oops": {1, 2}}


@pytest.mark.parametrize(
    ("replies", "fault"),
    [
        ([], "the script has run out"),
        ([raising], "the script raised KeyError"),
        ([unserialisable], "the script raised TypeError"),
    ],
)
def test_faults_of_the_script_are_recorded(
    server: ModelServer, replies: list[Scripted], fault: str
) -> None:
    server.reply(*replies)
    retrying = OpenAI(base_url=server.base_url, api_key=KEY, max_retries=2)
    with pytest.raises(openai.InternalServerError, match=fault):
        ask(retrying)
    assert len(server.requests) == 1
    assert fault in server.faults[0]


def test_requests_are_recorded(server: ModelServer, client: OpenAI) -> None:
    server.default = "yes"
    before = time.monotonic()
    ask(client, "问题")
    client.embeddings.create(model="e", input="text")
    client.models.list()
    assert [(r.method, r.path) for r in server.requests] == [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/models"),
    ]
    asked, embedded, listed = server.requests
    assert server.chat_requests == [asked]
    assert server.embedding_requests == [embedded]
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {"model": "m", "messages": [{"role": "user", "content": "问题"}]}
    assert json.loads(asked.raw) == asked.body
    assert asked.text == "问题"
    assert listed.body is None
    assert before <= asked.at <= embedded.at <= listed.at <= time.monotonic()


# --- statuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (Reply("bad", status=400), openai.BadRequestError, "bad"),
        (Reply(status=401), openai.AuthenticationError, "Unauthorized"),
        (Reply(status=429, headers={"retry-after": "7"}), openai.RateLimitError, "Too Many"),
        (Reply({"code": 7}, status=503), openai.InternalServerError, "code"),
        (Reply(status=529), openai.InternalServerError, "Unknown"),
        (Reply(status=500, body=b"<html>"), openai.InternalServerError, "500"),
    ],
)
@pytest.mark.parametrize("call", [ask, stream])
def test_error_statuses(
    server: ModelServer,
    client: OpenAI,
    call: Callable[[OpenAI], object],
    reply: Reply,
    error: type[openai.APIStatusError],
    message: str,
) -> None:
    server.reply(reply)
    with pytest.raises(error, match=message) as caught:
        call(client)
    assert caught.value.status_code == reply.status
    assert reply.headers.items() <= dict(caught.value.response.headers).items()


# --- embeddings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("one", ["one"]),
        (["one", "二"], ["one", "二"]),
        ([1, 2], ["1 2"]),
        ([[1, 2], [3]], ["1 2", "3"]),
    ],
)
@pytest.mark.parametrize(
    ("options", "encoding"), [({}, "base64"), ({"encoding_format": "float"}, "float")]
)
def test_embeddings(
    server: ModelServer,
    client: OpenAI,
    options: dict[str, Any],
    encoding: str,
    given: Any,
    texts: list[str],
) -> None:
    answer = client.embeddings.create(model="e", input=given, **options)
    assert server.requests[0].body["encoding_format"] == encoding
    assert [item.index for item in answer.data] == list(range(len(texts)))
    for item, text in zip(answer.data, texts, strict=True):
        assert item.embedding == pytest.approx(server.embed(text), abs=1e-6)


# --- the wire -----------------------------------------------------------------------------------

BODY = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "\xff"}}]}'


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("x", action="reset"), openai.APIConnectionError),
        (Reply("x", action="reset", reset_after=0), openai.APIConnectionError),
        (Reply("x", action="reset", reset_after=20), openai.APIConnectionError),
        (Reply("x", action="close"), openai.APIConnectionError),
        (Reply("x", action="close", reset_after=20), openai.APIConnectionError),
        (Reply("x", action="stall"), openai.APITimeoutError),
        (Reply("x", action="stall", reset_after=20), openai.APITimeoutError),
        (Reply("x", delay=3), openai.APITimeoutError),
        (Reply(body=b'{"choices": [', status=200), json.JSONDecodeError),
        (Reply(body=BODY), UnicodeDecodeError),
    ],
)
def test_misbehaviour(
    server: ModelServer, client: OpenAI, reply: Reply, error: type[Exception]
) -> None:
    server.reply(reply, "fine")
    with pytest.raises(error):
        ask(client.with_options(timeout=0.3))
    assert said(client) == "fine"


@pytest.mark.parametrize("action", ["reset", "close"])
def test_stream_is_aborted(server: ModelServer, client: OpenAI, action: Any) -> None:
    server.reply(Reply("0123456789", action=action, reset_after=600))
    chunks = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "why?"}], stream=True
    )
    assert next(chunks).choices[0].delta.role == "assistant"
    with pytest.raises(openai.APIConnectionError):
        list(chunks)


@pytest.mark.parametrize(
    ("action", "reset_after", "error"),
    [
        ("reset", None, ConnectionResetError),
        ("reset", 20, ConnectionResetError),
        ("close", None, RemoteDisconnected),
        ("close", 20, IncompleteRead),
    ],
)
def test_ends_on_the_wire(
    server: ModelServer, action: Any, reset_after: int | None, error: type[Exception]
) -> None:
    server.reply(Reply("0123456789", action=action, reset_after=reset_after))
    with connect(server) as connection:
        connection.request("POST", "/v1/chat/completions", b"{}")
        with pytest.raises(error) as caught:
            connection.getresponse().read()
    assert caught.type is error
    if isinstance(caught.value, IncompleteRead):
        assert len(caught.value.partial) == reset_after


def test_slow_stream(server: ModelServer) -> None:
    server.reply(Reply(body=b"12345678", chunk_size=1, chunk_delay=0.05))
    before = time.monotonic()
    with connect(server) as connection:
        connection.request("POST", "/v1/chat/completions", b"{}")
        response = connection.getresponse()
        assert response.read(1) == b"1"
        assert time.monotonic() - before < 0.2
        assert response.read() == b"2345678"
        assert time.monotonic() - before >= 0.35


def test_server_stops_with_open_connections(caplog: pytest.LogCaptureFixture) -> None:
    slow = Reply("x", chunk_size=1, chunk_delay=60)
    replies = [slow, Reply("x", action="stall"), Reply("x", delay=60)]
    with ThreadPoolExecutor() as pool, ExitStack() as connections:
        with ModelServer() as server:
            server.reply(*replies)
            client = OpenAI(base_url=server.base_url, api_key=KEY, max_retries=0)
            calls = [pool.submit(ask, client) for _ in replies]
            idle, halfway = (connections.enter_context(connect(server)) for _ in range(2))
            idle.request("GET", "/v1/models")
            idle.getresponse().read()
            while len(server.chat_requests) < len(replies):
                time.sleep(0.01)
            halfway.putrequest("POST", "/v1/chat/completions")
            halfway.endheaders(b"{")  # and the server may not even have accepted it yet
            before = time.monotonic()
        assert time.monotonic() - before < 1
        errors = [call.exception(timeout=5) for call in calls]
    assert all(isinstance(error, openai.APIConnectionError) for error in errors)
    assert "ERROR" not in caplog.text
