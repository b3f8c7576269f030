"""Traces: the run tree in LangSmith and in a collector, redaction, and unavailable servers."""

import asyncio
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from langsmith.utils import get_env_var
from pydantic import SecretStr
from structlog.contextvars import bound_contextvars

from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from app.telemetry.logs import configure_logging
from runnables.models.structured_output import probe_model
from schemas.answer import Answer
from schemas.errors import ConfigurationError, ModelRefused
from schemas.question import Turn
from schemas.settings import read_settings
from tests.http_client import http_client
from tests.langsmith_server import LangSmith, Run, langsmith_server
from tests.model_replies import draft, structured
from tests.model_script import Answer as ModelAnswer
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.otlp_server import Collector, attributes, collector

DOCS = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "operate.md"

QUESTION = "发货接口是哪个"
ANSWER = "订单发货用它。[1]"
SHIPPED = Turn(
    question=QUESTION,
    answer="订单发货。",
    api_name="订单发货",
    api_url=None,
    asked_at=datetime.now(UTC),
)

MAX_RUNS = 10
"""Maximum number of runs of a question that a model answers; LangChain's agent adds its own."""


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


class Traced(NamedTuple):
    """An answer and its trace."""

    answer: Answer
    trace: Run


MakeService = Callable[..., AnswerService]


@contextmanager
def open_services(sample_service: AnswerService, server: ModelServer) -> Iterator[MakeService]:
    """Create answer services with the samples and the scripted model, and close their tracing."""
    scripted = {
        "chat_model": "openai:scripted-chat",
        "chat_base_url": server.base_url,
        "chat_api_key": SecretStr("test-key"),
    }
    with ExitStack() as stack:

        def make(**overrides: object) -> AnswerService:
            settings = sample_service.settings.model_copy(update=scripted | overrides)
            answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
            stack.callback(answer_service.tracing.close)
            return answer_service

        yield make


@pytest.fixture
def make_traced(sample_service: AnswerService, model_server: ModelServer) -> Iterator[MakeService]:
    model_server.default = reply
    with open_services(sample_service, model_server) as make:
        yield make


@pytest.fixture
def langsmith() -> Iterator[LangSmith]:
    with langsmith_server(tracing=True) as server:
        yield server


@pytest.fixture
def untraced() -> Iterator[LangSmith]:
    with langsmith_server(tracing=False) as server:
        yield server


@pytest.fixture
def spans() -> Iterator[Collector]:
    with collector() as server:
        yield server


@pytest.fixture(scope="module")
def traced(sample_service: AnswerService) -> Iterator[Mapping[str, Traced]]:
    """Questions of each kind, asked once for all tests, and their traces."""
    answers: dict[str, Answer] = {}

    async def ask(answer_service: AnswerService) -> None:
        await answer_service.warm_up()
        answers["answered"] = await answer_service.ask(AskCommand(QUESTION))
        answers["off-topic"] = await answer_service.ask(AskCommand("今天天气怎么样"))
        with bound_contextvars(request_id="request-7"):
            follow_up = await answer_service.ask(
                AskCommand("它的限流呢", history=(SHIPPED,), session="session-1")
            )
        answers["follow-up"] = follow_up
        answers["thanks"] = await answer_service.ask(AskCommand("谢谢", history=(SHIPPED,)))
        answers["tools"] = await answer_service.ask(
            AskCommand("订单发货接口的必填参数", mode="tools")
        )
        server.default = Reply(status=400)
        answers["failed"] = await answer_service.ask(AskCommand(QUESTION))

    with (
        langsmith_server(tracing=True) as langsmith,
        ModelServer(default=reply) as server,
        open_services(sample_service, server) as make,
    ):
        answer_service = make()
        asyncio.run(ask(answer_service))
        answer_service.tracing.close()
        yield {name: Traced(each, langsmith.trace(each.id)) for name, each in answers.items()}
        assert len(langsmith.traces) == len(answers)  # the warm-up is not traced


# --- the tree -----------------------------------------------------------------------------------


