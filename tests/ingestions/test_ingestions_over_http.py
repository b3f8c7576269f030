"""Ingestions over HTTP, and how they change the readiness of the server."""

import logging
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.job import IngestionJob, run_lock
from ingestion.platform_config import read_platform
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.settings import Settings
from tests.http_client import http_client
from tests.small_platform import guides
from tests.sync_harness import write_pages

pytestmark = pytest.mark.acceptance


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


@pytest.mark.parametrize(
    "body", [{"rebuilt": True}, {"dry_run": True}, {"rebuild": "perhaps"}, [], "x"]
)
def test_invalid_request_starts_no_run(http: TestClient[Litestar], body: object) -> None:
    assert http.post("/ingestions", json=body).status_code == 400
    assert http.get("/ingestions").json() == {"ingestions": []}


def test_unknown_run_returns_404(http: TestClient[Litestar]) -> None:
    for run_id in ("nobody", "00000000-0000-4000-8000-000000000000"):
        problem = http.get(f"/ingestions/{run_id}").json()
        assert (problem["status"], problem["code"]) == (404, "not_found")
        assert problem["detail"] == "there is no ingestion run with this id"


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


def test_dead_run_counts_as_failed(http: TestClient[Litestar], job: IngestionJob) -> None:
    finished(http, http.post("/ingestions", json={}).json()["id"])
    dead = job.new_run("command")
    job.runs.save(dead)
    (listed, _) = http.get("/ingestions").json()["ingestions"]
    assert (listed["state"], listed["error"]) == (
        "failed",
        "the process ended before the run finished",
    )
    assert http.get(f"/ingestions/{dead.id}").json()["state"] == "failed"
    assert 'apidesk_ingestion_runs{state="failed"} 1.0' in http.get("/metrics").text
    ready = http.get("/health/ready").json()
    assert (ready["status"], ready["checks"]["ingestion"]["status"]) == ("degraded", "degraded")


def test_running_run_does_not_hide_a_failed_one(
    http: TestClient[Litestar], job: IngestionJob, settings: Settings
) -> None:
    settings.platform.write_text("[platform")
    finished(http, http.post("/ingestions", json={}).json()["id"])
    run = job.new_run("command")
    with run_lock(settings, run):
        job.runs.save(run)
        assert http.get("/ingestions").json()["ingestions"][0]["state"] == "running"
        check = http.get("/health/ready").json()["checks"]["ingestion"]
    assert check["status"] == "degraded"
    assert check["detail"].startswith("failed, started at")


def test_readiness_does_not_wait_for_a_database_that_hangs(
    http: TestClient[Litestar], job: IngestionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(http, http.post("/ingestions", json={}).json()["id"])
    monkeypatch.setattr("app.api.health.CHECK_TIMEOUT_S", 0.05)
    monkeypatch.setattr("app.telemetry.metrics.DATABASE_TIMEOUT_S", 0.05)
    calls: list[None] = []
    is_over = threading.Event()

    def hang() -> list[IngestionRun]:
        calls.append(None)
        is_over.wait(60)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(job.runs, "latest", hang)
        try:
            for _ in range(3):
                ready = http.get("/health/ready")
                assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
                assert http.get("/metrics").status_code == 200
        finally:
            is_over.set()
    assert len(calls) == 1


def test_lost_records_degrade_readiness_and_are_counted(
    job: IngestionJob, settings: Settings, tmp_path: Path
) -> None:
    job.run(job.new_run("command"))
    spool = tmp_path / "spool"
    answer_service = AnswerService(
        settings.model_copy(update={"spool": spool}), read_platform(settings.platform), job
    )
    with http_client(create_app(answer_service)) as http:
        assert http.get("/health/ready").json()["status"] == "ok"
        shutil.rmtree(spool)
        assert http.post("/ask", json={"question": "what does do_1 call?"}).status_code == 200
        ready = http.get("/health/ready").json()
        assert (ready["status"], ready["checks"]["records"]["status"]) == ("degraded", "degraded")
        assert "apidesk_lost_records_total 1.0" in http.get("/metrics").text


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
