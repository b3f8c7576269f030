"""The tool calls in a model's reply: made valid, checked against the tool, or recognised as unsupported."""

import json
import re
from collections.abc import Collection
from typing import Any, cast
from uuid import uuid4

from langchain.tools import BaseTool, ToolException
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from pydantic import BaseModel, ValidationError

from runnables.models.chat_model import ChatModel
from runnables.models.json_text import encodable
from runnables.tools.tool_context import CallJournal
from schemas.errors import ModelError, ModelRefused

UNREADABLE = "unreadable"
"""The only argument of a call whose arguments cannot be parsed; its value is how they begin."""

MAX_ARGUMENT_CHARS = 4_000
"""Characters of a call's arguments; longer ones are not parsed."""

MAX_QUOTED_ARGUMENT_CHARS = 200
"""Characters of unreadable arguments that are kept."""

TOOL_REFUSAL_STATUSES = (400, 405, 415, 422, 501)
"""HTTP statuses with which a provider refuses a request because of its tools."""

_TOOL_WORDS = re.compile(r"\btool|function.call", re.IGNORECASE)


class ToolCallsUnsupported(ModelRefused):
    """The model or its provider does not support tool calls."""

    def __init__(self, model: ChatModel, certain: bool) -> None:
        """`certain` says that the client or the provider states it; else it is a guess from a reply."""
        message = f"{model.role.setting}: the model cannot call tools; answered from one search"
        super().__init__(message, status=400)
        self.certain = certain


def is_tool_refusal(error: ModelError) -> bool:
    """Whether the first request with tools may have failed because of the tools."""
    refused = isinstance(error, ModelRefused) and error.status in TOOL_REFUSAL_STATUSES
    return refused or mentions_tools(error)


def mentions_tools(error: ModelError) -> bool:
    """Whether the provider's own message names the tools as the cause."""
    return bool(_TOOL_WORDS.search(str(error.__cause__ or "")))


def contains_written_call(text: str, tools: Collection[str]) -> bool:
    """Whether `text` contains a tool call written as text, as models without support for tools do."""
    names = "|".join(map(re.escape, tools))
    return bool(re.search(rf'<tool_call>|<\|tool|"name"\s*:\s*"(?:{names})"', text))


def sanitize_tool_calls(reply: AIMessage, journal: CallJournal) -> AIMessage:
    """Return `reply` with all its calls valid, each with an id that is new in `journal`."""
    ids: set[str] = set()
    calls = []
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        call_id = call["id"] or ""
        if not call_id or call_id in ids or call_id in journal:
            call_id = f"call_{uuid4().hex[:12]}"
        ids.add(call_id)
        name = encodable(call["name"] or "")
        calls.append(tool_call(name=name, args=_arguments(call["args"]), id=call_id))
    return reply.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def arguments_schema(tool: BaseTool) -> type[BaseModel]:
    """Return the model of the arguments that `tool` takes from its caller."""
    return cast(type[BaseModel], tool.tool_call_schema)


def check_arguments(tool: BaseTool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the validated `arguments` that `tool` has.

    Raises ToolException with a sentence for the model.
    """
    if UNREADABLE in arguments:
        raise ToolException("the arguments are no JSON object, or too long")
    try:
        validated = arguments_schema(tool).model_validate(arguments)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        raise ToolException("; ".join(problems)) from None
    return {name: getattr(validated, name) for name in validated.model_fields_set}


def _arguments(raw: Any) -> dict[str, Any]:
    """The arguments as an object that JSON in UTF-8 can hold."""
    text = raw if isinstance(raw, str) else json.dumps(raw, default=str, ensure_ascii=False)
    text = encodable(text)
    value = None
    if len(text) <= MAX_ARGUMENT_CHARS:
        try:
            value = json.loads(text, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            value = None
    return value if isinstance(value, dict) else {UNREADABLE: text[:MAX_QUOTED_ARGUMENT_CHARS]}
