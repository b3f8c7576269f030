"""A prompt and a model -> a validated object, by a ladder of ways that some rung of holds for any model.

1. The provider's JSON-schema mode; where it is refused, 2. its JSON mode, with the schema in the
prompt; where that is refused, 3. the plain prompt. What a model refuses is remembered. The reply is
read wherever the JSON stands in it (prose, fences, after thinking), then 4. repaired, then 5. the
model is asked once more, with its own reply and what is wrong with it. 6. Where a reply may also be
used as text, it is. After every rung the object is validated.
"""

import asyncio
import json
import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableParallel,
    RunnableSequence,
)
from pydantic import BaseModel

from prompts import PromptName, load_prompt
from runnables.models.chat_model import ChatModel, OnText, OutputMode
from runnables.models.json_text import UnreadableReply, clean, read_object
from runnables.run_context import (
    MODEL_FAILURE,
    STRUCTURED_OUTPUT,
    child_config,
    dispatch_event,
    named_step,
    remaining,
)
from schemas.choices import Language
from schemas.errors import ModelError, ModelOutputInvalid, ModelRefused

T = TypeVar("T", bound=BaseModel)
PromptVariables = dict[str, Any]
OutputMethod = Literal[OutputMode, "repair", "re-ask", "text"]

MODES: tuple[OutputMode, ...] = ("json_schema", "json_mode", "plain")
QUICKLY_READ = 10_000
"""Characters of a reply that are read at once, where it needs no mending; all else is done in a thread."""

SHOWN = 4_000
"""Characters of its own reply that a model is shown when it is asked once more."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StructuredReply(Generic[T]):
    """A validated object, the rung of the ladder that gave it, and the model that wrote it."""

    value: T
    rung: OutputMethod
    model: ChatModel


@dataclass(frozen=True)
class StructuredOutputCall(Generic[T]):
    """Fills `schema` from a prompt, for one step of the pipeline."""

    step: str
    prompt: PromptName
    language: Language
    schema: type[T]
    from_text: Callable[[str], T | None] | None = None
    """Makes an object of a reply in which no JSON can be found; without it such a reply is an error."""

    async def ask_any(
        self,
        models: tuple[ChatModel, ...],
        variables: PromptVariables,
        config: RunnableConfig,
        follow: OnText | None = None,
    ) -> StructuredReply[T]:
        """The object from the first of `models` that gives one. Raises the first one's ModelError."""
        errors: list[ModelError] = []
        for model in models:
            try:
                return await self.ask(model, variables, config, follow)
            except ModelError as error:
                log.warning("%s: %s", self.step, error)
                errors.append(error)
        raise errors[0]

    async def ask(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        follow: OnText | None = None,
    ) -> StructuredReply[T]:
        """The object from `model`; `follow` is told the reply as it comes. Raises ModelError."""
        prompt = HumanMessage(await self._rendered(variables, config))
        text, rung = await self._reply(model, [prompt], config, follow)
        try:
            value, rung = await self._parse(model, text, rung, config)
            return await self._served(value, rung, model, config)
        except UnreadableReply as error:
            problem = str(error)
        mended = await self._ask_again(model, prompt, text, problem, config, follow)
        if mended is not None:
            return await self._served(mended, "re-ask", model, config)
        if self.from_text and (made := self.from_text(text)) is not None:
            return await self._served(made, "text", model, config)
        invalid = ModelOutputInvalid(f"{model.role.setting}: the reply does not fit its schema")
        await dispatch_event(config, MODEL_FAILURE, **model.role.labels, code=invalid.code)
        raise invalid

    async def _ask_again(
        self,
        model: ChatModel,
        prompt: HumanMessage,
        text: str,
        problem: str,
        config: RunnableConfig,
        follow: OnText | None,
    ) -> T | None:
        """The object from one more call that shows the model its reply and what is wrong with it."""
        repair = load_prompt("repair", self.language).render(problem=problem)
        messages = [prompt, AIMessage(text[:SHOWN] or "…"), HumanMessage(repair)]
        try:
            text, _ = await self._reply(model, messages, config, follow)
            return (await self._parse(model, text, "re-ask", config))[0]
        except (ModelError, UnreadableReply) as error:
            log.info("%s: asked once more, in vain: %s", self.step, type(error).__name__)
            return None

    async def _reply(
        self,
        model: ChatModel,
        messages: list[BaseMessage],
        config: RunnableConfig,
        follow: OnText | None,
    ) -> tuple[str, OutputMethod]:
        """The reply's text, by the best mode that the model does not refuse."""
        modes = list(model.modes or MODES)
        while True:
            mode = modes[0]
            run = child_config(config, f"{self.step}/model", rung=mode)
            try:
                runnable = _in_mode(model, mode, self.schema)
                reply = await model.ask(messages, run, runnable, follow)
            except (ModelRefused, NotImplementedError) as error:
                if len(modes) == 1 or not _is_about_the_mode(error):
                    raise
                log.info("%s: %s is refused, trying %s", model.role.setting, mode, modes[1])
                modes.pop(0)
                continue
            model.modes = modes
            return text_of(reply), mode

    async def _parse(
        self, model: ChatModel, text: str, rung: OutputMethod, config: RunnableConfig
    ) -> tuple[T, OutputMethod]:
        """The object in `text`, and the rung that it came by. Raises NotReadable, ModelOutputInvalid."""
        parser = named_step(f"{self.step}/parser", self._read)
        seconds = remaining(config)
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                value, repaired = await parser.ainvoke(
                    text, child_config(config, parser.get_name())
                )
                return value, "repair" if repaired else rung
        except TimeoutError:
            setting = model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply cannot be read in time") from None

    async def _read(self, reply: str, config: RunnableConfig) -> tuple[T, bool]:
        """The object in `reply`, and whether it had to be mended. Raises NotReadable."""
        if len(reply) <= QUICKLY_READ:
            with suppress(UnreadableReply):
                return read_object(reply, self.schema, mend=False)
        return await asyncio.to_thread(read_object, reply, self.schema)

    async def _rendered(self, variables: PromptVariables, config: RunnableConfig) -> str:
        prompt = named_step(f"{self.step}/prompt", self._render)
        return await prompt.ainvoke(variables, child_config(config, prompt.get_name()))

    async def _render(self, variables: PromptVariables, config: RunnableConfig) -> str:
        template = load_prompt(self.prompt, self.language)
        return template.render(schema=_schema_of(self.schema), **variables)

    async def _served(
        self, value: T, rung: OutputMethod, model: ChatModel, config: RunnableConfig
    ) -> StructuredReply[T]:
        log.info("%s: %s served by %s", self.step, rung, model.name)
        await dispatch_event(config, STRUCTURED_OUTPUT, step=self.step, rung=rung)
        return StructuredReply(value, rung, model)


