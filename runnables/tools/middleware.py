"""The tool calls in a model's reply, made sound: whatever it wrote can be run, listed and sent back.
A tool call in LangChain's agent: checked, bounded, and put down in the journal.
The model's turns in LangChain's agent: asked as our models are, and bounded.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallLimitMiddleware,
    ToolCallRequest,
)
from langchain.tools import BaseTool, ToolException
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from ingestion.text.language import estimate_tokens
from prompts import escape_data
from runnables.models.chat_model import ChatModel
from runnables.models.json_text import clean
from runnables.models.structured_output import text_of
from runnables.retrieval.rerankers import truncate_to_tokens
from runnables.run_context import child_config, with_deadline
from runnables.tools.tool_context import CallJournal, ToolContext
from schemas.errors import ApideskError, ModelError, ModelRefused

UNREADABLE = "unreadable"
"""The only argument of a call whose arguments are no JSON object, or too long: how they begin."""

LONGEST = 4_000
"""Characters of a call's arguments; what is longer is no question to a tool."""

SHOWN = 200

REFUSING = (400, 405, 415, 422, 501)
"""The statuses of a provider that takes a request, but not its tools."""

_SAID = re.compile(r"\btool|function.call", re.IGNORECASE)


class ToolCallsUnsupported(ModelRefused):
    """The model or its provider has no tools; `sure` where it says so."""

    def __init__(self, model: ChatModel, sure: bool) -> None:
        said = f"{model.role.setting}: the model cannot call tools; answered from one search"
        super().__init__(said, status=400)
        self.sure = sure


def is_about_tools(error: ModelError) -> bool:
    """Whether the first request with tools failed of the tools."""
    refused = isinstance(error, ModelRefused) and error.status in REFUSING
    return refused or names_tools(error)


def names_tools(error: ModelError) -> bool:
    """Whether a provider's own words name the tools as what is wrong."""
    return bool(_SAID.search(str(error.__cause__ or "")))


def sanitize_tool_calls(reply: AIMessage, journal: CallJournal) -> AIMessage:
    """`reply` with all its calls as valid ones, each with an id of its own."""
    taken: set[str] = set()
    calls = []
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        call_id = call["id"] or ""
        if not call_id or call_id in taken or call_id in journal:
            call_id = f"call_{uuid4().hex[:12]}"
        taken.add(call_id)
        name = clean(call["name"] or "")
        calls.append(tool_call(name=name, args=_arguments(call["args"]), id=call_id))
    return reply.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def writes_calls(text: str, tools: Collection[str]) -> bool:
    """Whether `text` is a call written out, as models do that were never shown how to call."""
    names = "|".join(map(re.escape, tools))
    return bool(re.search(rf'<tool_call>|<\|tool|"name"\s*:\s*"(?:{names})"', text))


def _arguments(args: Any) -> dict[str, Any]:
    """The arguments as JSON in UTF-8 can hold them."""
    text = args if isinstance(args, str) else json.dumps(args, default=str, ensure_ascii=False)
    text = clean(text)
    try:
        value = json.loads(text, parse_constant=lambda _: None) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {UNREADABLE: text[:SHOWN]}


LONGEST_TEXT = 3_000
"""Tokens of what one call tells the model."""

LONGEST_SENTENCE = 300
"""Characters of what is said of a call that failed."""

log = logging.getLogger(__name__)

Told = ToolMessage | Command[Any]
RunTool = Callable[[ToolCallRequest], Awaitable[Told]]


class JournalMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """What a call gave goes into the journal, and to the model as data that fits its window."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> Told:
        """One call."""
        journal = _journal(request)
        started = time.monotonic()
        message = await handler(request)
        assert isinstance(message, ToolMessage), "no tool here steers the graph"
        milliseconds = round((time.monotonic() - started) * 1000)
        if message.status == "error":
            sentence = " ".join(message.text.split())[:LONGEST_SENTENCE]
            journal.failed(message.tool_call_id, sentence, milliseconds)
            return _said(message, escape_data(sentence))
        journal.gave(message.tool_call_id, message.artifact, milliseconds)
        text = truncate_to_tokens(message.text, max(0, min(LONGEST_TEXT, journal.room)))
        journal.room -= estimate_tokens(text)
        return _said(message, f"<documents>\n{escape_data(text)}\n</documents>")


class DeadlineMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """A call has until the end of its round, and arguments that its tool takes.

    Raises TimeoutError, ToolException.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> Told:
        """One call."""
        if request.tool is not None:
            check_arguments(request.tool, request.tool_call["args"])
        async with asyncio.timeout(_journal(request).seconds_left):
            return await handler(request)


def sentence_of(error: Exception, request: ToolCallRequest) -> str:
    """What the model is told of a call that raised `error`."""
    name = request.tool_call["name"]
    if isinstance(error, TimeoutError):
        return f"{name} gave nothing in time"
    if isinstance(error, ApideskError | ToolException):
        return str(error)
    log.warning("%s failed", name, exc_info=error)
    return f"{name} failed ({type(error).__name__})"


def arguments_schema(tool: BaseTool) -> type[BaseModel]:
    """What `tool`, a function, takes from its caller."""
    return cast(type[BaseModel], tool.tool_call_schema)


def check_arguments(tool: BaseTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of `arguments` that `tool` has. Raises ToolException that says in a sentence what is wrong."""
    if UNREADABLE in arguments:
        raise ToolException("the arguments are no JSON object, or too long")
    try:
        taken = arguments_schema(tool).model_validate(arguments)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        raise ToolException("; ".join(wrong)) from None
    return {name: getattr(taken, name) for name in taken.model_fields_set}


def _journal(request: ToolCallRequest) -> CallJournal:
    return cast(ToolContext, request.runtime.context).journal


def _said(message: ToolMessage, content: str) -> ToolMessage:
    return message.model_copy(update={"content": content, "artifact": None})


class ModelCallMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """The agent's model is asked as all others are: with retries, its circuit, within the deadline.

    Raises ModelError; CannotCallTools when the first turn shows that.
    """

    def __init__(self, model: ChatModel, seconds: float) -> None:
        super().__init__()
        self._model = model
        self._seconds = seconds

    async def awrap_model_call(
        self,
        request: ModelRequest[ToolContext],
        handler: Callable[..., Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """One turn of the model, at most a round long."""
        journal = request.runtime.context.journal
        journal.begin_round(self._seconds)
        first = not journal.rounds
        try:
            bound = self._model.client.bind_tools(request.tools)
            config = child_config(with_deadline(get_config(), self._seconds), "research/model")
            reply = sanitize_tool_calls(
                await self._model.ask(request.messages, config, bound), journal
            )
        except NotImplementedError:
            raise ToolCallsUnsupported(self._model, sure=True) from None
        except ModelError as error:
            if first and is_about_tools(error):
                raise ToolCallsUnsupported(self._model, names_tools(error)) from error
            raise
        if first and not reply.tool_calls and writes_calls(text_of(reply), _names(request.tools)):
            raise ToolCallsUnsupported(self._model, sure=False)
        for call in reply.tool_calls:
            journal.called(call)
        return ModelResponse(result=[reply])


class CallLimitMiddleware(ToolCallLimitMiddleware[Any, ToolContext]):
    """LangChain's limit, counted anew in each round; what it blocks stands in the journal."""

    async def aafter_model(
        self, state: Any, runtime: Runtime[ToolContext]
    ) -> dict[str, Any] | None:
        """Block the calls of this round that are too many."""
        anew: Any = {**state, "run_tool_call_count": {}}
        update = self.after_model(anew, runtime)
        for message in (update or {}).get("messages", ()):
            runtime.context.journal.failed(message.tool_call_id, message.text)
        return update


def _names(tools: Sequence[Any]) -> list[str]:
    return [tool.name for tool in tools if isinstance(tool, BaseTool)]
