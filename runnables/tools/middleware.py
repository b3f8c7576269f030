"""Middleware of the research agent: model calls as everywhere else, tool calls checked and bounded."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallLimitMiddleware,
    ToolCallRequest,
)
from langchain.tools import BaseTool, ToolException
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts import escape_data
from runnables.models.chat_model import ChatModel
from runnables.models.structured_output import reply_text
from runnables.run_context import child_config, with_deadline
from runnables.tools.tool_calls import (
    ToolCallsUnsupported,
    check_arguments,
    contains_written_call,
    is_tool_refusal,
    mentions_tools,
    sanitize_tool_calls,
)
from runnables.tools.tool_context import CallJournal, ToolContext
from schemas.errors import ApideskError, ModelError

MAX_RESULT_TOKENS = 3_000
"""Tokens of one call's result that the model is shown."""

MAX_ERROR_CHARS = 300
"""Characters of the sentence about a call that failed."""

ToolOutcome = ToolMessage | Command[Any]
RunTool = Callable[[ToolCallRequest], Awaitable[ToolOutcome]]

log = logging.getLogger(__name__)


class ModelCallMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Calls the agent's model with the retries, the circuit breaker and the deadline of ChatModel.

    Raises ModelError, and ToolCallsUnsupported if the first round shows that.
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
        """Begin a round: call the model and record the tool calls that it asks for."""
        journal = request.runtime.context.journal
        journal.begin_round(self._round_timeout_s)
        is_first = not journal.rounds
        try:
            bound = self._model.client.bind_tools(request.tools)
            timed = with_deadline(get_config(), self._round_timeout_s)
            config = child_config(timed, "research/model")
            reply = await self._model.ask(request.messages, config, bound)
        except NotImplementedError:
            raise ToolCallsUnsupported(self._model, certain=True) from None
        except ModelError as error:
            if is_first and is_tool_refusal(error):
                raise ToolCallsUnsupported(self._model, mentions_tools(error)) from error
            raise
        reply = sanitize_tool_calls(reply, journal)
        written = not reply.tool_calls and contains_written_call(
            reply_text(reply), _names(request.tools)
        )
        if is_first and written:
            raise ToolCallsUnsupported(self._model, certain=False)
        for call in reply.tool_calls:
            journal.add_call(call)
        return ModelResponse(result=[reply])


class CallLimitMiddleware(ToolCallLimitMiddleware[Any, ToolContext]):
    """LangChain's limit, counted per round; blocked calls are recorded in the journal."""

    async def aafter_model(
        self, state: Any, runtime: Runtime[ToolContext]
    ) -> dict[str, Any] | None:
        """Block the calls of this round that exceed the limit."""
        update = self.after_model(cast(Any, {**state, "run_tool_call_count": {}}), runtime)
        for message in (update or {}).get("messages", ()):
            runtime.context.journal.add_error(message.tool_call_id, message.text)
        return update


class JournalMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Records the result of each call, and truncates and escapes it for the model."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> ToolOutcome:
        """Run one call."""
        journal = _journal(request)
        started = time.monotonic()
        message = await handler(request)
        assert isinstance(message, ToolMessage), "no tool here returns a graph command"
        duration_ms = round((time.monotonic() - started) * 1000)
        if message.status == "error":
            sentence = " ".join(message.text.split())[:MAX_ERROR_CHARS]
            journal.add_error(message.tool_call_id, sentence, duration_ms)
            return _with_content(message, escape_data(sentence))
        journal.add_results(message.tool_call_id, message.artifact, duration_ms)
        limit = max(0, min(MAX_RESULT_TOKENS, journal.token_budget))
        text = truncate_to_tokens(message.text, limit)
        journal.token_budget -= estimate_tokens(text)
        return _with_content(message, f"<documents>\n{escape_data(text)}\n</documents>")


class DeadlineMiddleware(AgentMiddleware[AgentState[Any], ToolContext]):
    """Validates a call's arguments and runs it until the end of its round.

    Raises TimeoutError and ToolException.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> ToolOutcome:
        """Run one call."""
        if request.tool is not None:
            check_arguments(request.tool, request.tool_call["args"])
        async with asyncio.timeout(_journal(request).round_seconds_left):
            return await handler(request)


def tool_error_message(error: Exception, request: ToolCallRequest) -> str:
    """Return the sentence that the model reads about a call that raised `error`."""
    name = request.tool_call["name"]
    if isinstance(error, TimeoutError):
        return f"{name} gave nothing in time"
    if isinstance(error, ApideskError | ToolException):
        return str(error)
    log.warning("%s failed", name, exc_info=error)
    return f"{name} failed ({type(error).__name__})"


def _journal(request: ToolCallRequest) -> CallJournal:
    return cast(ToolContext, request.runtime.context).journal


def _with_content(message: ToolMessage, content: str) -> ToolMessage:
    return message.model_copy(update={"content": content, "artifact": None})


def _names(tools: Sequence[Any]) -> list[str]:
    return [tool.name for tool in tools if isinstance(tool, BaseTool)]
