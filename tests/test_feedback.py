"""POST /answers/{id}/feedback: ratings of answers."""

import threading
from typing import Any

import pytest
from langchain_core.utils.uuid import uuid7
from litestar import Litestar
from litestar.testing import TestClient
from sqlalchemy.engine import Engine

from app.security.api_keys import ApiKeyStore
from app.service import record_writer as record_writer_module
from app.service.record_writer import Outbox, RecordWriter
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.insights import Feedback
from schemas.settings import Settings, read_settings
from tests.model_replies import MakeClient
from tests.question_records import LONG_AGO, record

Http = TestClient[Litestar]
Headers = dict[str, str]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for a record that does not arrive."""
    monkeypatch.setattr(record_writer_module, "ARRIVAL_TIMEOUT_S", 0.5)


@pytest.fixture
def settings(url: str, tmp_path: Any) -> Settings:
    return read_settings(database_url=url, spool=tmp_path / "spool")


@pytest.fixture
def own(serve_samples: MakeClient, settings: Settings) -> Http:
    return serve_samples(database_url=settings.database_url, spool=settings.spool)


@pytest.fixture
def engine(settings: Settings) -> Any:
    engine = open_engine(settings)
    yield engine
    engine.dispose()


@pytest.fixture
def keys(settings: Settings) -> tuple[Headers, Headers]:
    """The headers of two keys that exist before the server starts."""
    store = ApiKeyStore.open(settings)
    mine, other = ({"X-API-Key": store.add(name, ("ask",), None)[1]} for name in ("mine", "other"))
    store.close()
    return mine, other


def ask_question(client: Http, headers: Headers | None = None) -> str:
    """Ask a question and return the id of the answer."""
    response = client.post("/ask", json={"question": "怎么发货"}, headers=headers)
    return str(response.json()["id"])


def judged(client: Http, answer: str, headers: Headers | None = None, **body: Any) -> Any:
    return client.post(f"/answers/{answer}/feedback", json=body, headers=headers)


def kept(engine: Engine) -> dict[str, Feedback | None]:
    return {each.id: each.feedback for each in RecordStore(engine).since(LONG_AGO)}


def test_feedback_is_stored_replaced_and_removed(own: Http, engine: Engine) -> None:
    answer = ask_question(own)  # its record is on its way yet
    pasted = "用 sign=4F8D0C1B9E7A63524F8D0C1B9E7A6352 也不行\x00"
    ratings: list[tuple[dict[str, Any], Feedback | None]] = [
        ({"score": 1}, Feedback(score=1)),
        ({"score": -1, "comment": pasted}, Feedback(score=-1, comment="用 sign=‹sign› 也不行�")),
        ({"score": 1, "comment": "谢谢"}, Feedback(score=1, comment="谢谢")),
        ({"score": 0, "comment": "别管了"}, None),
    ]
    for body, expected in ratings:
        response = judged(own, answer, **body)
        assert (response.status_code, response.content) == (204, b"")
        assert kept(engine) == {answer: expected}


def test_only_the_asking_key_may_rate(
    keys: tuple[Headers, Headers], own: Http, engine: Engine
) -> None:
    mine, other = keys
    answer = ask_question(own, mine)
    assert judged(own, answer, mine, score=1).status_code == 204
    refused = judged(own, answer, other, score=-1)
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert judged(own, answer, score=-1).status_code == 401
    assert kept(engine) == {answer: Feedback(score=1)}


@pytest.mark.parametrize(
    "answer", ["6066e1d4-942a-4e31-bb58-e7a597f59efc", "nothing", "%00", "a%2Fb"]
)
def test_unknown_answer_returns_404(client: Http, answer: str) -> None:
    assert judged(client, answer, score=1).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"score": 1, "comment": "x" * 2_001}, "comment"),
        ({"score": 2}, "score"),
        ({"comment": "no score"}, "score"),
        ({"score": 1, "more": 1}, "more"),
    ],
)
def test_invalid_input_returns_one_sentence(client: Http, body: dict[str, Any], field: str) -> None:
    answer = ask_question(client)
    response = judged(client, answer, **body)
    assert response.status_code == 400
    assert response.json()["detail"].startswith(f"{field}: ")


def test_record_may_be_in_the_outbox_of_another_process(
    own: Http, engine: Engine, settings: Settings
) -> None:
    """The answering process writes the record to the database while this one waits."""
    folder = RecordWriter(engine, settings).folder
    assert folder
    other, answer = Outbox(folder), str(uuid7())
    other.append(record(answer, owner=""))
    moving = threading.Timer(0.1, other.drain, [RecordStore(engine).add])
    moving.start()
    assert judged(own, answer, score=-1).status_code == 204
    moving.join()
    other.close()
    assert kept(engine) == {answer: Feedback(score=-1)}


def test_without_records_feedback_returns_404(
    serve_samples: MakeClient, settings: Settings
) -> None:
    client = serve_samples(database_url=settings.database_url, keep_questions=False)
    assert judged(client, ask_question(client), score=1).status_code == 404
