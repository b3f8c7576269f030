"""Generates the files of the web page that contain text in all languages, from `prompts/text`."""

import json

from pydantic.alias_generators import to_camel

from prompts.user_text import user_text
from schemas.answer import FOOTER_FIELDS
from schemas.choices import LANGUAGES, Language

QUESTION_PAGE_TEXT = "js/text.js"
"""The module with the texts of the question page, which the admin page also imports."""

ADMIN_PAGE_TEXT = "js/admin/text.js"


def text_modules() -> dict[str, str]:
    """Return the source of each generated JavaScript module, by its path."""
    page = {language: _page_texts(language) for language in LANGUAGES}
    admin = {language: dict(user_text(language).admin) for language in LANGUAGES}
    fields = [to_camel(name) for name in FOOTER_FIELDS]
    return {
        QUESTION_PAGE_TEXT: _export("texts", page) + _export("footerFields", fields),
        ADMIN_PAGE_TEXT: _export("texts", admin),
    }


def widget_labels() -> dict[Language, str]:
    """Return the label of the widget's button in each language."""
    return {language: user_text(language).page["widget"] for language in LANGUAGES}


def no_script_notice() -> str:
    """Return the notice shown in browsers without JavaScript, in all languages."""
    return " ".join(user_text(language).page["noScript"] for language in LANGUAGES)


def _page_texts(language: Language) -> dict[str, str]:
    """Return the texts of the page by name.

    Where `[page]` and `[answer.fields]` both name a field, the text of `[page]` is used.
    """
    text = user_text(language)
    labels = {to_camel(name): label for name, label in text.answer.fields.items()}
    lists = {name: getattr(text.answer, name) for name in ("sources", "related", "nearest")}
    degraded = {f"degraded_{reason}": sentence for reason, sentence in text.degraded.items()}
    return labels | lists | degraded | text.page


def _export(name: str, value: object) -> str:
    return f"export const {name} = {json.dumps(value, ensure_ascii=False, indent=1)};\n"
