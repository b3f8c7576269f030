"""Suggested questions: from the log and the documents, varied, stable, and answerable."""

import itertools
import json
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.api import question_sources as heading_questions
from app.api.question_sources import LoggedQuestions, about, as_question, frequent_questions
from app.api.suggestions import SuggestedQuestions
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from ingestion.text.language import detect_language
from prompts.user_text import user_text
from schemas.choices import Language
from schemas.insights import Feedback, QuestionRecord, RecordedPage
from schemas.question import Filters
from tests.conftest import ServiceFactory
from tests.model_replies import MakeClient, ask

COUNT = itertools.count()

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def suggested(client: TestClient[Litestar], **query: str) -> list[str]:
    """Return the suggestions of the server."""
    response = client.get("/suggestions", params=query)
    assert response.status_code == 200, response.text
    questions: list[str] = response.json()["suggestions"]
    return questions


@pytest.fixture
def unasked_client(serve_samples: MakeClient, tmp_path: Path) -> TestClient[Litestar]:
    """A client of a server whose log contains no questions."""
    return serve_samples(database_url=f"sqlite:///{tmp_path / 'apidesk.db'}")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_suggestions_are_answered_from_the_documents(
    unasked_client: TestClient[Litestar], language: str
) -> None:
    client = unasked_client
    questions = suggested(client, language=language)
    assert len(questions) == 4
    assert questions == suggested(client, language=language)
    documents = set()
    for question in questions:
        assert detect_language(question) == language
        answer = ask(client, question)
        assert answer["type"] != "unknown", question
        assert answer["sources"], question
        documents.add(answer["sources"][0]["title"])
    assert len(documents) >= 4


def test_suggestions_cover_apis_errors_and_guides(unasked_client: TestClient[Litestar]) -> None:
    text = "\n".join(suggested(unasked_client, language="zh"))
    assert "接口" in text
    assert "错误码" in text
    assert "流程是怎样的" in text


@pytest.mark.parametrize(
    ("heading", "language", "question"),
    [
        ("How to verify a signature", "en", "How do I verify a signature?"),
        ("What is simulated", "en", "What is simulated?"),
        ("Set up a subscription", "en", "How do I set up a subscription?"),
        ("Step 2: Create tokens", "en", "How do I create tokens?"),
        ("Asking for a Higher Limit", "en", "How does asking for a higher limit work?"),
        ("Refresh An Access Token", "en", "How do I refresh an access token?"),
        ("Install the Python client", "en", "How do I install the Python client?"),
        ("Sending messages to Slack", "en", "How does sending messages to Slack work?"),
        ("Handling HTTP Errors", "en", "How does handling HTTP errors work?"),
        ("Before you start", "en", None),
        ("In the sandbox", "en", None),
        ("What a delivery looks like", "en", None),
        ("String formats", "en", None),
        ("退款处理流程", "zh", "退款处理流程是怎样的？"),
        ("第五步：刷新令牌", "zh", "怎么刷新令牌？"),
        ("如何签名", "zh", "如何签名？"),
        ("接入前的准备", "zh", None),
        ("处理时限", "zh", None),
        ("Retries", "zh", None),
    ],
)
def test_headings_become_questions_as_people_ask(
    heading: str, language: Language, question: str | None
) -> None:
    assert as_question(heading, language) == question


def test_heading_in_a_language_without_rules_keeps_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heading_questions, "user_text", lambda _: user_text("en"))
    german = cast(Language, "de")
    assert as_question("How to Sign a Request", german) is None
    assert about("Token widerrufen", german) == "What should I know about Token widerrufen?"


@pytest.mark.parametrize(
    ("title", "subject"),
    [
        ("About the API", "the API"),
        ("About Webhooks", "webhooks"),
        ("See the changelog", "the changelog"),
        ("Aboutness", "aboutness"),
        ("About: API", "API"),
        ("About/FAQ", "FAQ"),
        ("About user data", "user data"),
    ],
)
def test_question_about_a_page_does_not_repeat_about(title: str, subject: str) -> None:
    assert about(title, "en") == f"What should I know about {subject}?"


