"""Chat prompt templates, one Jinja2 file per prompt and language.

Most prompts have the CO-STAR form: context, objective, style, tone, audience, response.

The block `system` of a file is the system message. It contains the instructions, which are the same for all
questions about a platform, so that providers can cache them. The block `human` is the human message. It
contains text from users, documents and models. Most of this text is placed in tags, and all of it is passed
through the filter `data`, so that it cannot open or close a tag.
"""

import re
from functools import lru_cache
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from jinja2.meta import find_undeclared_variables
from langchain_core.prompts import (
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
    StringPromptTemplate,
    SystemMessagePromptTemplate,
)

from schemas.choices import Language

PromptName = Literal[
    "condense",
    "structured_question",
    "answer",
    "structure",
    "repair",
    "rerank",
    "judge",
    "grade",
    "same_topic",
    "tools",
]

PROMPT_TAGS = (
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

_NAME = rf"\s*[/／]?\s*(?:{'|'.join(PROMPT_TAGS)})\b"
_TAG = re.compile(rf"[<＜﹤](?={_NAME})", re.IGNORECASE)
_ESCAPED_TAG = re.compile(rf"&lt;(?={_NAME}[^<>&]*>)", re.IGNORECASE)


def escape_data(text: object) -> str:
    """Return `text` with `&lt;` for each `<`, `＜` or `﹤` that could start one of `PROMPT_TAGS`."""
    return _TAG.sub("&lt;", str(text))


def unescape_data(text: str) -> str:
    """Undo `escape_data` in text that a model wrote, for tags that end with `>`."""
    return _ESCAPED_TAG.sub("<", text)


class TemplateBlock(StringPromptTemplate):
    """A block of a Jinja2 template, as the text of a message.

    LangChain's own Jinja2 format does not support custom filters, and compiles the template for each
    message.
    """

    template: Template
    block: str

    def format(self, **variables: Any) -> str:
        """Return the text. Raises jinja2.UndefinedError if a variable is missing."""
        context = self.template.new_context(variables)
        return "".join(self.template.blocks[self.block](context)).strip()


@lru_cache
def load_prompt(name: PromptName, language: Language) -> ChatPromptTemplate:
    """Return the prompt `name` in `language`. Traces show it as `NAME.LANGUAGE`."""
    environment, file_name = _environment(), f"{name}.{language}.md.j2"
    template = environment.get_template(file_name)
    assert environment.loader is not None, "set by _environment"
    source = environment.loader.get_source(environment, file_name)[0]
    variables = sorted(find_undeclared_variables(environment.parse(source)))
    messages = {"system": SystemMessagePromptTemplate, "human": HumanMessagePromptTemplate}
    return ChatPromptTemplate(
        [
            message(prompt=TemplateBlock(template=template, block=block, input_variables=variables))
            for block, message in messages.items()
            if block in template.blocks
        ],
        name=f"{name}.{language}",
    )


@lru_cache
def load_quote_texts(language: Language) -> Any:
    """Return a Jinja2 template module whose macros produce the texts of answers that no model writes."""
    return _environment().get_template(f"extractive.{language}.md.j2").module


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "."),
        undefined=StrictUndefined,
        autoescape=False,  # prompts are not HTML; the filter `data` escapes their contents
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = escape_data
    return environment
