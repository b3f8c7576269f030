"""Middleware of the research agent: calls the model through ChatModel, and limits and records tool calls.

It also repairs the tool calls in a reply, and detects models that do not support tools.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
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

from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts.chat_prompts import escape_data
from runnables.models.chat_model import ChatModel
from runnables.models.json_text import replace_unencodable
from runnables.models.structured_output import reply_text
from runnables.run_context import child_config, with_deadline
from runnables.tools.tool_context import CallJournal, ToolContext
from schemas.errors import ApideskError, ModelError, ModelRefused

UNREADABLE = "unreadable"
"""Name of the argument that replaces a call's arguments if they are not a JSON object, or are too long.

Its value is the start of the text of the replaced arguments.
"""

MAX_ARGUMENT_CHARS = 4_000
"""Maximum length of a call's arguments as JSON, in characters; longer ones are not parsed."""

MAX_QUOTED_ARGUMENT_CHARS = 200
"""Maximum length of the value of `UNREADABLE`, in characters."""

MAX_RESULT_TOKENS = 3_000
"""Maximum length of the result of one call, in tokens, before it is escaped."""

MAX_ERROR_CHARS = 300
"""Maximum length of the error message of a failed call, in characters."""

ToolOutcome = ToolMessage | Command[Any]
RunTool = Callable[[ToolCallRequest], Awaitable[ToolOutcome]]

log = logging.getLogger(__name__)

TOOL_REFUSAL_STATUSES = (400, 405, 415, 422, 501)
"""HTTP statuses that providers return for a request with tools if they do not support tools."""

_TOOL_WORDS = re.compile(r"\btool|function.call", re.IGNORECASE)


class ToolCallsUnsupported(ModelRefused):
    """The model or its provider does not support tool calls."""

    def __init__(self, model: ChatModel, certain: bool) -> None:
        """Create the error for `model`.

        `certain` is true if the client or the provider reports that tools are not supported, and false if
        this is inferred from the reply or from the status of an error.
        """
        message = f"{model.role.setting}: the model cannot call tools, so research is skipped"
        super().__init__(message, status=400)
        self.certain = certain


def may_be_tool_refusal(error: ModelError) -> bool:
    """Return whether `error` may have occurred because the request contained tools."""
    refused = isinstance(error, ModelRefused) and error.status in TOOL_REFUSAL_STATUSES
    return refused or mentions_tools(error)


def mentions_tools(error: ModelError) -> bool:
    """Return whether the provider's error message mentions tools."""
    return bool(_TOOL_WORDS.search(str(error.__cause__ or "")))


def contains_written_call(text: str, tools: Collection[str]) -> bool:
    """Return whether `text` seems to contain a tool call, as written by a model without tool support.

    `tools` are the names of the tools.
    """
    names = "|".join(map(re.escape, tools))
    return bool(re.search(rf'<tool_call>|<\|tool|"name"\s*:\s*"(?:{names})"', text))


def sanitize_tool_calls(reply: AIMessage, journal: CallJournal) -> AIMessage:
    """Return `reply` with all its calls made valid, including those that LangChain could not parse.

    Each call has an id that is unique in the reply and not yet in `journal`.
    """
    ids: set[str] = set()
    calls = []
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        call_id = call["id"] or ""
        if not call_id or call_id in ids or call_id in journal:
            call_id = f"call_{uuid4().hex[:12]}"
        ids.add(call_id)
        name = replace_unencodable(call["name"] or "")
        calls.append(tool_call(name=name, args=_arguments(call["args"]), id=call_id))
    return reply.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def arguments_schema(tool: BaseTool) -> type[BaseModel]:
    """Return the pydantic model of the arguments of `tool`, except injected ones such as `runtime`."""
    return cast(type[BaseModel], tool.tool_call_schema)


