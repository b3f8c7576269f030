"""Ingestion runs: stored reports, failures and the lock."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from ingestion.job import IngestionJob
from ingestion.runs import IngestionRunStore
from schemas.errors import (
    ApideskError,
    ConfigurationError,
    IngestionRunning,
    IngestionStopped,
    StoreUnavailable,
)
from schemas.ingestion import IngestionOptions, IngestionRun, SourceReport
from schemas.settings import Settings, read_settings
from tests.small_platform import PLATFORM, guides
from tests.sync_harness import write_page


def done(job: IngestionJob, **options: bool) -> IngestionRun:
    return job.run(job.new_run("command", IngestionOptions.model_validate(options)))


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
    line = "guides: x.md: not UTF-8 (byte 0): convert it, for example with iconv -f gbk -t utf-8"
    assert (run.state, run.refused) == ("partial", [line])
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
        run.state = "succeeded"
        job.runs.save(run)
    assert job.runs.latest() == runs[:-51:-1]


def test_orphaned_run_is_marked_as_failed(job: IngestionJob) -> None:
    dead = job.new_run("schedule")
    job.runs.save(dead)
    done(job)
    found = job.runs.get(dead.id)
    assert found is not None
    assert (found.state, found.error) == ("failed", "the process ended before the run finished")


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


def test_second_run_names_the_holder_of_the_lock(job: IngestionJob) -> None:
    begun, over = threading.Event(), threading.Event()

    def wait(run: IngestionRun) -> None:
        begun.set()
        over.wait(10)

    first = threading.Thread(target=lambda: job.run(job.new_run("schedule"), wait))
    first.start()
    begun.wait(10)
    with pytest.raises(
        IngestionRunning, match=rf"process {os.getpid()} on .*, since .* \(trigger: schedule\)"
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
from tests.small_platform import settings_of
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
        cwd=Path(__file__).parents[2],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(
            IngestionRunning, match=rf"process {holder.pid} on .*, since .* \(trigger: command\)"
        ):
            done(job)
        holder.kill()
        holder.wait()
    assert done(job).state == "succeeded"


def test_store_of_another_platform_is_reported_at_start(
    job: IngestionJob, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    done(job)

    async def start() -> None:
        async with open_answer_service(settings):
            pass

    asyncio.run(start())
    assert not caplog.messages
    settings.platform.write_text(PLATFORM.replace('name = "guides"', 'name = "other"'))
    asyncio.run(start())
    assert any("documents that are not in the sources" in message for message in caplog.messages)


def test_removed_source_is_not_unread(job: IngestionJob) -> None:
    run = done(job)
    assert run.unread == []
    removed = SourceReport(name="old", expected=0, refused=["18 documents are kept"])
    missing = SourceReport(name="docs", refused=["no such folder"])
    assert run.model_copy(update={"sources": [*run.sources, removed, missing]}).unread == ["docs"]
