"""`apidesk replay`: recorded questions asked again, and the changes of their answers."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from app.analytics.plots import plot_replay
from app.analytics.replay import (
    CHANGE_LABELS,
    Replay,
    ReplayedQuestion,
    ReplayOutcome,
    distinct_questions,
)
from app.analytics.replay_report import print_replay
from app.analytics.report_text import CONTEXT_CHARS, differing_lines
from app.cli.main import main
from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.database.engine import open_engine
from schemas.answer import Page
from tests.acme import PAGES, PLATFORM, write_pages
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.langsmith_server import langsmith_server
from tests.model_replies import ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded
from tests.model_script import Reply as Refusal
from tests.model_server import ModelServer
from tests.otlp_server import collector
from tests.question_records import record
from tests.serving_process import wait_until

pytestmark = pytest.mark.acceptance

TOKENS = "how many tokens may a workspace create?"
FILES = "how large may an uploaded file be?"
WORDS = "how many words does a search query take?"
WEATHER = "今天天气怎么样"


class Site:
    """A platform with recorded questions; this process holds its embedded store."""

    def __init__(
        self, folder: Path, answer_service: AnswerService, patch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self.answer_service = answer_service
        settings = answer_service.settings
        for name, value in {
            "PLATFORM": settings.platform,
            "MILVUS_URI": settings.milvus_uri,
            "DATABASE_URL": settings.database_url,
            "SPOOL": settings.spool,
        }.items():
            patch.setenv(f"APIDESK_{name}", str(value))

    def ask(self, *questions: str, **body: Any) -> None:
        """Ask over HTTP; afterwards all questions are in the database."""
        with http_client(create_app(self.answer_service)) as client:
            for question in questions:
                ask(client, question, **body)

    def replay(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["replay", *arguments], env={"COLUMNS": "80"})

    def changes(self, *arguments: str) -> dict[str, str]:
        """Changes by question, from the output of --json."""
        found = self.replay(*arguments, "--json")
        assert found.exit_code == 0, found.stderr
        return {each["question"]: each["change"] for each in json.loads(found.stdout)["questions"]}


@pytest.fixture
def site(make_service: ServiceFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    write_pages(tmp_path, **PAGES)
    own = {"database_url": f"sqlite:///{tmp_path / 'apidesk.db'}", "spool": tmp_path / "spool"}
    answer_service = make_service(platform=tmp_path / "platform.toml", cache_answers=True, **own)
    return Site(tmp_path, answer_service, monkeypatch)


def test_changed_documents_change_the_affected_answers(site: Site) -> None:
    site.ask(TOKENS, FILES, WORDS, WORDS, WEATHER)
    assert set(site.changes().values()) == {"same"}
    write_pages(site.folder, quotas=PAGES["quotas"].replace("20", "30"))
    (site.folder / "guides" / "uploads.md").unlink()
    indexed = CliRunner().invoke(main, ["ingest", "--allow-deletes"])
    assert indexed.exit_code == 0, indexed.output
    changes = site.changes()
    assert changes.pop(FILES) not in ("same", "other words")
    assert changes == {TOKENS: "other words", WORDS: "same", WEATHER: "same"}

    told = site.replay()
    assert told.exit_code == 0
    assert max(map(len, told.stdout.splitlines())) <= 80
    assert (
        "4 questions from the last 30 days, asked again with extractive, k=5 by default"
        in told.stdout
    )
    assert "may create 20 tokens" in told.stdout
    assert "may create 30 tokens" in told.stdout
    assert WORDS not in told.stdout


def test_replay_with_another_k_or_model(site: Site, model_server: ModelServer) -> None:
    def says(request: Recorded) -> Said:
        if is_classification(request):
            return structured(type="general", api_name=None)
        step = "A workspace may create 20 tokens. [1]"
        other = "A search query takes at most ten words. [1]"
        return draft(step if TOKENS in request.text else other)

    site.ask(TOKENS, k=1)
    site.ask(TOKENS, WORDS)
    found = site.replay("-k", "2", "--json", "--limit", "2")
    replay = json.loads(found.stdout)
    assert (replay["settings"], replay["kept"], len(replay["questions"])) == (
        "extractive, k=2",
        3,
        2,
    )

    model_server.default = says
    environment = {
        "APIDESK_CHAT_BASE_URL": model_server.base_url,
        "APIDESK_CHAT_API_KEY": "test-key",
    }
    arguments = ["replay", "--json", "--model", "openai:scripted-chat"]
    found = CliRunner().invoke(main, arguments, env=environment)
    assert found.exit_code == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["settings"] == "openai:scripted-chat, k=5 by default"
    assert {each["after"]["answeredBy"] for each in told["questions"]} == {"openai:scripted-chat"}
    assert {each["before"]["answeredBy"] for each in told["questions"]} == {"extractive"}


def test_judge_grades_changed_answers_by_the_recorded_statements(
    site: Site, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_JUDGE_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_JUDGE_API_KEY", "test-key")
    site.ask(TOKENS, FILES, WORDS, WEATHER)
    write_pages(site.folder, quotas=PAGES["quotas"].replace("20", "30"))
    (site.folder / "guides" / "uploads.md").unlink()
    assert CliRunner().invoke(main, ["ingest", "--allow-deletes"]).exit_code == 0
    model_server.default = {"grade": "wrong"}

    found = site.replay("--judge", "openai:scripted-judge", "--json")
    assert found.exit_code == 0, found.stderr
    replay = json.loads(found.stdout)
    assert replay["judge"] == "openai:scripted-judge"
    grades = {each["question"]: each["grade"] for each in replay["questions"]}
    assert grades.pop(FILES) in ("wrong", None)  # None if no page is cited any more
    assert grades == {TOKENS: "wrong", WORDS: None, WEATHER: None}
    request = next(each for each in model_server.chat_requests if TOKENS in each.text)
    facts, written = request.text.split("<facts>")[-1].split("<written>")
    assert "may create 20 tokens" in facts
    assert "[1]" not in facts
    assert "may create 30 tokens" in written
    told = site.replay("--judge", "openai:scripted-judge").stdout
    assert "graded by openai:scripted-judge against the recorded" in " ".join(told.split())
    assert "graded wrong" in told

    model_server.default = Refusal(status=401)
    failed = site.replay("--judge", "openai:scripted-judge")
    assert failed.exit_code == 1
    assert "answers: APIDESK_JUDGE_MODEL=openai:scripted-judge" in failed.stderr


def test_replay_is_neither_recorded_nor_traced(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[int]:
        engine = open_engine(site.answer_service.settings)
        tables = ("questions", "cached_answers", "turns", "ingestion_runs")
        with engine.connect() as connection:
            count = [
                connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
                for table in tables
            ]
        engine.dispose()
        return count

    site.ask(TOKENS, session="s")
    wait_until(lambda: rows()[1] == 1, "the answer is in the cache")
    before = rows()
    with langsmith_server(tracing=True) as langsmith, collector() as spans:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.url)
        assert site.changes("-k", "3") == {TOKENS: "same"}
    assert rows() == before
    assert langsmith.traces == []
    assert spans.spans == []
    assert not list((site.folder / "spool").rglob("*.jsonl"))


def test_replay_without_recorded_questions_fails(site: Site) -> None:
    found = site.replay("--days", "7")
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == (
        "apidesk: no answered questions were recorded in the last 7 days; pass a larger --days\n"
    )


# --- which questions ----------------------------------------------------------------------------


def asked(*said: tuple[str, dict[str, Any]]) -> list[Any]:
    """The questions to replay after `said` were asked in this order."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    fields: dict[str, Any] = {"session": None, "type": "general"}
    records = [
        record(
            str(number),
            question=question,
            asked_at=moment + timedelta(minutes=number),
            **(fields | {"understood": f"understood {question}"} | own),
        )
        for number, (question, own) in enumerate(said)
    ]
    return [(each.command.text, each.record.id, each.times) for each in distinct_questions(records)]


