"""A tool call in LangChain's agent: checked, bounded, and put down in the journal."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ToolCallRequest
from langchain.tools import BaseTool, ToolException
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from ingestion.language import estimate_tokens
from prompts import escape_data
from runnables.retrieval.rerank_text import truncate_to_tokens
from runnables.tools.bench import ToolContext
from runnables.tools.calls import UNREADABLE
from runnables.tools.journal import CallJournal
from schemas.errors import ApideskError

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
