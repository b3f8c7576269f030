"""GET /metrics: each event updates exactly its metrics."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_app
from app.service.answer_service import AnswerService
from app.telemetry.metrics import LAG_INTERVAL_S, Metrics, measure_loop_lag
from schemas.ingestion import IngestionOptions
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Recorded, Reply, Scripted
from tests.model_server import ModelServer

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("no_backoff")]

QUESTION = "发货接口是哪个"
STEP = "用“订单发货”接口。[1]"
CHAT = 'model="openai:scripted-chat",role="chat"'

Samples = dict[str, float]
"""The values of samples by name and labels, as in the exposition."""


def parse_exposition(text: str) -> Samples:
    """Return the samples of an exposition, and check that each occurs once."""
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    values = {
        s.name + "{" + ",".join(f'{k}="{v}"' for k, v in sorted(s.labels.items())) + "}": s.value
        for s in samples
    }
    assert len(values) == len(samples)
    return {name.removesuffix("{}"): value for name, value in values.items()}


def scrape(client: TestClient[Litestar]) -> Samples:
    response = client.get("/metrics")
    assert response.status_code == 200
    return parse_exposition(response.text)


def read_counters(client: TestClient[Litestar]) -> Samples:
    """The nonzero counters of questions and models."""
    ignored = ("apidesk_requests", "apidesk_tokens", "python_", "process_")
    return {
        name.removeprefix("apidesk_"): value
        for name, value in scrape(client).items()
        if value and re.match(r"\w+_total\b", name) and not name.startswith(ignored)
    }


def valid_reply(request: Recorded) -> str:
    reply = structured() if is_classification(request) else draft(STEP)
    return reply.model_dump_json(by_alias=True)


def reply_with_steps(*steps: str, related: tuple[str, ...] = ()) -> Scripted:
    """A model that classifies correctly and answers with `steps`."""
    answer = draft(*steps, related=related).model_dump_json(by_alias=True)
    return lambda request: valid_reply(request) if is_classification(request) else answer


def change_answer(change: Callable[[str], str]) -> Scripted:
    """A model that classifies correctly, and whose answer is changed by `change`."""
    return lambda r: valid_reply(r) if is_classification(r) else change(valid_reply(r))


def refuse_modes(*modes: str) -> Scripted:
    """A model whose provider does not support these response formats."""

    def reply(request: Recorded) -> Any:
        mode = request.body.get("response_format", {}).get("type")
        return (
            Reply("no such response_format", status=400) if mode in modes else valid_reply(request)
        )

    return reply


def question_counter(confidence: str = "high", degraded: str = "false") -> Samples:
    labels = f'confidence="{confidence}",degraded="{degraded}",mode="pipeline",type="api_call"'
    return {f"questions_total{{{labels}}}": 1}


def structured_output_counters(classification: str, answer: str) -> Samples:
    return {
        f'structured_outputs_total{{rung="{classification}",step="structured-question"}}': 1,
        f'structured_outputs_total{{rung="{answer}",step="answer"}}': 1,
    }


def failure_counter(code: str, count: int) -> Samples:
    return {f'model_failures_total{{code="{code}",{CHAT}}}': count}


def retry_counter(count: int) -> Samples:
    return {f"model_retries_total{{{CHAT}}}": count}


SUCCESS = question_counter() | structured_output_counters("json_schema", "json_schema")

EVENTS: list[Any] = [
    pytest.param([], valid_reply, SUCCESS, id="all is well"),
    pytest.param(
        [Reply(status=503), Reply(status=429, headers={"retry-after": "0"})],
        valid_reply,
        SUCCESS | retry_counter(2),
        id="a 503 and a 429",
    ),
    pytest.param(
        [],
        Reply(status=500),
        question_counter(degraded="true", confidence="low")
        | retry_counter(6)
        | failure_counter("model_unavailable", 2)
        | failure_counter("model_refused", 6),  # three output modes, twice
        id="500 to everything",
    ),
    pytest.param(
        [],
        Reply(status=401),
        question_counter(degraded="true", confidence="low") | failure_counter("model_refused", 2),
        id="a wrong key",
    ),
    pytest.param(
        [],
        refuse_modes("json_schema"),
        question_counter()
        | structured_output_counters("json_object", "json_object")
        | failure_counter("model_refused", 1),
        id="no JSON schema",
    ),
    pytest.param(
        [],
        refuse_modes("json_schema", "json_object"),
        question_counter()
        | structured_output_counters("plain", "plain")
        | failure_counter("model_refused", 3),
        id="no JSON mode either",
    ),
    pytest.param(
        [],
        change_answer(lambda text: text.replace('"', "'")),
        question_counter() | structured_output_counters("json_schema", "repair"),
        id="repaired",
    ),
    pytest.param(
        ["Hm."],
        valid_reply,
        question_counter() | structured_output_counters("re-ask", "json_schema"),
        id="asked again",
    ),
    pytest.param(
        [],
        change_answer(lambda _: STEP),
        question_counter(confidence="low") | structured_output_counters("json_schema", "text"),
        id="text alone",
    ),
    pytest.param(
        [],
        lambda _: "",
        question_counter(degraded="true", confidence="low")
        | failure_counter("model_output_invalid", 2),
        id="nothing at all",
    ),
    pytest.param(
        [],
        reply_with_steps(
            "用“订单发货”接口：https://evil.example/a。[1][98][99]", related=("https://x.example",)
        ),
        SUCCESS | {"refused_citations_total": 2, "refused_links_total": 2},
        id="citations and links that do not exist",
    ),
    pytest.param(
        [],
        reply_with_steps(STEP, STEP, "“订单发货”接口的路径是 /no/such/path。[1]"),
        question_counter("medium")
        | structured_output_counters("json_schema", "json_schema")
        | {"unverified_facts_total": 1, "unsupported_steps_total": 1},
        id="a fact that nothing holds",
    ),
    pytest.param(
        [],
        reply_with_steps(STEP, STEP, "骑车的人要戴头盔。[1]"),
        question_counter("medium")
        | structured_output_counters("json_schema", "json_schema")
        | {"unsupported_steps_total": 1},
        id="a step that nothing bears out",
    ),
]
"""The first replies of the model, its further replies, and all expected counters."""


@pytest.mark.parametrize(("first", "then", "expected"), EVENTS)
def test_events_update_their_counters(
    model_client: MakeClient,
    model_server: ModelServer,
    first: list[Any],
    then: Scripted,
    expected: Samples,
) -> None:
    model_server.reply(*first)
    model_server.default = then
    client = model_client()
    ask(client, QUESTION)
    assert read_counters(client) == expected


def test_each_step_is_timed_once(client: TestClient[Litestar]) -> None:
    before = scrape(client)
    timings = ask(client, QUESTION)["timings"]
    after = scrape(client)
    name = "apidesk_step_seconds_count"
    increases = {k: v - before.get(k, 0) for k, v in after.items() if k.startswith(name)}
    assert {k for k, v in increases.items() if v == 1} == {
        f'{name}{{step="{step}"}}' for step in timings.keys() - {"total"}
    }


def test_each_token_counts_in_one_kind(model_client: MakeClient, model_server: ModelServer) -> None:
    usage: Any = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    usage["prompt_tokens_details"] = {"cached_tokens": 60}
    model_server.default = lambda request: Reply(valid_reply(request), usage=usage)
    client = model_client()
    ask(client, QUESTION)
    tokens = {k: v for k, v in scrape(client).items() if k.startswith("apidesk_tokens_total")}
    assert tokens == {
        f'apidesk_tokens_total{{kind="input",{CHAT}}}': 80,
        f'apidesk_tokens_total{{kind="cached_input",{CHAT}}}': 120,
        f'apidesk_tokens_total{{kind="output",{CHAT}}}': 14,
    }


def test_open_circuit_is_exposed(model_client: MakeClient, model_server: ModelServer) -> None:
    state = f"apidesk_model_circuit_state{{{CHAT}}}"
    client = model_client()
    assert scrape(client)[state] == 0
    model_server.default = Reply(status=500)
    for _ in range(3):
        ask(client, QUESTION)
    assert scrape(client)[state] == 2
    assert failure_counter("model_unavailable", 6).items() <= read_counters(client).items()


def test_requests_are_counted_by_route(model_client: MakeClient) -> None:
    client = model_client()
    client.get("/health/live")
    client.get("/no/such/page?q=secret")
    client.post("/health/live")
    client.request("BREW", "/pot")
    client.delete("/sessions/one")
    client.delete("/sessions/two")
    client.post("/ask", json={"question": ""})
    requests = {k: v for k, v in scrape(client).items() if k.startswith("apidesk_requests_total")}
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


def test_client_disconnect_counts_as_499(sample_service: AnswerService) -> None:
    """The status of its stream was 200 at the start."""
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

    disconnected = 'apidesk_requests_total{method="POST",route="/ask",status="499"}'
    before = parse_exposition(sample_service.metrics.exposition().decode()).get(disconnected, 0)
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 200
    assert (
        parse_exposition(sample_service.metrics.exposition().decode())[disconnected] == before + 1
    )


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A platform with one page."""
    path = tmp_path / "platform.toml"
    path.write_text(
        '[platform]\nname = "A"\ndescription = "B"\naudience = "C"\ntone = "D"\n'
        'greeting = "Hello."\nrefusal = "No."\nlanguage = "en"\n'
        '[[sources]]\nname = "guides"\nkind = "markdown"\npath = "guides"\n'
    )
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "one.md").write_text("# One\n\nText.")
    return path


