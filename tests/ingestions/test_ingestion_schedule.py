"""Runs on a schedule and after a change of the sources."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from app.cli.main import main
from app.cli.terminal.ingest import run_ingestion_and_watch
from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ingestion_service import IngestionService
from ingestion.job import IngestionJob
from ingestion.runs import run_on_schedule, scheduled_times
from schemas.errors import IngestionRunning, IngestionStopped, StoreUnavailable
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.platform import IngestionSchedule
from schemas.settings import Settings
from tests.http_client import http_client
from tests.serving_process import wait_until
from tests.small_platform import PLATFORM, guides
from tests.sync_harness import write_page, write_pages

pytestmark = pytest.mark.acceptance


def test_cron_uses_the_time_zone() -> None:
    plan = IngestionSchedule(schedule="30 2 * * 1-5", timezone="Asia/Shanghai")
    saturday = datetime(2026, 11, 21, 12, tzinfo=UTC)
    times = scheduled_times(plan, saturday)
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
    monkeypatch.setattr("ingestion.runs.scheduled_times", once())
    asyncio.run(for_a_while(run_on_schedule(plan, run), lambda: len(called) >= calls))
    assert len(called) == calls


def test_schedule_continues_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[None] = []

    async def run() -> None:
        called.append(None)
        raise StoreUnavailable("down")

    plan = IngestionSchedule(schedule="* * * * *", retries=0)
    monkeypatch.setattr("ingestion.runs.scheduled_times", always)
    asyncio.run(for_a_while(run_on_schedule(plan, run), lambda: len(called) >= 3))


def test_cancellation_during_a_run_ends_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    has_started = asyncio.Event()

    async def run() -> None:
        has_started.set()
        await asyncio.sleep(60)

    async def scenario() -> None:
        task = asyncio.create_task(run_on_schedule(plan, run))
        await has_started.wait()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()

    plan = IngestionSchedule(schedule="* * * * *", retries=1, retry_seconds=0)
    monkeypatch.setattr("ingestion.runs.scheduled_times", always)
    asyncio.run(scenario())


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
    monkeypatch.setattr("ingestion.runs.scheduled_times", once())
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
    monkeypatch.setattr("ingestion.runs.scheduled_times", always)
    monkeypatch.setattr("ingestion.job.SCHEDULE_POLL_S", 0.01)
    monkeypatch.setattr(IngestionService, "run", run)
    asyncio.run(scenario())


def test_end_of_the_service_waits_for_the_scheduled_run(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, job: IngestionJob
) -> None:
    write_pages(guides(settings), 100)

    async def scenario() -> None:
        async with IngestionService(job).running(IngestionSchedule(schedule="* * * * *")):
            await until(lambda: bool(job.runs.latest()))
        (run,) = job.runs.latest()
        assert (run.trigger, run.state) == ("schedule", "failed")
        assert run.error == "the run was stopped before it finished; the next run continues it"

    monkeypatch.setattr("ingestion.runs.scheduled_times", once())
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


def test_watch_indexes_changes_that_a_run_was_too_late_to_read(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first run, and the run that adds a source outside the folder of platform.toml."""
    other = tmp_path_factory.mktemp("other")
    write_pages(other, 6)
    reports: list[IngestionRun] = []

    def on_run(run: IngestionRun) -> None:
        reports.append(run)
        if len(reports) == 1:
            write_page(guides(settings), 0, "# changed\n\nchanged")
        elif len(reports) == 3:
            write_page(other, 0, "# changed\n\nchanged")

    async def change() -> None:
        complaints: list[str] = []
        task = asyncio.create_task(
            run_ingestion_and_watch(settings, IngestionOptions(), on_run, complaints.append)
        )
        await until(lambda: len(reports) == 2)
        source = f'[[sources]]\nname = "other"\nkind = "markdown"\npath = "{other}"\n\n[ingestion]'
        settings.platform.write_text(PLATFORM.replace("[ingestion]", source))
        await until(lambda: len(reports) == 4)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert complaints == []

    asyncio.run(change())
    assert [run.sources[-1].changed for run in reports] == [0, 1, 0, 1]
    assert [run.sources[-1].added for run in reports] == [6, 0, 6, 0]


@asynccontextmanager
async def watching(
    settings: Settings, options: IngestionOptions
) -> AsyncIterator[list[IngestionRun]]:
    """Runs of `--watch`, of which the first has finished."""
    reports: list[IngestionRun] = []
    complaints: list[str] = []
    task = asyncio.create_task(
        run_ingestion_and_watch(settings, options, reports.append, complaints.append)
    )
    await until(lambda: len(reports) == 1)
    yield reports
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert complaints == []


@pytest.mark.parametrize("path", ["guides", "."])
def test_watch_ignores_the_files_of_the_service(settings: Settings, path: str) -> None:
    """The store and the database are in the folder of platform.toml, which may also be a source."""
    folder = settings.platform.parent
    settings.platform.write_text(PLATFORM.replace('path = "guides"', f'path = "{path}"'))

    async def change() -> list[IngestionRun]:
        cache = {"website_cache": folder / "websites.db"}
        async with watching(settings.model_copy(update=cache), IngestionOptions()) as reports:
            (folder / "websites.db").touch()
            await asyncio.sleep(0.5)
            write_page(guides(settings), 0, "# changed\n\nchanged")
            await until(lambda: len(reports) == 2)
            await asyncio.sleep(1)  # the time of a run that the files of the last run would cause
        return reports

    assert [run.sources[0].changed for run in asyncio.run(change())] == [0, 1]


def test_watch_includes_folders_named_like_a_file_of_the_service(settings: Settings) -> None:
    folder = settings.platform.parent / "apidesk.db-notes"
    folder.mkdir()
    write_pages(folder, 6)
    settings.platform.write_text(PLATFORM.replace('path = "guides"', f'path = "{folder.name}"'))

    async def change() -> None:
        async with watching(settings, IngestionOptions()) as reports:
            write_page(folder, 0, "# changed\n\nchanged")
            await until(lambda: len(reports) == 2)

    asyncio.run(change())


def test_watch_includes_files_that_an_openapi_description_may_refer_to(settings: Settings) -> None:
    folder = settings.platform.parent
    (folder / "openapi.json").write_text(
        '{"openapi": "3.1.0", "info": {"title": "a"}, "paths": {}}'
    )
    source = '[[sources]]\nname = "api"\nkind = "openapi"\npath = "openapi.json"\n\n[ingestion]'
    settings.platform.write_text(PLATFORM.replace("[ingestion]", source))

    async def change() -> None:
        async with watching(settings, IngestionOptions()) as reports:
            (folder / "schemas.json").write_text("{}")
            await until(lambda: len(reports) == 2)

    asyncio.run(change())


def test_every_run_of_a_dry_watch_is_dry(settings: Settings) -> None:
    async def change() -> list[IngestionRun]:
        async with watching(settings, IngestionOptions(dry_run=True)) as reports:
            write_page(guides(settings), 0, "# changed\n\nchanged")
            await until(lambda: len(reports) == 2)
        return reports

    runs = asyncio.run(change())
    assert [(run.options.dry_run, run.sources[0].added) for run in runs] == [(True, 6), (True, 6)]


async def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
