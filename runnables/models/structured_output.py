"""Structured output: an object that a model writes for a schema.

The best output mode that the model supports is used. The modes, best first:

1. `json_schema`: the provider's JSON schema mode.
2. `json_object`: the JSON mode of servers that take a schema with it, such as llama-cpp-python.
3. `json_mode`: the provider's JSON mode, with the schema in the prompt.
4. `plain`: no mode of the provider; the prompt asks for JSON.

If the reply contains no valid object, these methods are tried in order:

5. `cut`: if the reply ends within the JSON, the incomplete end is left out.
6. `repair`: JSON that is broken in another way is repaired.
7. `re-ask`: one more call shows the model its own reply and the problem with it.
8. `text`: `StructuredOutputCall.from_text`, if set, converts the text of the first reply to an object.

Each model has its own list of modes. A mode is not tried again if the model has refused it, or if
the mode has caused two server errors and has never produced a reply.

Every object is validated. In traces and metrics, the field `rung` contains the mode or method.
"""

import asyncio
import json
import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSequence
from langsmith import tracing_context
from pydantic import BaseModel

from prompts.chat_prompts import PromptName, load_prompt
from runnables.models.chat_model import MODE_ERRORS, ChatModel, OnText, OutputMode
from runnables.models.json_text import (
    UnreadableReply,
    is_unfinished,
    parse_object,
    replace_unencodable,
)
from runnables.run_context import (
    MODEL_FAILURE,
    STRUCTURED_OUTPUT,
    child_config,
    deadline_timeout,
    dispatch_event,
    with_deadline,
    with_fallback,
)
from schemas.choices import Language
from schemas.errors import (
    ContextExceeded,
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
)

T = TypeVar("T", bound=BaseModel)
PromptVariables = dict[str, Any]
OutputMethod = Literal[OutputMode, "cut", "repair", "re-ask", "text"]

MAX_INLINE_PARSE_CHARS = 10_000
"""Maximum length of a reply that is parsed on the event loop, in characters.

Longer replies, and those that need repair, are parsed in a thread.
"""

MAX_SERVER_ERRORS = 2
"""Number of server errors after which a mode that has never produced a reply is not tried again."""

MAX_QUOTED_REPLY_CHARS = 4_000
"""Maximum length of the reply that is quoted in method `re-ask`, in characters."""

PROBE = 'Reply with this JSON object, and with no other text: {"ok": true}'

PROBE_TIMEOUT_S = 15.0
"""Seconds to wait for each reply of a model that is probed."""

log = logging.getLogger(__name__)

OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)
"""All modes, best first."""


@dataclass(frozen=True)
class StructuredReply(Generic[T]):
    """A validated object, the method that produced it, and the model that wrote it."""

    value: T
    method: OutputMethod
    model: ChatModel


