"""A prompt and a model -> a validated pydantic object."""

import json
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel

from ingestion.model_errors import model_errors
from prompts import PromptName, load
from schemas.platform import Language

T = TypeVar("T", bound=BaseModel)
Variables = dict[str, Any]


def structured_output(
    step: str, prompt: PromptName, language: Language, model: BaseChatModel, schema: type[T]
) -> Runnable[Variables, T]:
    """The template's variables -> one model call -> a `schema` object.

    The template is also given `schema`, the JSON Schema. Raises ModelError.
    """
    template = load(prompt, language)
    schema_text = json.dumps(schema.model_json_schema(), ensure_ascii=False)

    def render(variables: Variables) -> list[HumanMessage]:
        return [HumanMessage(template.render(schema=schema_text, **variables))]

    chain = (
        RunnableLambda(render, name=f"{step}/prompt")
        | model.with_config(run_name=f"{step}/model")
        | PydanticOutputParser(pydantic_object=schema).with_config(run_name=f"{step}/parser")
    )

    async def ask(variables: Variables, config: RunnableConfig) -> T:
        with model_errors("APIDESK_CHAT_MODEL"):
            found: T = await chain.ainvoke(variables, config)
        return found

    return RunnableLambda(ask, name=step)
