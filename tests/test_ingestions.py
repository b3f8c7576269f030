"""Tests of the ingestion job: reports, the lock, the HTTP API and the schedule."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner
from litestar import Litestar
from litestar.testing import TestClient

from app.cli.main import main
from app.cli.terminal.ingest import run_ingestion_and_watch
from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ingestion_service import IngestionService
from ingestion.job import IngestionJob, run_lock
from ingestion.platform_config import read_platform
from ingestion.runs import IngestionRunStore, cron, run_on_schedule
from schemas.errors import (
    ApideskError,
    ConfigurationError,
    IngestionRunning,
    IngestionStopped,
    StoreUnavailable,
)
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.platform import IngestionSchedule
from schemas.settings import Settings, read_settings
from tests.http_client import http_client
from tests.serving_process import wait_until
from tests.sync_harness import write_page, write_pages

PLATFORM = """
[platform]
name = "Acme"
description = "An API for shops."
audience = "developers"
tone = "dry"
greeting = "Hello."
refusal = "Not about Acme."

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"

[ingestion]
schedule = "30 2 * * *"
timezone = "Asia/Shanghai"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A platform of six pages that is not indexed."""
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    write_pages(tmp_path / "guides", 6)
    return settings_of(tmp_path)


def settings_of(folder: Path) -> Settings:
    return read_settings(
        milvus_uri=str(folder / "milvus.db"),
        database_url=f"sqlite:///{folder / 'apidesk.db'}",
        platform=folder / "platform.toml",
    )


@pytest.fixture
def job(settings: Settings) -> Iterator[IngestionJob]:
    job = IngestionJob.connect(settings)
    yield job
    job.close()


def guides(settings: Settings) -> Path:
    return settings.platform.parent / "guides"


def done(job: IngestionJob, **options: bool) -> IngestionRun:
    return job.run(job.new_run("command", IngestionOptions.model_validate(options)))


# --- reports


def test_report_is_stored(job: IngestionJob, settings: Settings) -> None:
    first = done(job)
    write_page(guides(settings), 1, "# new\n\nnew")
    second = done(job, dry_run=True)
    kept = IngestionRunStore.open(settings)
    assert kept.latest() == [second, first]
    assert kept.get(first.id) == first
    assert kept.get("nobody") is None
    (report,) = first.sources
    assert (first.state, first.seconds > 0, first.error) == ("succeeded", True, None)
    assert (report.documents, report.expected, report.added, report.chunks) == (6, 6, 6, 12)
    assert (second.options.dry_run, second.sources[0].changed) == (True, 1)


def test_refused_document_makes_the_run_partial(job: IngestionJob, settings: Settings) -> None:
    (guides(settings) / "x.md").write_bytes(b"\xff")
    run = done(job)
    assert (run.state, run.refused) == ("partial", ["guides: x.md: not UTF-8 (byte 0)"])
    assert job.runs.latest() == [run]


def test_failure_is_stored_and_raised(job: IngestionJob, settings: Settings) -> None:
    done(job)
    settings.platform.write_text("[platform")
    with pytest.raises(ConfigurationError):
        done(job)
    (failed, _) = job.runs.latest()
    assert failed.state == "failed"
    assert failed.error is not None
    assert "not valid TOML" in failed.error
    assert job.collection.search("签名", 1)


def test_unexpected_error_is_logged(
    job: IngestionJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ingestion.store.snapshot_writer.chunk_words", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        done(job)
    assert job.runs.latest()[0].error == "ZeroDivisionError"
    assert "integer division" in caplog.text


def test_latest_lists_at_most_fifty_runs(job: IngestionJob) -> None:
    runs = [job.new_run("watch") for _ in range(55)]
    for run in runs:
        job.runs.save(run)
    assert job.runs.latest() == runs[:-51:-1]


def test_orphaned_run_is_marked_as_failed(job: IngestionJob) -> None:
    dead = job.new_run("schedule")
    job.runs.save(dead)
    done(job)
    found = job.runs.get(dead.id)
    assert found is not None
    assert (found.state, found.error) == ("failed", "its process ended before the run did")


def test_run_can_be_stopped(job: IngestionJob) -> None:
    with pytest.raises(IngestionStopped):
        job.run(job.new_run("command"), lambda run: job.stop())
    assert job.runs.latest()[0].state == "failed"
    assert not job.collection.exists()


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("nonsense", ConfigurationError),
        ("oracle://x", ConfigurationError),
        ("sqlite:////proc/nowhere/x.db", ConfigurationError),
        ("sqlite:////proc", StoreUnavailable),
    ],
)
def test_unusable_database_is_named(url: str, error: type[ApideskError]) -> None:
    with pytest.raises(error, match="APIDESK_DATABASE_URL"):
        IngestionRunStore.open(read_settings(database_url=url))


# --- the lock


def test_second_run_names_the_holder_of_the_lock(job: IngestionJob, settings: Settings) -> None:
    begun, over = threading.Event(), threading.Event()

    def wait(run: IngestionRun) -> None:
        begun.set()
        over.wait(10)

    first = threading.Thread(target=lambda: job.run(job.new_run("schedule"), wait))
    first.start()
    begun.wait(10)
    with pytest.raises(
        IngestionRunning, match=rf"process {os.getpid()} on .*, started by schedule"
    ):
        done(job)
    over.set()
    first.join()
    assert done(job).state == "succeeded"
    assert [run.trigger for run in job.runs.latest()] == ["command", "schedule"]


HOLD = """
import sys
from pathlib import Path
from ingestion.job import IngestionJob
from ingestion.job import run_lock
from tests.test_ingestions import settings_of
settings = settings_of(Path(sys.argv[1]))
run = IngestionJob(settings, None, None, None).new_run("command")
with run_lock(settings, run):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.acceptance
def test_lock_is_shared_by_processes_and_released_on_death(
    job: IngestionJob, settings: Settings
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(settings.platform.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(
            IngestionRunning, match=rf"process {holder.pid} on .*, started by command"
        ):
            done(job)
        holder.kill()
        holder.wait()
    assert done(job).state == "succeeded"


# --- over HTTP


@pytest.fixture
def answer_service(job: IngestionJob, settings: Settings) -> AnswerService:
    return AnswerService(settings, read_platform(settings.platform), job)


@pytest.fixture
def http(answer_service: AnswerService) -> Iterator[TestClient[Litestar]]:
    with http_client(create_app(answer_service)) as client:
        yield client


def finished(http: TestClient[Litestar], run_id: str) -> IngestionRun:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        run = IngestionRun.model_validate(http.get(f"/ingestions/{run_id}").json())
        if run.state != "running":
            return run
        time.sleep(0.02)
    raise AssertionError("the run does not end")


def test_run_is_started_and_followed_over_http(http: TestClient[Litestar]) -> None:
    response = http.post("/ingestions", json={})
    assert response.status_code == 202
    begun = IngestionRun.model_validate(response.json())
    assert response.headers["location"] == f"/ingestions/{begun.id}"
    run = finished(http, begun.id)
    assert (run.state, run.trigger, run.sources[0].added) == ("succeeded", "request", 6)
    assert http.get("/ingestions").json() == {
        "ingestions": [run.model_dump(by_alias=True, mode="json")]
    }
    assert http.post("/retrieve", json={"question": "签名"}).json()["sources"]


def test_end_of_a_run_is_logged(
    answer_service: AnswerService, caplog: pytest.LogCaptureFixture
) -> None:
    name = "app.service.ingestion_service"
    with caplog.at_level(logging.INFO, name), http_client(create_app(answer_service)) as http:
        begun = http.post("/ingestions", json={}).json()["id"]
        finished(http, begun)
    told: Any
    (told,) = (record.msg for record in caplog.records if record.name == name)
    fields = ("ingestion", "trigger", "state", "added", "error")
    assert [told[field] for field in fields] == [begun, "request", "succeeded", 6, None]


def test_questions_are_answered_during_a_rebuild(http: TestClient[Litestar]) -> None:
    finished(http, http.post("/ingestions", json={}).json()["id"])
    for _ in range(2):
        begun = http.post("/ingestions", json={"rebuild": True}).json()
        state, asked = "running", 0
        while state == "running" or asked < 3:
            answer = http.post("/ask", json={"question": "what does do_1 call?"})
            assert answer.status_code == 200
            assert answer.json()["sources"]
            asked += 1
            state = http.get(f"/ingestions/{begun['id']}").json()["state"]
        assert state == "succeeded"


@pytest.mark.parametrize("options", [{"dryRun": True}, {"rebuild": True}, {"allowDeletes": True}])
def test_options_reach_the_run(http: TestClient[Litestar], options: dict[str, bool]) -> None:
    begun = http.post("/ingestions", json=options).json()
    assert finished(http, begun["id"]).options == IngestionOptions.model_validate(options)


def test_second_run_returns_409(
    http: TestClient[Litestar], job: IngestionJob, settings: Settings
) -> None:
    with run_lock(settings, job.new_run("watch")):
        response = http.post("/ingestions", json={})
    problem = response.json()
    assert (response.status_code, problem["code"], problem["retryable"]) == (
        409,
        "ingestion_running",
        True,
    )
    assert f"process {os.getpid()}" in problem["detail"]
    assert http.get("/ingestions").json() == {"ingestions": []}


@pytest.mark.parametrize("body", [{"rebuilt": True}, {"rebuild": "perhaps"}, [], "x"])
def test_invalid_request_starts_no_run(http: TestClient[Litestar], body: object) -> None:
    assert http.post("/ingestions", json=body).status_code == 400
    assert http.get("/ingestions").json() == {"ingestions": []}


def test_unknown_run_returns_404(http: TestClient[Litestar]) -> None:
    response = http.get("/ingestions/nobody")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_failed_run_degrades_readiness(http: TestClient[Litestar], settings: Settings) -> None:
    finished(http, http.post("/ingestions", json={}).json()["id"])
    assert http.get("/health/ready").json()["checks"]["ingestion"]["status"] == "ok"
    settings.platform.write_text("[platform")
    failed = finished(http, http.post("/ingestions", json={}).json()["id"])
    assert failed.state == "failed"
    ready = http.get("/health/ready")
    check = ready.json()["checks"]["ingestion"]
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert check["detail"].endswith(f"see GET /ingestions/{failed.id}")
    assert http.post("/retrieve", json={"question": "签名"}).json()["sources"]


def test_lost_database_degrades_readiness(http: TestClient[Litestar], settings: Settings) -> None:
    finished(http, http.post("/ingestions", json={}).json()["id"])
    with closing(sqlite3.connect(settings.platform.with_name("apidesk.db"))) as database:
        database.execute("DROP TABLE ingestion_runs")
    assert http.get("/ingestions").status_code == 503
    ready = http.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert http.post("/retrieve", json={"question": "签名"}).json()["sources"]


def test_server_shutdown_stops_the_run(answer_service: AnswerService, settings: Settings) -> None:
    write_pages(guides(settings), 300)
    with http_client(create_app(answer_service)) as client:
        begun = client.post("/ingestions", json={}).json()
    run = answer_service.job.runs.get(begun["id"])
    assert run is not None
    assert run.state == "failed"
    assert run.error is not None
    assert "stopped" in run.error


# --- the schedule


def test_cron_uses_the_time_zone() -> None:
    plan = IngestionSchedule(schedule="30 2 * * 1-5", timezone="Asia/Shanghai")
    saturday = datetime(2026, 11, 21, 12, tzinfo=UTC)
    times = cron(plan, saturday)
    assert [next(times) for _ in range(2)] == [
        datetime(2026, 11, day, 2, 30, tzinfo=ZoneInfo("Asia/Shanghai")) for day in (23, 24)
    ]


def once() -> Callable[[IngestionSchedule, datetime], Iterator[datetime]]:
    """A schedule with a single time: now."""
    times = iter([timedelta()])
    return lambda plan, after: iter([after + next(times, timedelta(days=365))])


def always(plan: IngestionSchedule, after: datetime) -> Iterator[datetime]:
    return iter([after + timedelta(seconds=0.01)])


@pytest.mark.parametrize(
    ("outcomes", "calls"),
    [
        ([None], 1),
        ([StoreUnavailable("down"), None], 2),
        ([ValueError("a bug"), StoreUnavailable("down"), None], 3),
        ([StoreUnavailable("down")] * 4, 3),
        ([IngestionRunning("elsewhere")], 1),
        ([IngestionStopped("the server stops")], 1),
    ],
    ids=["well", "once", "twice", "for good", "another run", "stopped"],
)
def test_failed_run_is_retried(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None], calls: int
) -> None:
    called: list[None] = []

    async def run() -> None:
        called.append(None)
        outcome = outcomes[len(called) - 1]
        if outcome:
            raise outcome

    plan = IngestionSchedule(schedule="* * * * *", retries=2, retry_seconds=0)
    monkeypatch.setattr("ingestion.runs.cron", once())
    asyncio.run(for_a_while(run_on_schedule(plan, run), lambda: len(called) >= calls))
    assert len(called) == calls


def test_schedule_continues_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[None] = []

    async def run() -> None:
        called.append(None)
        raise StoreUnavailable("down")

    plan = IngestionSchedule(schedule="* * * * *", retries=0)
    monkeypatch.setattr("ingestion.runs.cron", always)
    asyncio.run(for_a_while(run_on_schedule(plan, run), lambda: len(called) >= 3))


async def for_a_while(endless: Awaitable[None], enough: Callable[[], bool]) -> None:
    """Run `endless` until the condition holds, and a little longer."""
    task = asyncio.ensure_future(endless)
    deadline = time.monotonic() + 20
    while not enough():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    task.cancel()


def test_server_of_an_embedded_store_runs_the_schedule(
    monkeypatch: pytest.MonkeyPatch, answer_service: AnswerService
) -> None:
    monkeypatch.setattr("ingestion.runs.cron", once())
    with http_client(create_app(answer_service)) as client:
        deadline = time.monotonic() + 20
        runs: list[dict[str, str]] = []
        while not runs or runs[0]["state"] == "running":
            assert time.monotonic() < deadline, "nothing runs"
            time.sleep(0.02)
            runs = client.get("/ingestions").json()["ingestions"]
    assert [(run["trigger"], run["state"]) for run in runs] == [("schedule", "succeeded")]


def test_one_of_several_processes_follows_the_schedule(
    monkeypatch: pytest.MonkeyPatch, job: IngestionJob
) -> None:
    started: list[IngestionService] = []

    async def run(service: IngestionService, trigger: str) -> None:
        started.append(service)

    async def wait_for(service: IngestionService, count: int) -> None:
        await asyncio.to_thread(
            wait_until, lambda: started.count(service) >= count, "the scheduled runs start"
        )

    async def scenario() -> None:
        first, second = IngestionService(job), IngestionService(job)
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(AsyncExitStack())
            await running.enter_async_context(first.running(plan))
            await wait_for(first, 1)
            await stack.enter_async_context(second.running(plan))
            await wait_for(first, 5)
            assert second not in started
            await running.aclose()  # the first process ends
            await wait_for(second, 1)

    plan = IngestionSchedule(schedule="* * * * *")
    monkeypatch.setattr("ingestion.runs.cron", always)
    monkeypatch.setattr("ingestion.job.SCHEDULE_POLL_S", 0.01)
    monkeypatch.setattr(IngestionService, "run", run)
    asyncio.run(scenario())


def test_schedule_command_requires_a_schedule(settings: Settings) -> None:
    settings.platform.write_text(PLATFORM.partition("[ingestion]")[0])
    result = CliRunner().invoke(
        main,
        ["schedule", "--platform", str(settings.platform)],
        env={"APIDESK_MILVUS_URI": settings.milvus_uri},
    )
    assert result.exit_code == 2
    assert "[ingestion] has no schedule" in result.stderr


def test_watch_indexes_changes(settings: Settings) -> None:
    """Also after a failed run. Detection and run take less than two seconds."""
    reports: list[IngestionRun] = []
    complaints: list[str] = []
    profile = settings.platform.read_text()

    async def change() -> None:
        task = asyncio.create_task(
            run_ingestion_and_watch(settings, IngestionOptions(), reports.append, complaints.append)
        )
        await until(lambda: len(reports) == 1)
        await asyncio.sleep(0.2)  # until it is watching
        write_page(guides(settings), 0, "# changed\n\nchanged")
        await until(lambda: len(reports) == 2)
        settings.platform.write_text("[platform")
        await until(lambda: len(complaints) == 1)
        settings.platform.write_text(profile)
        await until(lambda: len(reports) == 3)
        write_pages(guides(settings), 1, first=6)
        await until(lambda: len(reports) == 4)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(change())
    assert [(run.trigger, run.sources[0].changed, run.sources[0].added) for run in reports] == [
        ("command", 0, 6),
        ("watch", 1, 0),
        ("watch", 0, 0),
        ("watch", 0, 1),
    ]
    assert "not valid TOML" in complaints[0]


async def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
