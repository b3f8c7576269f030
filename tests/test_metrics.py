"""GET /metrics: what happens moves the metric that says so, by as much as it happened."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families
from tenacity import wait_none

from app.main import create_app
from app.service.answer_service import AnswerService
from app.telemetry.metrics import SLEEP_SECONDS, Metrics, watch_loop
from schemas.ingestion import IngestionOptions
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_desk import MakeClient, ask, draft, is_classification, structured
from tests.model_server import ModelServer, Recorded, Reply, Scripted

QUESTION = "发货接口是哪个"
STEP = "用“订单发货”接口。[1]"
CHAT = 'model="openai:scripted-chat",role="chat"'
DOCS = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "operate.md"

Moved = dict[str, float]
"""Samples by their names with labels, as they stand in the exposition."""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries follow at once."""
    monkeypatch.setattr("ingestion.providers._backoff", wait_none())


def read(text: str) -> Moved:
    """The samples of an exposition, each of which stands there once."""
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    read = {
        s.name + "{" + ",".join(f'{k}="{v}"' for k, v in sorted(s.labels.items())) + "}": s.value
        for s in samples
    }
    assert len(read) == len(samples)
    return {name.removesuffix("{}"): value for name, value in read.items()}


def scraped(client: TestClient[Litestar]) -> Moved:
    response = client.get("/metrics")
    assert response.status_code == 200
    return read(response.text)


def counted(client: TestClient[Litestar], *but: str) -> Moved:
    """The counters of questions and models that are not 0."""
    rest = ("apidesk_requests", "apidesk_tokens", "python_", "process_", *but)
    return {
        name.removeprefix("apidesk_"): value
        for name, value in scraped(client).items()
        if value and re.match(r"\w+_total\b", name) and not name.startswith(rest)
    }


def good(request: Recorded) -> str:
    reply = structured() if is_classification(request) else draft(STEP)
    return reply.model_dump_json(by_alias=True)


def answering(*steps: str, related: tuple[str, ...] = ()) -> Scripted:
    """A model that classifies well and then says `steps`."""
    said = draft(*steps, related=related).model_dump_json(by_alias=True)
    return lambda request: good(request) if is_classification(request) else said


def answer_is(reply: Callable[[str], str]) -> Scripted:
    """A model that classifies well, and answers with what `reply` makes of a good answer."""
    return lambda r: good(r) if is_classification(r) else reply(good(r))


def refusing(*modes: str) -> Scripted:
    """A model whose provider has no such ways of structured output."""

    def reply(request: Recorded) -> Any:
        asked = request.body.get("response_format", {}).get("type")
        return Reply("no such response_format", status=400) if asked in modes else good(request)

    return reply


def question(confidence: str = "high", degraded: str = "false") -> Moved:
    labels = f'confidence="{confidence}",degraded="{degraded}",mode="pipeline",type="api_call"'
    return {f"questions_total{{{labels}}}": 1}


def served(classification: str, answer: str) -> Moved:
    return {
        f'structured_outputs_total{{rung="{classification}",step="structured-question"}}': 1,
        f'structured_outputs_total{{rung="{answer}",step="answer"}}': 1,
    }


def failures(code: str, count: int) -> Moved:
    return {f'model_failures_total{{code="{code}",{CHAT}}}': count}


def retries(count: int) -> Moved:
    return {f"model_retries_total{{{CHAT}}}": count}


AS_ASKED = question() | served("json_schema", "json_schema")

EVENTS: list[Any] = [
    pytest.param([], good, AS_ASKED, id="all is well"),
    pytest.param(
        [Reply(status=500), Reply(status=429, headers={"retry-after": "0"})],
        good,
        AS_ASKED | retries(2),
        id="a 500 and a 429",
    ),
    pytest.param(
        [],
        Reply(status=500),
        question(degraded="true", confidence="medium")
        | retries(6)
        | failures("model_unavailable", 2),
        id="500 to everything",
    ),
    pytest.param(
        [],
        Reply(status=401),
        question(degraded="true", confidence="medium") | failures("model_refused", 2),
        id="a wrong key",
    ),
    pytest.param(
        [],
        refusing("json_schema"),
        question() | served("json_mode", "json_mode") | failures("model_refused", 1),
        id="no JSON schema",
    ),
    pytest.param(
        [],
        refusing("json_schema", "json_object"),
        question() | served("plain", "plain") | failures("model_refused", 2),
        id="no JSON mode either",
    ),
    pytest.param(
        [],
        answer_is(lambda text: text.replace('"', "'")),
        question() | served("json_schema", "repair"),
        id="repaired",
    ),
    pytest.param(["Hm."], good, question() | served("re-ask", "json_schema"), id="asked again"),
    pytest.param(
        [],
        answer_is(lambda _: STEP),
        question(confidence="low") | served("json_schema", "text"),
        id="text alone",
    ),
    pytest.param(
        [],
        lambda _: "",
        question(degraded="true", confidence="medium") | failures("model_output_invalid", 2),
        id="nothing at all",
    ),
    pytest.param(
        [],
        answering(
            "用“订单发货”接口：https://evil.example/a。[1][98][99]", related=("https://x.example",)
        ),
        AS_ASKED | {"refused_citations_total": 2, "refused_links_total": 2},
        id="citations and links that do not exist",
    ),
    pytest.param(
        [],
        answering(STEP, STEP, "“订单发货”接口的路径是 /no/such/path。[1]"),
        question("medium") | served("json_schema", "json_schema") | {"unverified_facts_total": 1},
        id="a fact that nothing holds",
    ),
    pytest.param(
        [],
        answering(STEP, STEP, "骑车的人要戴头盔。[1]"),
        question("medium") | served("json_schema", "json_schema") | {"unsupported_steps_total": 1},
        id="a step that nothing bears out",
    ),
]
"""What the model does first, what it does then, and every counter that moved."""


