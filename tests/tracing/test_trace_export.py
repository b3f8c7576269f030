"""Export of traces: OpenTelemetry, redaction and unavailable servers."""

import asyncio
import logging
import re
import sys
import threading
from typing import Any

import pytest
from langsmith.utils import get_env_var

from app.service.ask_command import AskCommand
from app.telemetry.logs import configure_logging
from schemas.errors import ConfigurationError, ModelRefused
from schemas.settings import read_settings
from tests.langsmith_server import LangSmith
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.otlp_server import Collector, attributes
from tests.tracing.traced_questions import ANSWER, QUESTION, SHIPPED, MakeService, documented_tree

pytestmark = pytest.mark.acceptance


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the logged warnings, without those of asyncio about clients of earlier tests."""
    records = (each for each in caplog.records if each.name != "asyncio")
    return [each.getMessage() for each in records if each.levelno >= logging.WARNING]


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


def test_without_tracing_nothing_is_sent_or_logged(
    untraced: LangSmith, make_traced: MakeService, caplog: pytest.LogCaptureFixture
) -> None:
    answer_service = make_traced()
    asyncio.run(answer_service.ask(AskCommand(QUESTION)))
    answer_service.tracing.close()
    assert untraced.requests == []
    assert not warnings_of(caplog)


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
    warnings = warnings_of(caplog)
    lost = [each.partition(" sent to ")[2].partition(" and are lost")[0] for each in warnings]
    destinations = [each.partition(" (")[0] for each in lost]
    assert sorted(destinations) == (
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
