"""The step `research`, in which a LangChain agent looks up further chunks with tools.

The agent only collects chunks; the following steps write and ground the answer.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolErrorMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from prompts.chat_prompts import load_prompt
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import ChatModels
from runnables.models.context_window import MAX_OUTPUT_SHARE, count_prompt_tokens, select_chunks
from runnables.retrieval.ranking import without_duplicates
from runnables.run_context import (
    NamedStep,
    child_config,
    deadline_timeout,
    remaining_seconds,
    with_deadline,
)
from runnables.state import PipelineState, Research
from runnables.tools.lookup_tools import TOOLS, LookupTool, langchain_tools
from runnables.tools.middleware import (
    CallLimitMiddleware,
    DeadlineMiddleware,
    JournalMiddleware,
    ModelCallMiddleware,
    ToolCallsUnsupported,
    tool_error_message,
)
from runnables.tools.tool_context import CallJournal, DocumentLibrary, ToolContext
from schemas.answer import DegradedReason
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelTimeout
from schemas.platform import PlatformInfo

STEP_NAME = "research"

TIME_SHARE = 0.6
"""Share of the remaining time that research may take; the answer needs the rest."""

PROMPT_SHARE = 0.4
"""Share of the agent's token budget that the prompt may take; the results of tools need the rest."""

MAX_CALLS_PER_ROUND = 4
"""Maximum number of tool calls in one round; they run in parallel."""

GRAPH_STEPS_PER_ROUND = 10
"""Maximum number of LangGraph steps in one round; each hook of a middleware is a step."""

MAX_CHUNKS = 15
"""Maximum number of chunks for the answer if the tools found chunks."""

log = logging.getLogger(__name__)


def build_research(
    models: ChatModels,
    platform_info: PlatformInfo,
    library: DocumentLibrary,
    *,
    rounds: int,
    round_timeout_s: float,
    tools: Mapping[str, LookupTool] = TOOLS,
) -> Runnable[PipelineState, PipelineState]:
    """Return the step that finds chunks with `tools`, and puts them before the chunks of the state.

    The model may call tools in at most `rounds` rounds of `round_timeout_s` seconds each. If a model or a
    tool fails, the step does not raise an error but uses the chunks found so far.
    """
    agents = [
        ResearchAgent(model, platform_info, tools, rounds, round_timeout_s)
        for model in models.answer_models
    ]

    async def research(state: PipelineState, config: RunnableConfig) -> PipelineState:
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        journal, degraded = await _research_with_fallbacks(agents, state, library, timed)
        chunks = state["chunks"]
        if found := journal.chunks:
            chunks = without_duplicates([*found, *chunks])[:MAX_CHUNKS]
        return {**state, "chunks": chunks, "research": Research(journal.calls, degraded)}

    return NamedStep(research, STEP_NAME)


async def _research_with_fallbacks(
    agents: Sequence["ResearchAgent"],
    state: PipelineState,
    library: DocumentLibrary,
    config: RunnableConfig,
) -> tuple[CallJournal, DegradedReason | None]:
    """Try the agents in order; return the last journal, and the reason if the answer is degraded.

    If an agent fails before its first tool call, the next agent is tried, except after
    ToolCallsUnsupported and ModelTimeout.
    """
    journal = CallJournal(0)
    errors: list[ModelError] = []
    for agent in agents:
        journal, error = await agent.look_up(state, library, config)
        if error is None:
            return journal, DegradedReason.from_error(errors[0]) if errors else None
        log.warning("%s: %s", STEP_NAME, error)
        errors.append(error)
        if journal.calls or isinstance(error, ToolCallsUnsupported | ModelTimeout):
            break
    if isinstance(errors[0], ToolCallsUnsupported):
        return journal, DegradedReason.TOOLS_UNSUPPORTED
    return journal, DegradedReason.RESEARCH_INCOMPLETE


class ResearchAgent:
    """A LangChain agent: a model that looks up chunks with tools."""

    def __init__(
        self,
        model: ChatModel,
        platform_info: PlatformInfo,
        tools: Mapping[str, LookupTool],
        rounds: int,
        round_timeout_s: float,
    ) -> None:
        self._model = model
        self._platform_info = platform_info
        self._rounds = rounds
        self._unsupported: ToolCallsUnsupported | None = None
        """The error, once it is certain that the model cannot call tools; None before."""
        middleware: Sequence[Any] = (
            ModelCallLimitMiddleware(run_limit=rounds),
            CallLimitMiddleware(run_limit=MAX_CALLS_PER_ROUND),
            ModelCallMiddleware(model, round_timeout_s),
            JournalMiddleware(),
            ToolErrorMiddleware(tool_error_message),
            DeadlineMiddleware(),
        )
        self._agent: Any = create_agent(
            model.client, langchain_tools(tools), context_schema=ToolContext, middleware=middleware
        )

    async def look_up(
        self, state: PipelineState, library: DocumentLibrary, config: RunnableConfig
    ) -> tuple[CallJournal, ModelError | None]:
        """Return the journal of all calls, and the error that ended the research early, if any."""
        prompt = self._prompt(state)
        journal = CallJournal(self._token_budget - count_prompt_tokens(prompt))
        if self._unsupported:
            return journal, self._unsupported
        run: RunnableConfig = child_config(config, "research/agent")
        run["recursion_limit"] = GRAPH_STEPS_PER_ROUND * (self._rounds + 1)
        context = ToolContext(library, state["question"], journal)
        try:
            async with deadline_timeout(config):
                await self._agent.ainvoke({"messages": prompt}, run, context=context)
        except TimeoutError:
            return journal, ModelTimeout(f"{self._model.role.setting}: research took too long")
        except ModelError as error:
            if isinstance(error, ToolCallsUnsupported) and error.certain:
                self._unsupported = error
            return journal, error
        return journal, None

    @property
    def _token_budget(self) -> int:
        """Estimated number of tokens for the prompt and the results of tools; the reply needs the rest."""
        return int(self._model.window / self._model.token_correction * (1 - MAX_OUTPUT_SHARE))

    def _prompt(self, state: PipelineState) -> list[BaseMessage]:
        """Return the prompt, with as many retrieved chunks as leave room for the results of tools."""
        without_chunks = count_prompt_tokens(self._messages(state, []))
        max_tokens = PROMPT_SHARE * self._token_budget - without_chunks
        return self._messages(state, select_chunks(state["chunks"], max_tokens))

    def _messages(self, state: PipelineState, chunks: list[RetrievedChunk]) -> list[BaseMessage]:
        return load_prompt("tools", self._platform_info.language).format_messages(
            platform_info=self._platform_info,
            rounds=self._rounds,
            calls=MAX_CALLS_PER_ROUND,
            chunks=chunks,
            question=state["question"].text,
        )
