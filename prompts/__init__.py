"""Prompts in CO-STAR form as Jinja2 templates, one file per prompt and language.

Text from users and documents is placed in tags and passed through the filter `data`, so that it can
neither close its tag nor open another one. Constant text comes first, then what depends on the
language and the documents, and the question last: providers cache the common prefix of prompts.

`user_text` holds the text that users read outside of prompts.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from schemas.choices import Language

if TYPE_CHECKING:
    from jinja2 import Environment, Template

PromptName = Literal[
    "condense",
    "structured_question",
    "answer",
    "structure",
    "repair",
    "extractive",
    "rerank",
    "judge",
    "grade",
    "same_topic",
    "tools",
]

TAGS = (
    "platform",
    "json_schema",
    "documents",
    "document",
    "details",
    "question",
    "written",
    "facts",
    "history",
    "turn",
    "groups",
    "group",
)
"""The tags of all prompts; a test compares them with the templates."""

_TAG = re.compile(rf"[<＜﹤](?=\s*[/／]?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def escape_data(text: object) -> str:
    """Return `text` with `&lt;` for each `<` that could start one of TAGS."""
    return _TAG.sub("&lt;", str(text))


@lru_cache
def load_prompt(name: PromptName, language: Language) -> "Template":
    """Return the template of the prompt `name` in `language`."""
    return _environment().get_template(f"{name}.{language}.md.j2")


@lru_cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow, not needed by clients

    environment = Environment(
        loader=PackageLoader("prompts", "."),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are not HTML; the filter `data` escapes their contents
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = escape_data
    return environment