@pytest.mark.parametrize(("first", "then", "moved"), EVENTS)
def test_what_happens_is_counted(
    model_client: MakeClient,
    model_server: ModelServer,
    first: list[Any],
    then: Scripted,
    moved: Moved,
) -> None:
    model_server.reply(*first)
    model_server.default = then
    client = model_client()
    ask(client, QUESTION)
    assert counted(client) == moved


def test_steps_are_timed_once_each(client: TestClient[Litestar]) -> None:
    before = scraped(client)
    timings = ask(client, QUESTION)["timings"]
    after = scraped(client)
    name = "apidesk_step_seconds_count"
    moved = {k: v - before.get(k, 0) for k, v in after.items() if k.startswith(name)}
    assert {k for k, v in moved.items() if v == 1} == {
        f'{name}{{step="{step}"}}' for step in timings.keys() - {"total"}
    }


def test_tokens_are_of_one_kind_each(model_client: MakeClient, model_server: ModelServer) -> None:
    usage: Any = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    usage["prompt_tokens_details"] = {"cached_tokens": 60}
    model_server.default = lambda request: Reply(good(request), usage=usage)
    client = model_client()
    ask(client, QUESTION)
    tokens = {k: v for k, v in scraped(client).items() if k.startswith("apidesk_tokens_total")}
    assert tokens == {
        f'apidesk_tokens_total{{kind="input",{CHAT}}}': 80,
        f'apidesk_tokens_total{{kind="cached_input",{CHAT}}}': 120,
        f'apidesk_tokens_total{{kind="output",{CHAT}}}': 14,
    }


def test_a_circuit_opens(model_client: MakeClient, model_server: ModelServer) -> None:
    state = f"apidesk_model_circuit_state{{{CHAT}}}"
    client = model_client()
    assert scraped(client)[state] == 0
    model_server.default = Reply(status=500)
    for _ in range(3):
        ask(client, QUESTION)
    assert scraped(client)[state] == 2
    assert failures("model_unavailable", 5).items() <= counted(client).items()


def test_requests_are_counted_by_their_routes(model_client: MakeClient) -> None:
    client = model_client()
    client.get("/health/live")
    client.get("/no/such/page?q=secret")
    client.post("/health/live")
    client.request("BREW", "/pot")
    client.delete("/sessions/one")
    client.delete("/sessions/two")
    client.post("/ask", json={"question": ""})
    requests = {k: v for k, v in scraped(client).items() if k.startswith("apidesk_requests_total")}
    assert requests == {
        f'apidesk_requests_total{{method="{method}",route="{route}",status="{status}"}}': count
        for method, route, status, count in [
            ("GET", "/health/live", 200, 1),
            ("GET", "unmatched", 404, 1),
            ("POST", "unmatched", 405, 1),
            ("other", "unmatched", 404, 1),
            ("DELETE", "/sessions/{session}", 404, 2),
            ("POST", "/ask", 400, 1),
        ]
    }