def test_answer_is_one_trace_with_the_documented_tree(traced: Mapping[str, Traced]) -> None:
    assert traced["answered"].trace.tree() == documented_tree()


def documented_tree() -> str:
    """The tree in the first text block of the section on tracing in docs/how-to/operate.md."""
    section = DOCS.read_text(encoding="utf-8").partition("## Tracing")[2]
    match = re.search(r"```text\n(ask\n.*?)\n```", section, re.DOTALL)
    assert match
    return match[1]


CLASSIFY_TREE = "  structured-question\n    structured-question/model"


@pytest.mark.parametrize(
    ("name", "tree"),
    [
        ("off-topic", f"ask\n{CLASSIFY_TREE}\n  retrieve"),
        ("thanks", "ask\n  condense"),
        ("follow-up", "ask\n  condense\n    condense/model\n{answered}"),
    ],
)
def test_trace_shows_the_route_of_other_questions(
    traced: Mapping[str, Traced], name: str, tree: str
) -> None:
    answered = documented_tree().removeprefix("ask\n")
    assert traced[name].trace.tree() == tree.format(answered=answered)


def test_question_has_at_most_ten_runs(traced: Mapping[str, Traced]) -> None:
    for name in ("answered", "off-topic", "follow-up", "thanks"):
        assert len(list(traced[name].trace.walk())) <= MAX_RUNS


def test_tool_calls_are_in_the_tree(traced: Mapping[str, Traced]) -> None:
    (research,) = traced["tools"].trace.find("research")
    assert [run.name for run in research.children] == ["research/agent"]
    (tool,) = research.find("search")
    assert tool.fields["run_type"] == "tool"
    assert tool.find("retrieve")
    assert len(research.find("research/model")) == 2
    assert not [run.name for run in research.walk() if run.name.startswith("Runnable")]


def test_failed_model_call_is_in_the_trace(traced: Mapping[str, Traced]) -> None:
    trace = traced["failed"].trace
    (model,) = trace.find("answer/model")[-1:]
    assert "400" in model.fields["error"]
    assert "error" not in trace.fields  # the question itself was answered
    written, quoted = trace.find("answer")
    assert "400" in written.fields["error"]
    assert "error" not in quoted.fields


def test_trace_has_inputs_outputs_documents_and_tokens(traced: Mapping[str, Traced]) -> None:
    trace = traced["answered"].trace
    assert QUESTION in json.dumps(trace.fields["inputs"], ensure_ascii=False)
    assert "订单发货用它" in json.dumps(trace.fields["outputs"], ensure_ascii=False)
    (retriever,) = trace.find("retrieve")
    assert retriever.fields["run_type"] == "retriever"
    documents = retriever.fields["outputs"]["documents"]
    assert len(documents) == 5
    assert all(each["page_content"] for each in documents)
    assert documents[0]["metadata"]["score"] > 0
    models = [run for run in trace.walk() if run.fields["run_type"] == "llm"]
    assert [run.name for run in models] == ["structured-question/model", "answer/model"]
    for run in models:
        assert run.metadata["usage_metadata"]["input_tokens"] > 100
    assert [run.metadata["prompt"] for run in models] == ["structured_question.zh", "answer.zh"]
    system, human = models[1].fields["inputs"]["messages"][0]
    assert system["kwargs"]["content"].startswith("# 背景")
    assert "<documents>" in human["kwargs"]["content"]


def test_root_metadata_describe_the_answer(traced: Mapping[str, Traced]) -> None:
    answered, failed = traced["answered"].trace.metadata, traced["failed"].trace.metadata
    expected = {
        "type": traced["answered"].answer.type,
        "language": "zh",
        "confidence": traced["answered"].answer.confidence,
        "answeredBy": "openai:scripted-chat",
    }
    assert expected.items() <= answered.items()
    assert "degraded" not in answered
    assert (failed["degraded"], failed["answeredBy"]) == ("model_refused", "extractive")
    assert traced["off-topic"].trace.metadata["type"] == "unknown"