def test_distinct_questions_are_replayed_newest_first() -> None:
    assert asked(("a", {}), ("b", {}), ("a", {}), ("a", {"k": 9}), ("c", {"type": None})) == [
        ("a", "3", 1),
        ("a", "2", 2),
        ("b", "1", 1),
    ]


def test_follow_up_is_replayed_in_its_condensed_form() -> None:
    mine, theirs = {"session": "s"}, {"session": "s", "owner": "another"}
    assert asked(
        ("weather", mine | {"type": "unknown"}),
        ("ship", mine),
        ("and its errors", mine),
        ("alone", {}),
        ("theirs", theirs),
    ) == [
        ("theirs", "4", 1),
        ("alone", "3", 1),
        ("understood and its errors", "2", 1),
        ("ship", "1", 1),
        ("weather", "0", 1),
    ]


# --- what a change is ---------------------------------------------------------------------------


def outcome(verdict: Any = "high", pages: str = "ab", **fields: Any) -> ReplayOutcome:
    named = [Page(title=name, page_url=f"https://x/{name}") for name in pages]
    told: dict[str, Any] = {
        "type": "general",
        "steps": ["one"],
        "answered_by": "x",
        "failure": None,
    }
    return ReplayOutcome(verdict=verdict, pages=named, **(told | fields))


