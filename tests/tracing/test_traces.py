"""Traces in LangSmith: the run tree, its content, and ratings as feedback."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from structlog.contextvars import bound_contextvars

from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from runnables.models.structured_output import probe_model
from schemas.answer import Answer
from schemas.errors import ModelRefused
from tests.http_client import http_client
from tests.langsmith_server import LangSmith, Run, langsmith_server
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.tracing.traced_questions import (
    QUESTION,
    SHIPPED,
    MakeService,
    documented_tree,
    open_services,
    reply,
)

pytestmark = pytest.mark.acceptance

MAX_RUNS = 10
"""Maximum number of runs of a question that a model answers; LangChain's agent adds its own."""


class Traced(NamedTuple):
    """An answer and its trace."""

    answer: Answer
    trace: Run


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


def test_answer_is_one_trace_with_the_documented_tree(traced: Mapping[str, Traced]) -> None:
    assert traced["answered"].trace.tree() == documented_tree()


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
