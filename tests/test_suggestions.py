"""Suggested questions: generated from the documents, varied, stable, and answerable."""

from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.api.suggestions import SuggestedQuestions
from ingestion.text.language import detect_language
from tests.conftest import ServiceFactory
from tests.model_replies import ask

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def suggested(client: TestClient[Litestar], **query: str) -> list[str]:
    """Return the suggestions of the server."""
    response = client.get("/suggestions", params=query)
    assert response.status_code == 200, response.text
    questions: list[str] = response.json()["suggestions"]
    return questions


@pytest.mark.parametrize("language", ["zh", "en"])
def test_suggestions_are_answered_from_the_documents(
    client: TestClient[Litestar], language: str
) -> None:
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


def test_suggestions_cover_apis_errors_and_guides(client: TestClient[Litestar]) -> None:
    text = "\n".join(suggested(client, language="zh"))
    assert "接口" in text
    assert "错误码" in text
    assert "讲了什么" in text


def test_default_language_is_that_of_the_platform(client: TestClient[Litestar]) -> None:
    assert suggested(client) == suggested(client, language="zh")


def test_unsupported_language_is_rejected(client: TestClient[Litestar]) -> None:
    response = client.get("/suggestions", params={"language": "fr"})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("language: ")


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
    assert suggestions.get("en") == ("What should I know about “Kettles”?",)
    (tmp_path / "docs" / "lamp.md").write_text("# Lamps\n\n## Wires\n\nCut them.\n")
    answer_service.job.run(answer_service.job.new_run("start"))
    assert len(suggestions.get("en")) == 2
