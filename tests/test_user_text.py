"""The catalogues of user-facing text are complete, and alike in every language."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.api.page import QUESTION_PAGE_TEXT, text_modules
from app.service.answer_service import AnswerService
from prompts.user_text import UserText, language_choices, user_text
from schemas.answer import DegradedReason
from schemas.choices import LANGUAGES, Language
from schemas.errors import ConfigurationError, ModelError

ROOT = Path(__file__).resolve().parents[1]


def load_catalogue(language: Language) -> dict[str, Any]:
    path = ROOT / "prompts" / "text" / f"{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value of nested tables, by its dotted key."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= (
            flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return flat


def placeholders(texts: dict[str, Any]) -> dict[str, list[str]]:
    return {key: sorted(re.findall(r"\{(\w+)\}", str(value))) for key, value in texts.items()}


def test_every_language_has_one_catalogue() -> None:
    files = {path.stem for path in (ROOT / "prompts" / "text").glob("*.toml")}
    assert files == set(LANGUAGES)


def test_catalogues_have_the_same_keys_and_placeholders() -> None:
    first, *others = (placeholders(flatten(load_catalogue(language))) for language in LANGUAGES)
    assert others == [first] * len(others)


@pytest.mark.parametrize(
    "section", ["answer", "degraded", "suggestions", "chat", "api_document", "languages", "setup"]
)
def test_missing_text_is_an_error(section: str) -> None:
    incomplete = load_catalogue("en")
    incomplete[section].popitem()
    with pytest.raises(ValidationError):
        UserText.model_validate(incomplete)


def test_error_of_an_incomplete_catalogue_names_the_file_and_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "prompts" / "text" / "en.toml").read_text(encoding="utf-8")
    (tmp_path / "text").mkdir()
    incomplete = text.replace('zh = "Chinese"\n', "")
    (tmp_path / "text" / "en.toml").write_text(incomplete, encoding="utf-8")
    monkeypatch.setattr("prompts.user_text.__file__", str(tmp_path / "user_text.py"))
    with pytest.raises(ConfigurationError, match=r"^prompts/text/en.toml: languages: missing: zh$"):
        user_text.__wrapped__("en")


def test_language_choices_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert language_choices() == "Chinese or English"
    monkeypatch.setattr("prompts.user_text.LANGUAGES", ("zh", "en", "en"))
    assert language_choices() == "Chinese, English or English"


def test_label_of_an_unknown_answer_field_is_an_error() -> None:
    catalogue = load_catalogue("en")
    catalogue["answer"]["fields"]["answerd_by"] = "answered by"
    with pytest.raises(ValidationError, match="no field of Answer: answerd_by"):
        UserText.model_validate(catalogue)


def test_catalogue_is_loaded_once() -> None:
    assert user_text("zh") is user_text("zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_unknown_degraded_reason_is_shown_as_it_is(language: Language) -> None:
    """Records and servers of earlier versions hold sentences."""
    assert (
        user_text(language).degraded_sentence("APIDESK_CHAT_MODEL: down")
        == "APIDESK_CHAT_MODEL: down"
    )


@pytest.mark.parametrize("error", ModelError.__subclasses__(), ids=lambda error: error.code)
def test_every_model_error_is_a_degraded_reason(error: type[ModelError]) -> None:
    assert error.code in set(DegradedReason)


@pytest.mark.parametrize("language", LANGUAGES)
def test_web_page_has_the_sentence_of_every_degraded_reason(
    sample_service: AnswerService, language: Language
) -> None:
    module = text_modules(sample_service.platform.platform)[QUESTION_PAGE_TEXT]
    (texts,) = re.findall(r"^export const texts = (.*?);$", module, re.M | re.S)
    page = json.loads(texts)[language]
    for reason in DegradedReason:
        assert page[f"degraded_{reason}"] == user_text(language).degraded[reason]


def test_every_degraded_reason_is_documented() -> None:
    text = (ROOT / "docs" / "explanation" / "answers.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)
    assert documented == [str(reason) for reason in DegradedReason]
