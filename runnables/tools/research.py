"""One model with its tools: LangChain's agent, with the manners and bounds of this house.
A question, and what was found for it -> what the answer may rest on, looked up by a model with tools.

LangChain's agent only gathers: the answer is written, checked and grounded by the steps that follow.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolErrorMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.language import estimate_tokens
from prompts import load_prompt
from runnables.answer.write_answer import MAX_OUTPUT_SHARE, fit_chunks
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import ChatModels
from runnables.run_context import child_config, named_step, remaining_seconds, with_deadline
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
from runnables.tools.tool_context import (
    CallJournal,
    DocumentLibrary,
    ToolContext,
    without_duplicates,
)
from schemas.degraded import DegradedReason
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelTimeout
from schemas.platform import PlatformInfo

MAX_CALLS_PER_ROUND = 4
"""Calls that one round may hold; they run beside each other."""

GRAPH_STEPS_PER_ROUND = 10
"""Steps of LangGraph that a round may take; each hook of a middleware is one."""

WINDOW_SHARE = 0.4
"""What the chunks of the first retrieval may take of a model's window: what tools find needs the rest."""


class ResearchAgent:
    """One model with its tools."""

    def __init__(
        self,
        model: ChatModel,
        platform_info: PlatformInfo,
        tools: Mapping[str, LookupTool],
        rounds: int,
        seconds: float,
    ) -> None:
        self._model = model
        self._platform_info = platform_info
        self._rounds = rounds
        self._cannot: ToolCallsUnsupported | None = None
        manners: Sequence[Any] = (
            ModelCallLimitMiddleware(run_limit=rounds),
            CallLimitMiddleware(run_limit=MAX_CALLS_PER_ROUND),
            ModelCallMiddleware(model, seconds),
            JournalMiddleware(),
            ToolErrorMiddleware(tool_error_message),
            DeadlineMiddleware(),
        )
        self._agent: Any = create_agent(
            model.client, langchain_tools(tools), context_schema=ToolContext, middleware=manners
        )

    async def look_up(
        self, evidence: PipelineState, library: DocumentLibrary, config: RunnableConfig
    ) -> tuple[CallJournal, ModelError | None]:
        """What the model looked up until it had enough or time was up, or it failed: with why."""
        prompt = self._prompt(evidence)
        journal = CallJournal(self._room - estimate_tokens(prompt))
        if self._cannot:
            return journal, self._cannot
        run: RunnableConfig = child_config(config, "research/agent")
        run["recursion_limit"] = GRAPH_STEPS_PER_ROUND * (self._rounds + 1)
        asked = {"messages": [HumanMessage(prompt)]}
        bench = ToolContext(library, evidence["question"], journal)
        seconds = remaining_seconds(config)
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._agent.ainvoke(asked, run, context=bench)
        except TimeoutError:
            return journal, ModelTimeout(f"{self._model.role.setting}: looking up took too long")
        except ModelError as error:
            if isinstance(error, ToolCallsUnsupported) and error.sure:
                self._cannot = error
            return journal, error
        return journal, None

    @property
    def _room(self) -> int:
        """Tokens of the model's window, without those of a reply."""
        return int(self._model.window / self._model.token_correction * (1 - MAX_OUTPUT_SHARE))

    def _prompt(self, evidence: PipelineState) -> str:
        """The question, and as much of what was found for it as leaves room for more."""
        bare = self._render(evidence, [])
        chunks = fit_chunks(evidence["chunks"], int(WINDOW_SHARE * self._room), bare)
        return self._render(evidence, chunks)

    def _render(self, evidence: PipelineState, chunks: list[RetrievedChunk]) -> str:
        return load_prompt("tools", self._platform_info.language).render(
            platform_info=self._platform_info,
            rounds=self._rounds,
            calls=MAX_CALLS_PER_ROUND,
            chunks=chunks,
            question=evidence["question"].text,
        )


NAME = "research"

TIME_SHARE = 0.6
"""What looking up may take of the time that is left: the answer needs the rest."""

MAX_CHUNKS = 15
"""Chunks that the answer is written from, where tools found any."""

log = logging.getLogger(__name__)


def build_research(
    models: ChatModels,
    platform_info: PlatformInfo,
    library: DocumentLibrary,
    focus: Runnable[PipelineState, PipelineState],
    *,
    rounds: int,
    seconds: float,
    tools: Mapping[str, LookupTool] = TOOLS,
) -> Runnable[PipelineState, PipelineState]:
    """The step `research`: what `focus` gives, behind what a model found with `tools`.

    The model may call tools in `rounds` rounds of `seconds` each, all within a share of the run's time.
    It raises nothing that tools or models do: what was found until then is the evidence.
    """
    researchers = [
        ResearchAgent(model, platform_info, tools, rounds, seconds) for model in models.answer_models
    ]

    async def research(understood: PipelineState, config: RunnableConfig) -> PipelineState:
        evidence = await focus.ainvoke(understood, config)
        timed = with_deadline(config, TIME_SHARE * remaining_seconds(config))
        journal, trouble = await _look_up(researchers, evidence, library, timed)
        found = journal.chunks
        chunks = (
            without_duplicates([*found, *evidence["chunks"]])[:MAX_CHUNKS]
            if found
            else evidence["chunks"]
        )
        return {**evidence, "chunks": chunks, "research": Research(journal.rounds, trouble)}

    return named_step(NAME, research)


async def _look_up(
    researchers: Sequence[ResearchAgent],
    evidence: PipelineState,
    library: DocumentLibrary,
    config: RunnableConfig,
) -> tuple[CallJournal, DegradedReason | None]:
    """What the first model that can looked up, and what went wrong on the way."""
    journal = CallJournal(0)
    trouble: DegradedReason | None = None
    for researcher in researchers:
        journal, error = await researcher.look_up(evidence, library, config)
        if error is None:
            break
        log.warning("%s: %s", NAME, error)
        unsupported = isinstance(error, ToolCallsUnsupported)
        trouble = trouble or (
            DegradedReason.TOOLS_UNSUPPORTED if unsupported else DegradedReason.RESEARCH_INCOMPLETE
        )
        if journal.rounds or isinstance(error, ModelTimeout | ToolCallsUnsupported):
            break
    return journal, trouble