def test_chunks_are_in_a_trace_only_where_they_are_retrieved_or_prompted(
    traced: Mapping[str, Traced],
) -> None:
    trace = traced["answered"].trace
    document = trace.find("retrieve")[0].fields["outputs"]["documents"][0]
    text = document["page_content"].rpartition("---")[2].strip()[:100]
    assert set(document["metadata"]) == {"title", "section", "page_url", "score"}
    holding = [run.name for run in trace.walk() if text in _texts(run)]
    assert holding == ["retrieve", "answer/model"]
    (answer,) = trace.find("answer")
    assert answer.fields["inputs"]["chunks"][0].keys() == {"id", "score"}
    assert len(json.dumps(trace.find("ground")[0].fields["inputs"])) < 10_000


def _texts(run: Run) -> str:
    """All strings in the inputs and outputs of a run."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from strings(item)

    return "\n".join(strings([run.fields.get("inputs"), run.fields.get("outputs")]))


def test_runs_inherit_tags_and_metadata(
    traced: Mapping[str, Traced], sample_service: AnswerService
) -> None:
    trace = traced["follow-up"].trace
    platform = f"platform:{sample_service.platform.platform.name}"
    tags = {platform, f"version:{version('apidesk')}", "mode:pipeline"}
    for run in trace.walk():
        assert set(run.fields["tags"]) >= tags
        assert run.metadata["session_id"] == "session-1"
        assert run.metadata["request_id"] == "request-7"
        assert "__run_context" not in run.metadata
    assert "mode:tools" in traced["tools"].trace.fields["tags"]
    assert not {"session_id", "request_id"} & traced["answered"].trace.metadata.keys()


def test_failed_question_is_traced_with_its_error(
    langsmith: LangSmith, make_traced: MakeService, model_server: ModelServer
) -> None:
    model_server.default = Reply(status=401)
    answer_service = make_traced(on_model_failure="error")
    with pytest.raises(ModelRefused):
        asyncio.run(answer_service.ask(AskCommand(QUESTION)))
    answer_service.tracing.close()
    (trace,) = langsmith.traces
    assert "ModelRefused" in trace.fields["error"]
    assert trace.fields["end_time"]


def test_streamed_answer_is_traced_with_tokens(
    langsmith: LangSmith, make_traced: MakeService
) -> None:
    answer_service = make_traced()
    with http_client(create_app(answer_service)) as client:
        body = {"question": QUESTION, "session": "streamed"}
        events = client.post("/ask", json=body, headers={"accept": "text/event-stream"}).text
    answer_service.tracing.close()
    answer = json.loads(re.findall(r"^data: (.*)$", events, re.MULTILINE)[-1])
    trace = langsmith.trace(answer["id"])
    assert UUID(answer["id"])
    assert trace.metadata["session_id"] == "streamed"
    (model,) = trace.find("answer/model")
    assert {"name": "new_token"}.items() <= model.fields["events"][1].items()
    assert model.metadata["usage_metadata"]["output_tokens"] > 0


def test_retrieval_is_traced_and_probing_is_not(
    langsmith: LangSmith, make_traced: MakeService
) -> None:
    answer_service = make_traced()
    assert answer_service.models
    asyncio.run(probe_model(answer_service.models.answer_models[0]))
    asyncio.run(answer_service.retrieve(AskCommand(QUESTION)))
    answer_service.tracing.close()
    assert [trace.tree() for trace in langsmith.traces] == ["retrieve"]


@pytest.mark.parametrize("content", [True, False])
def test_rating_is_feedback_on_the_trace(
    langsmith: LangSmith, make_traced: MakeService, tmp_path: Path, content: bool
) -> None:
    answer_service = make_traced(trace_content=content, spool=tmp_path / "spool")

    def rated(**rating: object) -> list[dict[str, Any]]:
        response = client.post(f"/answers/{answer['id']}/feedback", json=rating)
        assert response.status_code == 204, response.text
        answer_service.tracing.flush()
        return list(langsmith.feedback.values())

    with http_client(create_app(answer_service)) as client:
        answer = client.post("/ask", json={"question": QUESTION}).json()
        (sent,) = rated(score=-1, comment="没有写清楚")
        assert (sent["trace_id"], sent["key"], sent["score"]) == (answer["id"], "user_rating", 0)
        assert sent.get("comment") == ("没有写清楚" if content else None)
        (replaced,) = rated(score=1)
        assert (replaced["id"], replaced["score"]) == (sent["id"], 1)
        assert rated(score=0) == []


@pytest.mark.parametrize(
    ("compressed", "multipart", "path"),
    [(False, True, "POST /runs/multipart"), (False, False, "POST /runs/batch")],
)
def test_older_servers_receive_the_same_tree(
    langsmith: LangSmith, make_traced: MakeService, compressed: bool, multipart: bool, path: str
) -> None:
    langsmith.compressed, langsmith.multipart = compressed, multipart
    answer_service = make_traced()
    answer = asyncio.run(answer_service.ask(AskCommand(QUESTION)))
    answer_service.tracing.close()
    assert langsmith.trace(answer.id).tree() == documented_tree()
    assert set(langsmith.requests) == {"GET /info", path}


# --- OpenTelemetry ------------------------------------------------------------------------------


def test_collector_and_langsmith_receive_the_same_tree(
    langsmith: LangSmith, spans: Collector, make_traced: MakeService
) -> None:
    answer_service = make_traced(otel_endpoint=spans.url)
    answer = asyncio.run(
        answer_service.ask(AskCommand(QUESTION, mode="tools", session="session-1"))
    )
    answer_service.tracing.close()
    tree = langsmith.trace(answer.id).tree()
    assert "research/agent" in tree
    assert sorted(spans.tree().splitlines()) == sorted(tree.splitlines())
    assert spans.tree().startswith("ask\n  structured-question")
    assert len({span.trace_id for span in spans.spans}) == 1
    (model,) = spans.find("answer/model")
    assert attributes(model)["gen_ai.usage.input_tokens"] > 100
    (root,) = spans.find("ask")
    assert attributes(root)["langsmith.metadata.answer_id"] == answer.id
    assert attributes(root)["langsmith.metadata.session_id"] == "session-1"
    assert QUESTION in attributes(root)["gen_ai.prompt"]
    assert ("service.name", "apidesk") in spans.resources


def test_collector_without_langsmith(
    untraced: LangSmith,
    spans: Collector,
    make_traced: MakeService,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "the-service")
    model_server.default = Reply(status=401)
    answer_service = make_traced(
        otel_traces_endpoint=f"{spans.url}/v1/traces", on_model_failure="error"
    )
    with pytest.raises(ModelRefused):
        asyncio.run(answer_service.ask(AskCommand(QUESTION)))
    answer_service.tracing.close()
    (root,) = spans.find("ask")
    assert root.status.code == root.status.STATUS_CODE_ERROR
    assert ("service.name", "the-service") in spans.resources
    assert untraced.requests == []


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/spans"}, "http://c/spans"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "APIDESK_OTEL_ENDPOINT": "http://d"},
            "http://d/v1/traces",
        ),
    ],
)
def test_collector_endpoint_is_read_from_standard_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], endpoint: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert read_settings().traces_endpoint == endpoint


def test_missing_extra_names_the_package(
    make_traced: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "app.telemetry.spans", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError, match=r"needs a package: pip install 'apidesk\[otel\]'"):
        make_traced(otel_endpoint="http://127.0.0.1:1")


# --- redaction ------------------------------------------------------------------------------

TEXTS = {
    "question": QUESTION,
    "question with tools": "必填参数",
    "condensed question": "它的限流呢",
    "answer": "订单发货用它",
    "document": "两者缺一不可",
    "document title": "订单发货",
    "page URL": "open.example.com",
    "prompt": "<documents>",
    "error message": "quota of Ms Lovelace",
}


@pytest.mark.parametrize("content", [True, False])
def test_redacted_traces_contain_no_texts(
    langsmith: LangSmith,
    spans: Collector,
    make_traced: MakeService,
    model_server: ModelServer,
    content: bool,
) -> None:
    answer_service = make_traced(trace_content=content, otel_endpoint=spans.url)

    async def ask() -> None:
        await answer_service.ask(AskCommand(QUESTION), on_event=_ignore_event)
        await answer_service.ask(AskCommand("它的限流呢", history=(SHIPPED,), session="session-1"))
        await answer_service.ask(AskCommand("订单发货接口的必填参数", mode="tools"))
        await answer_service.retrieve(AskCommand(QUESTION))
        model_server.default = Reply("quota of Ms Lovelace", status=400)
        await answer_service.ask(AskCommand(QUESTION))

    asyncio.run(ask())
    answer_service.tracing.close()
    for server in (langsmith, spans):
        sent = server.sent.decode(errors="replace")
        sent = re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), sent)
        found = {kind for kind, text in TEXTS.items() if text in sent}
        assert found == (set(TEXTS) if content else set())
    if not content:
        _assert_kept_fields(langsmith, spans)


async def _ignore_event(event: object) -> None:
    pass


def _assert_kept_fields(langsmith: LangSmith, spans: Collector) -> None:
    """Names, times, tokens, ids, scores and the type of an error are kept."""
    first, *_, last = langsmith.traces
    assert first.tree() == documented_tree()
    retriever, *_ = first.find("retrieve")
    assert retriever.fields["outputs"]["documents"][0]["metadata"]["score"] > 0
    assert first.find("answer/model")[0].metadata["usage_metadata"]["input_tokens"] > 100
    assert first.find("answer/model")[0].metadata["ls_model_name"] == "scripted-chat"
    assert re.fullmatch(r"\w+Error", last.find("answer/model")[0].fields["error"])
    assert attributes(spans.find("answer/model")[0])["gen_ai.usage.input_tokens"] > 100


# --- unavailable servers ------------------------------------------------------


def test_without_tracing_nothing_is_sent_or_logged(
    untraced: LangSmith, make_traced: MakeService, caplog: pytest.LogCaptureFixture
) -> None:
    answer_service = make_traced()
    asyncio.run(answer_service.ask(AskCommand(QUESTION)))
    answer_service.tracing.close()
    assert untraced.requests == []
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("failure", ["down", "401", "500", "full"])
def test_unavailable_server_costs_one_warning_and_no_answer(
    langsmith: LangSmith,
    spans: Collector,
    make_traced: MakeService,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: str,
) -> None:
    configure_logging("INFO")
    endpoint = spans.url
    if failure == "down":
        endpoint = "http://127.0.0.1:1"
        monkeypatch.setenv("LANGSMITH_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    elif failure == "full":
        monkeypatch.setenv("LANGSMITH_TRACING_QUEUE_MAX_SIZE", "1")
    else:
        langsmith.refuse = spans.refuse = int(failure)
    _clear_environment_cache()
    answer_service = make_traced(otel_endpoint=endpoint)
    for _ in range(2):
        answer = asyncio.run(answer_service.ask(AskCommand(QUESTION)))
        assert answer.answer == [ANSWER]
    answer_service.tracing.close()
    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    lost = [each.partition(":")[2].split(";")[0].strip() for each in warnings]
    assert sorted(lost) == (
        [] if failure == "full" else ["LangSmith", "the OpenTelemetry collector"]
    )


def test_hanging_server_does_not_keep_threads_alive(
    langsmith: LangSmith, make_traced: MakeService
) -> None:
    before = set(threading.enumerate())
    langsmith.hang = threading.Event()
    answer_service = make_traced()
    assert asyncio.run(answer_service.ask(AskCommand(QUESTION))).answer == [ANSWER]
    answer_service.tracing.close()  # the server still hangs
    langsmith.hang.set()
    client = [each for each in set(threading.enumerate()) - before if "tracing" in each.name]
    for thread in client:
        thread.join(10)
    assert client
    assert not any(thread.is_alive() for thread in client)


def _clear_environment_cache() -> None:
    """LangSmith's library caches the environment variables that it has read."""
    cached: Any = get_env_var
    cached.cache_clear()
