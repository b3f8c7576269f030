"""CO-STAR prompts as Jinja2 templates, one file a prompt and language.

Text that comes from users or documents stands in tags and goes through the filter `data`, so that
it can neither close its tag nor open another. What never changes comes first, then what depends on
the question's language and on the documents, the question last: providers cache the prefix.
"""

import re
from functools import lru_cache
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from schemas.choices import Language

PromptName = Literal[
    "condense",
    "structured_question",
    "answer",
    "structure",
    "repair",
    "extractive",
    "rerank",
    "judge",
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
    "history",
    "turn",
    "groups",
    "group",
)
"""Every tag that a prompt uses; a test holds this list against the templates."""

_TAG = re.compile(rf"[<＜﹤](?=\s*[/／]?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def escape_data(text: object) -> str:
    """`text` with every `<` that could begin one of our tags written as `&lt;`."""
    return _TAG.sub("&lt;", str(text))


@lru_cache
def load_prompt(name: PromptName, language: Language) -> Template:
    """The prompt `name` in `language`."""
    return _environment().get_template(f"{name}.{language}.md.j2")


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("prompts", "."),
        undefined=StrictUndefined,
        autoescape=False,  # the output is a prompt, not HTML; `data` guards what is put in
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = escape_data
    return environment
