"""The insights report over HTTP and on the command line."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from litestar import Litestar
from litestar.testing import TestClient

from app.cli.main import main
from app.main import create_app
from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.answer import Page
from schemas.choices import TABLES
from schemas.insights import Insights
from schemas.settings import read_settings
from tests.http_client import http_client
from tests.insights.conftest import RecordDatabase
from tests.insights_records import DID_NOT, RECORDS, asked, keep, rows_of


class ProtectedServer(NamedTuple):
    """A server with `RECORDS`, and its keys."""

    http: TestClient[Litestar]
    keys: dict[str, str]


@pytest.fixture(scope="module")
def protected_server(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProtectedServer]:
    folder = tmp_path_factory.mktemp("insights")
    changed = {"database_url": f"sqlite:///{folder / 'a.db'}", "spool": folder / "spool"}
    settings = sample_service.settings.model_copy(update=changed)
    engine = open_engine(settings)
    keep(RecordStore(engine), RECORDS)
    engine.dispose()
    with closing(ApiKeyStore.open(settings)) as stored:
        keys = {s: stored.add(s, (s,), None)[1] for s in ("ask", "admin")}
    with http_client(
        create_app(AnswerService(settings, sample_service.platform, sample_service.job))
    ) as http:
        yield ProtectedServer(http, keys)


def get(protected_server: ProtectedServer, path: str, scope: str = "admin", **headers: str) -> Any:
    key = {"Authorization": f"Bearer {protected_server.keys[scope]}"}
    return protected_server.http.get(f"/insights{path}", headers=key | headers)


def test_route_returns_the_report_or_one_table(protected_server: ProtectedServer) -> None:
    whole = get(protected_server, "").json()
    assert whole["questions"] == 11
    assert whole["gaps"][0]["missing"] == ["drone"]
    for table in TABLES:
        one = get(protected_server, f"?table={table}").json()
        assert one == {name: whole[name] for name in one}
        assert whole.keys() - one.keys() == set(TABLES) - {table}
    assert get(protected_server, "?days=365").json()["questions"] == 12


@pytest.mark.parametrize(
    ("query", "accept", "is_csv"),
    [
        ("", "text/csv", True),
        ("&format=csv", "*/*", True),
        ("&format=json", "text/csv", False),
        ("", "text/html, */*;q=0.8", False),
        ("", "text/csv;q=0.5, application/json", False),
        ("", "text/csv;q=0", False),
    ],
)
def test_csv_is_returned_on_request(
    protected_server: ProtectedServer, query: str, accept: str, is_csv: bool
) -> None:
    response = get(protected_server, f"?table=feedback{query}", Accept=accept)
    assert response.status_code == 200
    if not is_csv:
        assert response.json()["feedback"]
        return
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    name = 'attachment; filename="insights-feedback-30-days.csv"'
    assert response.headers["content-disposition"] == name
    assert [row["score"] for row in rows_of(response.content.decode())] == ["-1", "1"]


DAYS_EXPECTED = "days: Input should be a whole number from 1 to 36500"


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("?days=0", DAYS_EXPECTED),
        ("?days=36501", DAYS_EXPECTED),
        ("?days=many", DAYS_EXPECTED),
        ("?days=5.5", DAYS_EXPECTED),
        (
            "?table=none",
            "table: Input should be 'byType', 'byApi', 'gaps', 'errors' or 'feedback'",
        ),
        ("?format=xml", "format: Input should be 'json' or 'csv'"),
        ("?day=7", "day: unknown query parameter; available: days, table, format"),
    ],
)
def test_invalid_parameter_returns_400(
    protected_server: ProtectedServer, query: str, detail: str
) -> None:
    response = get(protected_server, query)
    assert (response.status_code, response.json()["detail"]) == (400, detail)


def test_insights_require_the_admin_scope(protected_server: ProtectedServer) -> None:
    assert get(protected_server, "", scope="ask").status_code == 403
    described = protected_server.http.get("/schema/openapi.json").json()["paths"]["/insights"][
        "get"
    ]
    assert {each["name"] for each in described["parameters"]} == {"days", "table", "format"}
    assert "Insights" in json.dumps(described["responses"]["200"])


def apidesk(url: str, *arguments: str, **environment: str) -> Result:
    environment |= {"APIDESK_DATABASE_URL": url}
    return CliRunner().invoke(main, ["insights", *arguments], env=environment)


def test_command_prints_one_table(kept: RecordDatabase) -> None:
    keep(kept.store, RECORDS)
    assert "drone" not in (said := apidesk(kept.url, "--table", "byApi")).stdout
    assert re.search(r" 4  订单发货  /ship  1 unanswered\n", said.stdout), said.output
    printed = apidesk(kept.url, "--table", "feedback", "--csv").stdout
    assert [row["score"] for row in rows_of(printed)] == ["-1", "1"]
    body = json.loads(apidesk(kept.url, "--table", "byType", "--json").stdout)
    assert Insights.model_validate(body).questions == 11


def test_command_prints_the_report_as_text(sample_service: AnswerService, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store = {"APIDESK_MILVUS_URI": sample_service.settings.milvus_uri}
    assert apidesk(url, **store).stdout == "no questions were recorded in the last 30 days\n"
    engine = open_engine(read_settings(database_url=url))
    page = Page(title="签名", page_url="https://open.example.com/docs/signing")
    records = [each.model_copy(update={"nearest": page}) for each in RECORDS]
    keep(RecordStore(engine), records)
    engine.dispose()
    said = apidesk(url, **store)
    assert said.exit_code == 0, said.output
    for words in (
        r"^11 questions in the last 30 days$",
        r"^6 on-topic questions have no helpful answer, 10% off topic, 10% from the cache$",
        r"^ +3  drone delivery *$",
        r"^ +not in the documents: drone *$",
        r"^ +nearest: 签名  https://open.example.com/docs/signing$",
        r"^ +2  44203$",
        r"^ +-  @怎么发货 \[2J *$",
    ):
        assert re.search(words, said.stdout, re.MULTILINE), (words, said.stdout)
    assert not re.search(r" $", said.stdout, re.MULTILINE)


def test_file_has_whole_lines_and_years(kept: RecordDatabase) -> None:
    question = f"how large may {'a very long file ' * 8}be"
    keep(kept.store, [asked(1, question=question, feedback=DID_NOT)])
    said = apidesk(kept.url, "--days", "365").stdout
    assert question in said
    assert re.search(r"^ +\d{4}-\d\d-\d\d [·▁-█]+ \d{4}-\d\d-\d\d  highest", said, re.MULTILINE)


def test_command_counts_a_single_question_in_the_singular(kept: RecordDatabase) -> None:
    keep(kept.store, [next(each for each in RECORDS if each.question == "drone delivery")])
    said = apidesk(kept.url).stdout
    assert re.search(r"^1 question in the last 30 days$", said, re.MULTILINE), said
    assert "1 on-topic question has no helpful answer" in said


@pytest.mark.parametrize(
    "arguments", [["--days", "0"], ["--table", "none"], ["--csv"], ["--csv", "--json"]]
)
def test_command_refuses_invalid_options(arguments: list[str]) -> None:
    assert apidesk("sqlite://", *arguments).exit_code == 2