@dataclass(frozen=True)
class StructuredOutputCall(Generic[T]):
    """Asks models for an object of `schema`, for one step of the pipeline."""

    step: str
    """Name of the step, for traces, metrics and the log."""
    prompt: PromptName
    language: Language
    schema: type[T]
    from_text: Callable[[str], T | None] | None = None
    """Converts the first reply to an object if all other methods fail; returns None if it is unusable."""

    async def ask_first(
        self,
        models: tuple[ChatModel, ...],
        variables: PromptVariables,
        config: RunnableConfig,
        on_text: OnText | None = None,
    ) -> StructuredReply[T]:
        """Return the reply of the first model that gives a valid one.

        Raises the ModelError of the first model if all fail.
        """
        errors: list[ModelError] = []
        for model in models:
            run = with_fallback(config, model is not models[-1])
            try:
                return await self.ask(model, variables, run, on_text)
            except ModelError as error:
                log.warning("%s: %s", self.step, error)
                errors.append(error)
        raise errors[0]

    async def ask(
        self,
        model: ChatModel,
        variables: PromptVariables,
        config: RunnableConfig,
        on_text: OnText | None = None,
    ) -> StructuredReply[T]:
        """Return the reply of `model`; `on_text` receives the text of the reply while it is streamed.

        Raises ModelError.
        """
        prompt = self.messages(variables)
        text, mode = await self.reply(model, prompt, config, on_text)
        try:
            value, method = await self._parse(model, text, mode, config)
            return await self._report(value, method, model, config)
        except UnreadableReply as error:
            problem = str(error)
        corrected = await self._ask_again(model, prompt, text, problem, config, on_text)
        if corrected is not None:
            return await self._report(*corrected, model, config)
        if self.from_text and (value_of_text := self.from_text(text)) is not None:
            return await self._report(value_of_text, "text", model, config)
        invalid = ModelOutputInvalid(f"{model.role.setting}: the reply does not fit its schema")
        await dispatch_event(config, MODEL_FAILURE, **model.role.labels, code=invalid.code)
        raise invalid

    async def _ask_again(
        self,
        model: ChatModel,
        prompt: list[BaseMessage],
        text: str,
        problem: str,
        config: RunnableConfig,
        on_text: OnText | None,
    ) -> tuple[T, OutputMethod] | None:
        """Show the model its reply and the problem with it.

        Returns the corrected object and its method (`re-ask` or `cut`), or None if the call fails or the
        second reply is not valid either.
        """
        request = load_prompt("repair", self.language).format_messages(problem=problem)
        quoted = text[:MAX_QUOTED_REPLY_CHARS] or "…"
        messages = [*prompt, AIMessage(quoted), *request]
        try:
            second_text, _ = await self.reply(model, messages, config, on_text)
            value, method = await self._parse(model, second_text, "re-ask", config)
            return value, "cut" if method == "cut" else "re-ask"
        except (ModelError, UnreadableReply) as error:
            log.info("%s: no valid second reply: %s", self.step, type(error).__name__)
            return None

    async def reply(
        self,
        model: ChatModel,
        messages: list[BaseMessage],
        config: RunnableConfig,
        on_text: OnText | None = None,
    ) -> tuple[str, OutputMode]:
        """Return the reply's text, and its output mode: the best one that the model does not refuse.

        Raises ModelError.
        """
        modes = list(model.output_modes) or [
            mode for mode in OUTPUT_MODES if model.server_errors[mode] < MAX_SERVER_ERRORS
        ]
        is_proven = bool(model.output_modes)
        may_be_temporary = False
        while True:
            mode, is_last = modes[0], len(modes) == 1
            run = child_config(
                config, f"{self.step}/model", rung=mode, prompt=self._template.get_name()
            )
            try:
                client = bound_client(model, mode, self.schema)
                reply = await model.ask(messages, run, client, on_text, is_proven or is_last)
            except (ModelRefused, NotImplementedError) as error:
                if is_last or not may_be_about_mode(error):
                    raise
                log.warning("%s: mode %s failed, trying %s: %s", self.step, mode, modes[1], error)
                if isinstance(error, ModelRefused) and error.status in MODE_ERRORS:
                    model.server_errors[mode] += 1
                    # After a single server error, the next call tries the mode again.
                    may_be_temporary |= model.server_errors[mode] < MAX_SERVER_ERRORS
                modes.pop(0)
                continue
            if not may_be_temporary:
                model.output_modes = modes
            return reply_text(reply), mode

    async def _parse(
        self, model: ChatModel, text: str, method: OutputMethod, config: RunnableConfig
    ) -> tuple[T, OutputMethod]:
        """Return the object in `text`, and the method: `cut`, `repair` or, for valid JSON, `method`.

        Raises UnreadableReply. Raises ModelOutputInvalid at the deadline.
        """
        try:
            async with deadline_timeout(config):
                value, repaired = await self._parse_reply(text)
                if not repaired:
                    return value, method
                return value, "cut" if is_unfinished(text) else "repair"
        except TimeoutError:
            setting = model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply cannot be read in time") from None

    async def _parse_reply(self, reply: str) -> tuple[T, bool]:
        """Return the object in `reply`, and whether it was repaired. Raises UnreadableReply."""
        if len(reply) <= MAX_INLINE_PARSE_CHARS:
            with suppress(UnreadableReply):
                return parse_object(reply, self.schema, repair=False)
        return await asyncio.to_thread(parse_object, reply, self.schema)

    def messages(self, variables: PromptVariables) -> list[BaseMessage]:
        """Return the messages of the prompt."""
        return self._template.format_messages(schema=_schema_json(self.schema), **variables)

    @property
    def _template(self) -> ChatPromptTemplate:
        return load_prompt(self.prompt, self.language)

    async def _report(
        self, value: T, method: OutputMethod, model: ChatModel, config: RunnableConfig
    ) -> StructuredReply[T]:
        log.info("%s: valid output from %s (method %s)", self.step, model.name, method)
        await dispatch_event(config, STRUCTURED_OUTPUT, step=self.step, rung=method)
        return StructuredReply(value, method, model)