def test_question_about_a_chinese_page_does_not_repeat_about() -> None:
    assert about("关于接口", "zh") == "接口需要注意什么？"


@pytest.mark.parametrize("title", ["About", "About us", "关于", "关于我们"])
def test_title_without_a_subject_gives_no_question(title: str) -> None:
    assert about(title, "zh" if title.startswith("关") else "en") is None


@pytest.mark.parametrize(
    ("language", "source", "document", "seen"),
    [
        ("en", "reference", "1206", ["Error codes"]),
        ("zh", "reference", "1110", ["请求地址", "请求参数"]),
        ("zh", "guides", "signing", ["签名错误的排查顺序"]),
        ("en", "guides", "webhooks", []),
    ],
)
def test_follow_ups_are_about_unseen_sections_of_the_document(
    client: TestClient[Litestar], language: str, source: str, document: str, seen: list[str]
) -> None:
    about = {"language": language, "source": source, "document": document, "seen": seen}
    response = client.get("/suggestions", params=about)
    assert response.status_code == 200, response.text
    questions = response.json()["suggestions"]
    assert 2 <= len(questions) <= 3
    for question in questions:
        answer = ask(client, question)
        cited = {(each["documentId"], each["section"]) for each in answer["sources"]}
        assert document in {document_id for document_id, _ in cited}, question
        assert not any(heading in question for heading in seen), question


def test_unknown_document_has_no_follow_ups(client: TestClient[Litestar]) -> None:
    about = {"source": "reference", "document": "none"}
    assert client.get("/suggestions", params=about).json() == {"suggestions": []}


def record(question: str, session: str, **fields: Any) -> QuestionRecord:
    """Return the record of a question that was answered well."""
    page = RecordedPage(title="Ship", page_url="https://x.example", source="docs", document_id="1")
    made: dict[str, Any] = {
        "id": f"{question} {session} {next(COUNT)}",
        "owner": "",
        "asked_at": datetime.now(UTC),
        "session": session,
        "question": question,
        "language": "en",
        "mode": "pipeline",
        "k": None,
        "filters": Filters(),
        "type": "general",
        "confidence": "high",
        "pages": (page,),
        "coverage": 1.0,
        "milliseconds": 1,
    }
    return QuestionRecord(**(made | fields))


def test_frequent_questions_come_from_several_sessions_and_were_answered_well() -> None:
    def asked(question: str, times: int, **fields: Any) -> list[QuestionRecord]:
        return [record(question, f"session-{number}", **fields) for number in range(times)]

    records = [
        *asked("How do I ship?", 3),
        *asked("how do i ship", 1),
        *asked("What is 40014?", 4),
        *asked("Asked twice", 2),
        *[record("Asked in one session", "same") for _ in range(5)],
        *asked("Not covered", 3, confidence="low"),
        *asked("Other words than the pages", 3, coverage=0.5),
        *asked("From an earlier version", 3, coverage=None),
        *[record("Asked without a session", "") for _ in range(5)],
        *asked("Disliked", 3, feedback=Feedback(score=-1)),
        *asked("怎么发货", 3, language="zh"),
        *asked("too long " * 12, 3),
        *asked("with\npasted text", 3),
    ]
    assert frequent_questions(records, "en") == ("What is 40014?", "How do I ship?")
    assert frequent_questions(records, "zh") == ("怎么发货",)


def test_requests_without_a_session_count_as_one_session() -> None:
    def asked(*sessions: str | None) -> list[QuestionRecord]:
        return [record("How do I ship?", "").model_copy(update={"session": s}) for s in sessions]

    assert frequent_questions(asked(None, None, None, "one"), "en") == ()
    assert frequent_questions(asked(None, None, "one", "two"), "en") == ("How do I ship?",)


