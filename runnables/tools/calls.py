"""The tool calls in a model's reply, made sound: whatever it wrote can be run, listed and sent back."""

import json
import re
from collections.abc import Collection
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call

from runnables.models.chat_model import ChatModel
from runnables.models.json_text import clean
from runnables.tools.journal import CallJournal
from schemas.errors import ModelError, ModelRefused

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