@pytest.mark.parametrize(
    ("before", "after", "change", "overlap"),
    [
        (outcome(), outcome(), "same", 1),
        (outcome(), outcome(steps=["two"]), "other words", 1),
        (outcome(), outcome(pages="bc"), "other pages", 1 / 3),
        (outcome(), outcome("medium", pages="a"), "other confidence", 1 / 2),
        (outcome(), outcome("low", type="api_call"), "other type", 1),
        (outcome(), outcome("low", pages=""), "lost", 0),
        (outcome("off-topic", pages="", type="unknown"), outcome(), "won", 0),
        (outcome("low", pages=""), outcome("off-topic", pages="", type="unknown"), "other type", 1),
        (outcome(), outcome("failed", pages="", failure="model_timeout"), "failed", 0),
    ],
)
def test_change_is_the_most_severe_difference(
    before: ReplayOutcome, after: ReplayOutcome, change: str, overlap: float
) -> None:
    found = replayed(before, after)
    assert found.change == change
    assert found.overlap == pytest.approx(overlap)


def replayed(before: ReplayOutcome, after: ReplayOutcome, question: str = "?") -> ReplayedQuestion:
    return ReplayedQuestion(id="1", question=question, times=1, before=before, after=after)


def test_report_of_one_question_and_one_day_uses_the_singular(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = replayed(outcome(), outcome(type="api_call"))
    print_replay(Replay(days=1, recorded=1, settings="extractive, k=3", questions=[changed]))
    heading, _, count, *_ = capsys.readouterr().out.splitlines()
    assert heading == "1 question from the last day, asked again with extractive, k=3"
    assert count.strip() == "1  different type"


def test_report_shows_the_urls_of_a_moved_page(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (Page(title="Shops", page_url=f"https://x/{path}") for path in ("shops", "a/shops"))
    kept = Page(title="Quotas", page_url="https://x/quotas")
    changed = replayed(
        outcome().model_copy(update={"pages": [kept, old]}),
        outcome().model_copy(update={"pages": [kept, new]}),
    )
    print_replay(Replay(days=1, recorded=1, settings="extractive, k=3", questions=[changed]))
    shown = capsys.readouterr().out
    assert "then  high  Quotas, Shops https://x/shops" in shown
    assert "now   high  Quotas, Shops https://x/a/shops" in shown


def test_report_shows_the_changed_row_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    table = "| Plan | Requests per second, counted per key and not per workspace |\n| --- | --- |"
    steps = [[f"{table}\n| Starter | 10 |\n| Growth | {limit} |", "[1]"] for limit in (50, 75)]
    changed = replayed(outcome(steps=steps[0]), outcome(steps=steps[1]))
    print_replay(Replay(days=1, recorded=1, settings="extractive, k=3", questions=[changed]))
    shown = capsys.readouterr().out
    assert "| Growth | 50 |" in shown
    assert "| Growth | 75 |" in shown
    assert "Starter" not in shown


@pytest.mark.parametrize(
    ("same", "start"),
    [("每个工作区最多可以创建" * 30, ""), ("one small word " * 20, "word ")],
    ids=["without spaces", "with spaces"],
)
def test_first_difference_of_long_lines_is_visible(same: str, start: str) -> None:
    (old,), (new,) = differing_lines([f"{same}五个"], [f"{same}十个"], 80)
    assert old.endswith("五个")
    assert new.endswith("十个")
    assert old.startswith(f"…{start}")
    assert len(old) <= CONTEXT_CHARS + len("…五个")


# --- the picture --------------------------------------------------------------------------------


def test_plot_contains_all_counts(tmp_path: Path) -> None:
    lost, same = replayed(outcome(), outcome("low", pages="")), replayed(outcome(), outcome())
    found = Replay(
        days=30, recorded=5, settings="extractive, k=3", questions=[lost] * 2 + [same] * 3
    )
    path = tmp_path / "replay.svg"
    plot_replay(found, path)
    texts = [
        "".join(each.itertext())
        for each in ElementTree.parse(path).iter()
        if each.tag.endswith("text")
    ]
    assert {"5 questions asked again", *CHANGE_LABELS.values()} <= set(texts)
    assert sorted(text for text in texts if text.isdigit()) == ["2", "2", "3", "3"]
    assert any("extractive, k=3" in text for text in texts)
    before = path.read_bytes()
    plot_replay(found, path)
    assert path.read_bytes() == before


def test_unsupported_plot_format_is_refused(site: Site) -> None:
    found = site.replay("--plot", "replay.gif")
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert "must end in .svg or .png" in found.stderr