@pytest.mark.parametrize(
    "question",
    [
        "How do I ship to https://evil.example/x?",
        "Is evil.example down?",
        "Is ｅｖｉｌ．example down?",
        "Is evil。com down?",
        "Who is ann@shop.example?",
        "Who is ann＠shop?",
        "Where is /home/ann/key?",
        "Is the key 8f3kd92jf valid?",
        "Is the key k82937465 valid?",
        "Is www.evil.shop down?",
        "Is evil.shop/x down?",
        "文件在/home/ann/key吗",
        "Where is order 20261121?",
        "Where is order ２０２６１１２１?",
        "Why is ‹sign› refused?",
        "Why is <b>it</b> refused?",
        'Why is "Ann" refused?',
        "Why is 'Ann' refused?",
        "Why is “Ann” refused?",
        "为什么「安先生的蓝色茶壶」失败",
        "Why is `Ann` refused?",
        "How do I \u202eship?",
        "How do I \x1b[31mship?",
        "How do I\tship?",
        "How do I\u2028ship?",
        "How do I \ufffd ship?",
    ],
)
def test_question_with_an_address_value_or_control_character_is_not_suggested(
    question: str,
) -> None:
    language = detect_language(question)
    records = [record(question, session, language=language) for session in ("a", "b", "c")]
    assert frequent_questions(records, language) == ()


@pytest.mark.parametrize(
    "question",
    [
        "What's the limit of 3.5 requests per second?",
        "Why don't I get the users' orders?",
        "What does error 400-14 mean?",
        "错误码 40014 怎么处理？",
        "签名 sign 怎么计算？",
        "怎么用 app_secret 签名？",
        "H5 支付怎么用 MD5 或 HMAC-SHA256 签名？",
        "How do SHA256withRSA, AES256GCM and PBKDF2WithHmacSHA256 differ?",
        "Do RSA2, OAuth2, UTF-8, IPv6 and v2 differ?",
        "What do E1001 and ERR40014 mean?",
        "What does isv.invalid-signature of order.create mean?",
        "Node.js 怎么上传/下载/删除图片？",
        "“待发货”的订单怎么改成「已发货」？",
    ],
)
def test_ordinary_question_is_suggested(question: str) -> None:
    language = detect_language(question)
    records = [record(question, session, language=language) for session in ("a", "b", "c")]
    assert frequent_questions(records, language) == (question,)


@pytest.mark.parametrize(
    ("insult", "suggested_again"),
    [("", True), (", you miserable thief Bob Lovelace", False)],
)
def test_only_words_of_the_documents_are_shown_to_others(
    serve_samples: MakeClient, tmp_path: Path, insult: str, suggested_again: bool
) -> None:
    client = serve_samples(
        database_url=f"sqlite:///{tmp_path}/apidesk.db", spool=tmp_path / "spool"
    )
    question = f"what does error 44203 mean{insult}?"
    for number in range(3):
        body = {"question": question, "session": f"session-{number}"}
        assert client.post("/ask", json=body).status_code == 200
    for _ in range(100):
        if stored_questions(tmp_path) == 3:
            break
        time.sleep(0.05)
    assert (question in suggested(client, language="en")) is suggested_again


def stored_questions(folder: Path) -> int:
    """Return the number of records in the database in `folder`."""
    with closing(sqlite3.connect(folder / "apidesk.db")) as connection:
        count: int = connection.execute("select count(*) from questions").fetchone()[0]
        return count


def test_frequent_questions_of_the_log_come_first(
    serve_samples: MakeClient, sample_service: AnswerService, tmp_path: Path
) -> None:
    """A question that was asked in three sessions is suggested, but not to other callers."""
    question = "what does error 44203 mean?"
    database = {"database_url": f"sqlite:///{tmp_path}/records.db"}
    client = serve_samples(**database)
    engine = open_engine(sample_service.settings.model_copy(update=database))
    store = RecordStore(engine)
    store.add([record(question, session) for session in ("one", "two", "three")])
    store.add([record("a secret", session, owner="other") for session in ("a", "b", "c")])
    assert suggested(client, language="en")[0] == question
    assert len(suggested(client, language="en")) == 4
    assert question not in suggested(client, language="zh")
    assert LoggedQuestions(store).get("other", "en") == ("a secret",)
    engine.dispose()
    without = serve_samples(**database, suggest_questions=False)
    assert question not in suggested(without, language="en")
    assert len(suggested(without, language="en")) == 4