def test_embedding_failure_is_counted(
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
        assert read_counters(client) == {f"model_failures_total{{{labels}}}": 1}


def test_ingestion_metrics(make_service: ServiceFactory, platform: Path) -> None:
    """A dry run does not count as a success."""
    answer_service = make_service(platform=platform)
    (run,) = answer_service.job.runs.latest()
    dry = answer_service.job.new_run("command", IngestionOptions(dry_run=True))
    answer_service.job.run(dry)
    assert run.finished_at
    success = "apidesk_ingestion_last_success_timestamp_seconds"
    with http_client(create_app(answer_service)) as client:
        seen = scrape(client)
        assert seen[success] == pytest.approx(run.finished_at.timestamp())
        assert seen['apidesk_ingestion_runs{state="succeeded"}'] == 2
        assert seen["apidesk_chunks"] == answer_service.collection.manifest.rows > 0

        platform.write_text("")
        with pytest.raises(Exception, match=r"platform\.toml"):
            answer_service.job.run(answer_service.job.new_run("command"))
        seen = scrape(client)
        assert seen['apidesk_ingestion_runs{state="failed"}'] == 1
        assert seen[success] == pytest.approx(run.finished_at.timestamp())

        break_database(answer_service)
        seen = scrape(client)
        assert success not in seen
        assert seen["apidesk_chunks"] == answer_service.collection.manifest.rows


def break_database(answer_service: AnswerService) -> None:
    """Overwrite the database files with garbage."""
    path = Path(answer_service.settings.database_url.removeprefix("sqlite:///"))
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if name.exists():
            name.write_bytes(b"no database" * 1_000)


WORKER_SCRIPT = """
import os, sys
from app.telemetry.metrics import Metrics, remove_process_gauges
metrics = Metrics()
metrics.count_request("GET", "/ask", 200, 0.2)
metrics.circuit_state.labels("chat", "a:b").set(int(sys.argv[1]))
metrics.loop_lag.observe(0.002)
metrics.max_loop_lag.set(0.5)
before = metrics.exposition().decode()
for pid in sys.argv[2:]:
    remove_process_gauges(int(pid))
print(os.getpid(), before, metrics.exposition().decode(), sep="\\0")
"""


def run_worker(folder: Path, *arguments: str) -> list[str]:
    """Count one request in a process. Returns its id and its exposition before and after the removal."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER_SCRIPT, *arguments],
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)},
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\0")


def test_processes_share_counters(tmp_path: Path) -> None:
    first, alone, _ = run_worker(tmp_path, "2")
    _, both, after = run_worker(tmp_path, "1", first)
    count = 'apidesk_requests_total{method="GET",route="/ask",status="200"}'
    seconds = 'apidesk_request_seconds_count{method="GET",route="/ask"}'
    circuit = 'apidesk_model_circuit_state{model="a:b",role="chat"}'
    lags = "apidesk_event_loop_lag_seconds_count"
    values = [
        [parse_exposition(text).get(name) for name in (count, seconds, circuit, lags)]
        for text in (alone, both, after)
    ]
    assert values == [[1, 1, 2, 1], [2, 2, 2, 2], [2, 2, 1, 2]]
    longest = [
        name for name in parse_exposition(both) if name.startswith("apidesk_event_loop_lag_max")
    ]
    assert len(longest) == 2, "one gauge for each process"
    assert "process_cpu_seconds_total" not in parse_exposition(both)


def test_blocked_event_loop_is_measured() -> None:
    metrics = Metrics()

    async def block() -> None:
        measuring = asyncio.create_task(measure_loop_lag(metrics))
        await asyncio.sleep(0)
        time.sleep(LAG_INTERVAL_S + 0.06)  # noqa: ASYNC251  # blocks on purpose
        await asyncio.sleep(0.01)
        measuring.cancel()

    asyncio.run(block())
    seen = parse_exposition(metrics.exposition().decode())
    assert seen['apidesk_event_loop_lag_seconds_bucket{le="0.05"}'] == 0
    assert seen["apidesk_event_loop_lag_max_seconds"] > 0.05


def test_head_has_no_body_and_the_headers_of_get(client: TestClient[Litestar]) -> None:
    for path in ("/", "/metrics"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]


def test_exposition_names_the_version(client: TestClient[Litestar]) -> None:
    build = next(name for name in scrape(client) if name.startswith("apidesk_build_info"))
    assert f'version="{version("apidesk")}"' in build


def test_creation_times_are_omitted(client: TestClient[Litestar]) -> None:
    """They would double the number of series."""
    assert not [name for name in scrape(client) if "_created" in name]