def test_a_client_that_leaves(sample_service: AnswerService) -> None:
    """Its stream was a 200 when it began."""
    app = create_app(sample_service)
    body = json.dumps({"question": QUESTION}).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    headers = [(b"accept", b"text/event-stream"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/ask", "raw_path": b"/ask", "query_string": b"",
        "headers": [*headers, (b"host", b"127.0.0.1")], "root_path": "", "scheme": "http", "http_version": "1.1",
        "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "extensions": {},
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    left = 'apidesk_requests_total{method="POST",route="/ask",status="499"}'
    before = read(sample_service.metrics.exposition().decode()).get(left, 0)
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 200
    assert read(sample_service.metrics.exposition().decode())[left] == before + 1


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A platform of one page."""
    path = tmp_path / "platform.toml"
    path.write_text(
        '[platform]\nname = "A"\ndescription = "B"\naudience = "C"\ntone = "D"\n'
        'greeting = "Hello."\nrefusal = "No."\nlanguage = "en"\n'
        '[[sources]]\nname = "guides"\nkind = "markdown"\npath = "guides"\n'
    )
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "one.md").write_text("# One\n\nText.")
    return path


def test_an_embedding_model_that_fails(
    make_service: ServiceFactory, model_server: ModelServer, platform: Path
) -> None:
    answer_service = make_service(
        platform=platform,
        retrieval="dense",
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
    )
    model_server.embedding_reply = Reply(status=401)
    with http_client(create_app(answer_service)) as client:
        assert client.post("/retrieve", json={"question": "text"}).status_code == 200
        labels = 'code="model_refused",model="openai:scripted-embedding",role="embedding"'
        assert counted(client) == {f"model_failures_total{{{labels}}}": 1}


def test_what_ingestion_did(make_service: ServiceFactory, platform: Path) -> None:
    """A dry run is no success: nothing was brought up to date."""
    answer_service = make_service(platform=platform)
    (run,) = answer_service.job.runs.latest()
    dry = answer_service.job.new_run("command", IngestionOptions(dry_run=True))
    answer_service.job.run(dry)
    assert run.finished_at
    success = "apidesk_ingestion_last_success_timestamp_seconds"
    with http_client(create_app(answer_service)) as client:
        seen = scraped(client)
        assert seen[success] == pytest.approx(run.finished_at.timestamp())
        assert seen['apidesk_ingestion_runs{state="succeeded"}'] == 2
        assert seen["apidesk_chunks"] == answer_service.collection.contract.rows > 0

        platform.write_text("")
        with pytest.raises(Exception, match=r"platform\.toml"):
            answer_service.job.run(answer_service.job.new_run("command"))
        seen = scraped(client)
        assert seen['apidesk_ingestion_runs{state="failed"}'] == 1
        assert seen[success] == pytest.approx(run.finished_at.timestamp())

        break_database(answer_service)
        seen = scraped(client)
        assert success not in seen
        assert seen["apidesk_chunks"] == answer_service.collection.contract.rows


def break_database(answer_service: AnswerService) -> None:
    """Its file is a database no more."""
    path = Path(answer_service.settings.database_url.removeprefix("sqlite:///"))
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if name.exists():
            name.write_bytes(b"no database" * 1_000)


WORKER = """
import os, sys
from app.telemetry.metrics import Metrics, forget_process
metrics = Metrics()
metrics.count_request("GET", "/ask", 200, 0.2)
metrics.circuit_state.labels("chat", "a:b").set(int(sys.argv[1]))
metrics.update_loop_lag(0.002, 0.5)
before = metrics.exposition().decode()
for pid in sys.argv[2:]:
    forget_process(int(pid))
print(os.getpid(), before, metrics.exposition().decode(), sep="\\0")
"""


def worker(folder: Path, *arguments: str) -> list[str]:
    """A process that counts one request: its id, and what it exposes before and after forgetting."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER, *arguments],
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)},
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\0")


def test_processes_count_together(tmp_path: Path) -> None:
    first, alone, _ = worker(tmp_path, "2")
    _, both, after = worker(tmp_path, "1", first)
    count = 'apidesk_requests_total{method="GET",route="/ask",status="200"}'
    seconds = 'apidesk_request_seconds_count{method="GET",route="/ask"}'
    circuit = 'apidesk_model_circuit_state{model="a:b",role="chat"}'
    lags = "apidesk_event_loop_lag_seconds_count"
    told = [
        [read(text).get(name) for name in (count, seconds, circuit, lags)]
        for text in (alone, both, after)
    ]
    assert told == [[1, 1, 2, 1], [2, 2, 2, 2], [2, 2, 1, 2]]
    longest = [name for name in read(both) if name.startswith("apidesk_event_loop_lag_max")]
    assert len(longest) == 2, "each process has its own"
    assert "process_cpu_seconds_total" not in read(both)


def test_a_blocked_event_loop_is_seen() -> None:
    metrics = Metrics()

    async def block() -> None:
        watching = asyncio.create_task(watch_loop(metrics))
        await asyncio.sleep(0)
        time.sleep(SLEEP_SECONDS + 0.06)  # noqa: ASYNC251  # that is the point
        await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(block())
    seen = read(metrics.exposition().decode())
    assert seen['apidesk_event_loop_lag_seconds_bucket{le="0.05"}'] == 0
    assert seen["apidesk_event_loop_lag_max_seconds"] > 0.05


def test_the_documentation_lists_every_metric(client: TestClient[Litestar]) -> None:
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    exposed = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families
        if family.name.startswith("apidesk_") and not family.name.endswith("_created")
    }
    listed = re.findall(r"^\| `(apidesk_\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(exposed)
