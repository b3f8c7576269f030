"""The model's turns in LangChain's agent: asked as our models are, and bounded."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallLimitMiddleware,
)
from langchain.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from runnables.deadline import with_deadline
from runnables.models.chat_model import ChatModel
from runnables.models.structured_output import text_of
from runnables.steps import child_config
from runnables.tools.bench import ToolContext
from runnables.tools.calls import (
    ToolCallsUnsupported,
    is_about_tools,
    names_tools,
    sanitize_tool_calls,
    writes_calls,
)
from schemas.errors import ModelError


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