@lru_cache
def _schema_of(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema(), ensure_ascii=False)


def _in_mode(model: ChatModel, mode: OutputMode, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """As `in_mode`, which takes a millisecond, once for each model."""
    if (mode, schema) not in model.bound:
        model.bound[mode, schema] = in_mode(model, mode, schema)
    return model.bound[mode, schema]


def in_mode(model: ChatModel, mode: OutputMode, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """The model's client, bound to one way of structured output.

    Raises NotImplementedError when LangChain knows that the provider has no such way.
    """
    if mode == "plain":
        return model.client
    try:
        with warnings.catch_warnings():  # Anthropic's client warns of a mode that it does not have
            warnings.filterwarnings("error", message="Unrecognized structured output method")
            whole = model.client.with_structured_output(
                schema.model_json_schema(), method=mode, include_raw=True
            )
    except (ValueError, UserWarning) as error:
        raise NotImplementedError from error
    # `whole` is the bound client beside nothing, then a parser of LangChain's, which takes minutes over
    # long text.
    beside = whole.first if isinstance(whole, RunnableSequence) else whole
    bound = beside.steps__["raw"] if isinstance(beside, RunnableParallel) else beside
    return _sent_as_it_is(bound)


def _sent_as_it_is(bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """`bound`, with its format as a part of the body that OpenAI's client does not know: what it knows,
    it parses every chunk of a stream by, which takes a third as long again.
    """
    if not isinstance(bound, RunnableBinding) or not hasattr(bound.bound, "extra_body"):
        return bound
    options = dict(bound.kwargs)
    if (wanted := options.pop("response_format", None)) is not None:
        options["extra_body"] = {"response_format": wanted}
    return bound.bound.bind(**options)


def text_of(reply: AIMessage) -> str:
    """What a reply says: its text, else the arguments of a tool call, else its words of refusal."""
    return clean(_said(reply))


def _said(reply: AIMessage) -> str:
    if reply.text.strip():
        return reply.text
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        arguments = call["args"]
        return arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return str(reply.additional_kwargs.get("refusal") or "")


def _is_about_the_mode(error: Exception) -> bool:
    """A wrong key or name is not mended by another mode; any other refusal may be."""
    return not isinstance(error, ModelRefused) or error.status not in (401, 403, 404)
