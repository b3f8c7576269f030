"""One model with its tools: LangChain's agent, with the manners and bounds of this house."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolErrorMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from ingestion.language import estimate_tokens
from prompts import load_prompt
from runnables.answer.context import MAX_OUTPUT_SHARE, fit_chunks
from runnables.deadline import remaining
from runnables.models.chat_model import ChatModel
from runnables.state import PipelineState
from runnables.steps import child_config
from runnables.tools.bench import DocumentLibrary, ToolContext
from runnables.tools.calls import ToolCallsUnsupported
from runnables.tools.journal import CallJournal
from runnables.tools.registry import Tool, langchain_tools
from runnables.tools.running import DeadlineMiddleware, JournalMiddleware, sentence_of
from runnables.tools.turns import CallLimitMiddleware, ModelCallMiddleware
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelTimeout
from schemas.platform import PlatformInfo

CALLS = 4
"""Calls that one round may hold; they run beside each other."""

STEPS = 10
"""Steps of LangGraph that a round may take; each hook of a middleware is one."""

SHARE_OF_WINDOW = 0.4
"""What the chunks of the first retrieval may take of a model's window: what tools find needs the rest."""


class ResearchAgent:
    """One model with its tools."""

    def __init__(
        self,
        model: ChatModel,
        platform_info: PlatformInfo,
        tools: Mapping[str, Tool],
        rounds: int,
        seconds: float,
    ) -> None:
        self._model = model
        self._platform_info = platform_info
        self._rounds = rounds
        self._cannot: ToolCallsUnsupported | None = None
        manners: Sequence[Any] = (
            ModelCallLimitMiddleware(run_limit=rounds),
            CallLimitMiddleware(run_limit=CALLS),
            ModelCallMiddleware(model, seconds),
            JournalMiddleware(),
            ToolErrorMiddleware(sentence_of),
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
        run["recursion_limit"] = STEPS * (self._rounds + 1)
        asked = {"messages": [HumanMessage(prompt)]}
        bench = ToolContext(library, evidence["question"], journal)
        seconds = remaining(config)
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
        chunks = fit_chunks(evidence["chunks"], int(SHARE_OF_WINDOW * self._room), bare)
        return self._render(evidence, chunks)

    def _render(self, evidence: PipelineState, chunks: list[RetrievedChunk]) -> str:
        return load_prompt("tools", self._platform_info.language).render(
            platform_info=self._platform_info,
            rounds=self._rounds,
            calls=CALLS,
            chunks=chunks,
            question=evidence["question"].text,
        )