def test_default_language_is_that_of_the_platform(client: TestClient[Litestar]) -> None:
    assert suggested(client) == suggested(client, language="zh")


def test_unsupported_language_is_rejected(client: TestClient[Litestar]) -> None:
    response = client.get("/suggestions", params={"language": "xx"})
    assert response.status_code == 400
    message = "language: Input should be 'zh' or 'en'"
    assert response.json()["detail"] == message
    body = {"question": "怎么发货", "language": "xx"}
    assert client.post("/ask", json=body).json()["detail"] == message


def test_unknown_query_parameters_are_rejected(client: TestClient[Litestar]) -> None:
    response = client.get("/suggestions", params={"lang": "en", "documentId": "signing"})
    assert response.status_code == 400
    message = "unknown query parameter; available: language, source, document, seen"
    assert response.json()["detail"] == f"documentId: {message}; lang: {message}"


def test_long_headings_lead_to_no_follow_ups(make_service: ServiceFactory, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    text = (EXAMPLES / "blog" / "platform.toml").read_text()
    source = '[[sources]]\nname = "docs"\nkind = "markdown"\npath = "docs"\n'
    platform = tmp_path / "platform.toml"
    platform.write_text(text[: text.index("[[sources]]")] + source)
    long = "Vinegar " * 10
    (tmp_path / "docs" / "kettle.md").write_text(
        f"# Kettles\n\n## {long}\n\nUse it.\n\n## Water\n\nRinse.\n"
    )
    suggestions = SuggestedQuestions(make_service(platform=platform).collection)
    assert suggestions.follow_ups("docs", "kettle", (), "en") == (
        "Kettles: What should I know about water?",
    )


def test_suggestions_follow_document_changes(make_service: ServiceFactory, tmp_path: Path) -> None:
    """New documents lead to new suggestions."""
    (tmp_path / "docs").mkdir()
    platform = tmp_path / "platform.toml"
    text = (EXAMPLES / "blog" / "platform.toml").read_text()
    head = text[: text.index("[[sources]]")]
    source = '[[sources]]\nname = "docs"\nkind = "markdown"\npath = "docs"\npage_url = "https://x.example/{path}"\n'
    platform.write_text(head + source)
    (tmp_path / "docs" / "kettle.md").write_text(
        "# Kettles\n\n## Vinegar\n\nUse it.\n\n## Water\n\nRinse.\n"
    )
    answer_service = make_service(platform=platform)
    suggestions = SuggestedQuestions(answer_service.collection)
    assert suggestions.get("en") == ("What should I know about kettles?",)
    (tmp_path / "docs" / "lamp.md").write_text("# Lamps\n\n## Wires\n\nCut them.\n")
    answer_service.job.run(answer_service.job.new_run("start"))
    assert len(suggestions.get("en")) == 2


def test_deprecated_operations_are_not_suggested(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    done = {"responses": {"200": {"description": "Done."}}}
    paths = {
        f"/kettles{n}": {"get": {"summary": f"Boil pot {n}", "deprecated": n > 2, **done}}
        for n in range(1, 9)
    }
    description = {"openapi": "3.0.0", "info": {"title": "Pots", "version": "1"}, "paths": paths}
    (tmp_path / "api.json").write_text(json.dumps(description))
    text = (EXAMPLES / "blog" / "platform.toml").read_text()
    source = '[[sources]]\nname = "reference"\nkind = "openapi"\npath = "api.json"\n'
    platform = tmp_path / "platform.toml"
    platform.write_text(text[: text.index("[[sources]]")] + source)
    questions = SuggestedQuestions(make_service(platform=platform).collection).get("en")
    assert len(questions) == 2
    assert all("Boil pot 1" in each or "Boil pot 2" in each for each in questions)