def check_arguments(tool: BaseTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Validate `arguments` and return those that `tool` declares.

    Raises ToolException with a message for the model.
    """
    if UNREADABLE in arguments:
        raise ToolException("the arguments are not a JSON object, or are too long")
    try:
        validated = arguments_schema(tool).model_validate(arguments)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        raise ToolException("; ".join(problems)) from None
    return {name: getattr(validated, name) for name in validated.model_fields_set}


def _arguments(raw: Any) -> dict[str, Any]:
    """Return `raw` as a dict that can be encoded as JSON in UTF-8.

    If it is not a JSON object or is too long, the dict has the single key `UNREADABLE`.
    """
    text = raw if isinstance(raw, str) else json.dumps(raw, default=str, ensure_ascii=False)
    text = replace_unencodable(text)
    value = None
    if len(text) <= MAX_ARGUMENT_CHARS:
        with suppress(ValueError, RecursionError):
            value = json.loads(text, parse_constant=lambda _: None)
    return value if isinstance(value, dict) else {UNREADABLE: text[:MAX_QUOTED_ARGUMENT_CHARS]}


class ModelCallMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Calls the agent's model through ChatModel, with its retries, its circuit breaker and a deadline.

    A call may take `round_timeout_s` seconds, or less if the run ends earlier. Raises ModelError, for
    example ToolCallsUnsupported if the model or its provider does not support tools.
    """

    def __init__(self, model: ChatModel, round_timeout_s: float) -> None:
        super().__init__()
        self._model = model
        self._round_timeout_s = round_timeout_s

    async def awrap_model_call(
        self,
        request: ModelRequest[ToolContext],
        handler: Callable[..., Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Begin a round, call the model, and record the tool calls in its reply."""
        journal = request.runtime.context.journal
        journal.begin_round(self._round_timeout_s)
        is_first = not journal.calls
        try:
            bound = self._model.client.bind_tools(request.tools)
            timed = with_deadline(get_config(), self._round_timeout_s)
            config = child_config(timed, "research/model")
            reply = await self._model.ask(request.messages, config, bound)
        except NotImplementedError:
            raise ToolCallsUnsupported(self._model, certain=True) from None
        except ModelError as error:
            if is_first and may_be_tool_refusal(error):
                raise ToolCallsUnsupported(self._model, mentions_tools(error)) from error
            raise
        reply = sanitize_tool_calls(reply, journal)
        names = [tool.name for tool in request.tools if isinstance(tool, BaseTool)]
        if is_first and not reply.tool_calls and contains_written_call(reply_text(reply), names):
            raise ToolCallsUnsupported(self._model, certain=False)
        for call in reply.tool_calls:
            journal.add_call(call)
        return ModelResponse(result=[reply])


class CallLimitMiddleware(ToolCallLimitMiddleware[Any, ToolContext]):
    """Applies LangChain's limit on tool calls to each round, and records blocked calls in the journal."""

    async def aafter_model(
        self, state: Any, runtime: Runtime[ToolContext]
    ) -> dict[str, Any] | None:
        """Block the calls of this round that exceed the limit."""
        # `run_tool_call_count` includes the calls of earlier rounds, so it is emptied.
        update = self.after_model(cast(Any, {**state, "run_tool_call_count": {}}), runtime)
        for message in (update or {}).get("messages", ()):
            runtime.context.journal.add_error(message.tool_call_id, message.text)
        return update


class JournalMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Records the result or error of each call, then truncates and escapes its text for the model."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> ToolOutcome:
        """Run one call and record its outcome."""
        journal = _journal(request)
        started = time.monotonic()
        message = await handler(request)
        assert isinstance(message, ToolMessage), "a tool must not return a graph command"
        duration_ms = round((time.monotonic() - started) * 1000)
        if message.status == "error":
            problem = " ".join(message.text.split())[:MAX_ERROR_CHARS]
            journal.add_error(message.tool_call_id, problem, duration_ms)
            return _with_content(message, escape_data(problem))
        journal.add_results(message.tool_call_id, message.artifact, duration_ms)
        limit = max(0, min(MAX_RESULT_TOKENS, journal.token_budget))
        text = truncate_to_tokens(message.text, limit)
        journal.token_budget -= estimate_tokens(text)
        return _with_content(message, f"<documents>\n{escape_data(text)}\n</documents>")


class DeadlineMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Validates the arguments of a call, and limits the call to the remaining time of its round.

    Raises ToolException for invalid arguments, and TimeoutError when the round's time is over.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> ToolOutcome:
        """Check the arguments of one call, and run it."""
        if request.tool is not None:
            check_arguments(request.tool, request.tool_call["args"])
        async with asyncio.timeout(_journal(request).round_seconds_left):
            return await handler(request)


def tool_error_message(error: Exception, request: ToolCallRequest) -> str:
    """Return the message that the model receives for a call that raised `error`."""
    name = request.tool_call["name"]
    if isinstance(error, TimeoutError):
        return f"{name} timed out"
    if isinstance(error, ApideskError | ToolException):
        return str(error)
    log.warning("%s failed", name, exc_info=error)
    return f"{name} failed ({type(error).__name__})"


def _journal(request: ToolCallRequest) -> CallJournal:
    return cast(ToolContext, request.runtime.context).journal


def _with_content(message: ToolMessage, content: str) -> ToolMessage:
    return message.model_copy(update={"content": content, "artifact": None})