class _ProbeReply(BaseModel):
    ok: bool


async def probe_model(model: ChatModel) -> bool:
    """Ask `model` for a small JSON object, and return whether the reply contains it.

    Afterwards, `model.output_modes` is known. Raises ModelError; `model.last_error` is the same error if
    the model was called.
    """
    # The name of the prompt has no effect, because `messages` replace the prompt.
    call = StructuredOutputCall("probe", "repair", "en", _ProbeReply)
    messages: list[BaseMessage] = [HumanMessage(PROBE)]
    text = ""
    with tracing_context(enabled=False):
        for _ in range(MAX_SERVER_ERRORS):
            text, _ = await call.reply(model, messages, with_deadline({}, PROBE_TIMEOUT_S))
            if model.output_modes:
                break
    try:
        parse_object(text, _ProbeReply)
    except UnreadableReply:
        return False
    return True


def reply_text(reply: AIMessage) -> str:
    """Return the text of a reply or, if there is none, the arguments of a tool call or the refusal."""
    return replace_unencodable(_raw_text(reply))


@lru_cache
def _schema_json(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema(), ensure_ascii=False)


def _raw_text(reply: AIMessage) -> str:
    if reply.text.strip():
        return reply.text
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        arguments = call["args"]
        return arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return str(reply.additional_kwargs.get("refusal") or "")


def bound_client(model: ChatModel, mode: OutputMode, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """Return the result of `bind_output_mode`, from a cache if possible.

    Binding takes a millisecond. Raises NotImplementedError like `bind_output_mode`.
    """
    if (mode, schema) not in model.clients_by_mode:
        model.clients_by_mode[mode, schema] = bind_output_mode(model, mode, schema)
    return model.clients_by_mode[mode, schema]


def bind_output_mode(
    model: ChatModel, mode: OutputMode, schema: type[BaseModel]
) -> Runnable[Any, Any]:
    """Return the model's client bound to an output mode.

    Raises NotImplementedError if LangChain knows that the provider does not support the mode.
    """
    if mode == "plain":
        return model.client
    if mode == "json_object":
        if not hasattr(model.client, "extra_body"):
            raise NotImplementedError("not supported by the client")
        response_format = {"type": "json_object", "schema": schema.model_json_schema()}
        extra_body = {**(model.client.extra_body or {}), "response_format": response_format}
        return model.client.bind(extra_body=extra_body)
    try:
        with warnings.catch_warnings():  # Anthropic's client warns about an unknown method
            warnings.filterwarnings("error", message="Unrecognized structured output method")
            structured = model.client.with_structured_output(
                schema.model_json_schema(), method=mode
            )
    except (ValueError, UserWarning) as error:
        raise NotImplementedError("not supported by the client") from error
    # Leave out the parser at the end of the sequence: it takes minutes for long text.
    bound = structured.first if isinstance(structured, RunnableSequence) else structured
    return _with_raw_response_format(bound)


def may_be_about_mode(error: Exception) -> bool:
    """Return whether another output mode may avoid `error`.

    Another mode does not help if the prompt is too long, or if the key, model or address is wrong.
    """
    if isinstance(error, ContextExceeded):
        return False
    return not isinstance(error, ModelRefused) or error.status not in (401, 403, 404)


def _with_raw_response_format(bound: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return `bound` with its response format in `extra_body`, where OpenAI's client does not see it.

    If the client saw the format, it would parse each streamed chunk, which takes a third longer.
    """
    if not isinstance(bound, RunnableBinding) or not hasattr(bound.bound, "extra_body"):
        return bound
    options = dict(bound.kwargs)
    if (response_format := options.pop("response_format", None)) is not None:
        extra_body = bound.bound.extra_body or {}
        options["extra_body"] = {**extra_body, "response_format": response_format}
    return bound.bound.bind(**options)
