"""First questions: made from the documents, varied, the same each time, and answered."""

from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.service.suggested_questions import SuggestedQuestions
from ingestion.text.language import detect_language
from tests.conftest import ServiceFactory
from tests.model_desk import ask

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def suggested(client: TestClient[Litestar], **query: str) -> list[str]:
    """What the server suggests."""
    response = client.get("/suggestions", params=query)
    assert response.status_code == 200, response.text
    questions: list[str] = response.json()["suggestions"]
    return questions


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_is_answered_from_the_documents(client: TestClient[Litestar], language: str) -> None:
    questions = suggested(client, language=language)
    assert 4 <= len(questions) <= 6
    assert questions == suggested(client, language=language)
    documents = set()
    for question in questions:
        assert detect_language(question) == language
        answer = ask(client, question)
        assert answer["type"] != "unknown", question
        assert answer["sources"], question
        documents.add(answer["sources"][0]["title"])
    assert len(documents) >= 4


def test_an_api_an_error_and_a_guide_are_among_them(client: TestClient[Litestar]) -> None:
    said = "\n".join(suggested(client, language="zh"))
    assert "接口" in said
    assert "错误码" in said
    assert "讲了什么" in said


def test_the_platforms_language_counts_where_none_is_named(client: TestClient[Litestar]) -> None:
    assert suggested(client) == suggested(client, language="zh")


def test_another_language_is_refused_in_one_sentence(client: TestClient[Litestar]) -> None:
    response = client.get("/suggestions", params={"language": "fr"})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("language: ")


def test_pages_alone_are_enough_and_changes_are_seen(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    """Questions are made anew once the documents are others."""
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
    assert suggestions.get("en") == ("What should I know about “Kettles”?",)
    (tmp_path / "docs" / "lamp.md").write_text("# Lamps\n\n## Wires\n\nCut them.\n")
    answer_service.job.run(answer_service.job.new_run("start"))
    assert len(suggestions.get("en")) == 2
