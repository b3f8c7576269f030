"""A question, and what was found for it -> what the answer may rest on, looked up by a model with tools.

LangChain's agent only gathers: the answer is written, checked and grounded by the steps that follow.
"""

import logging
from collections.abc import Mapping, Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.deadline import remaining, with_deadline
from runnables.models.chat_models import ChatModels
from runnables.state import PipelineState, Research
from runnables.steps import named_step
from runnables.tools.bench import DocumentLibrary
from runnables.tools.calls import ToolCallsUnsupported
from runnables.tools.journal import CallJournal, without_duplicates
from runnables.tools.registry import TOOLS, Tool
from runnables.tools.researcher import ResearchAgent
from schemas.errors import ModelTimeout
from schemas.platform import PlatformInfo

NAME = "research"

SHARE_OF_TIME = 0.6
"""What looking up may take of the time that is left: the answer needs the rest."""

MOST_CHUNKS = 15
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
    tools: Mapping[str, Tool] = TOOLS,
) -> Runnable[PipelineState, PipelineState]:
    """The step `research`: what `focus` gives, behind what a model found with `tools`.

    The model may call tools in `rounds` rounds of `seconds` each, all within a share of the run's time.
    It raises nothing that tools or models do: what was found until then is the evidence.
    """
    researchers = [
        ResearchAgent(model, platform_info, tools, rounds, seconds) for model in models.writers
    ]

    async def research(understood: PipelineState, config: RunnableConfig) -> PipelineState:
        evidence = await focus.ainvoke(understood, config)
        timed = with_deadline(config, SHARE_OF_TIME * remaining(config))
        journal, trouble = await _look_up(researchers, evidence, library, timed)
        found = journal.chunks
        chunks = (
            without_duplicates([*found, *evidence["chunks"]])[:MOST_CHUNKS]
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
) -> tuple[CallJournal, str | None]:
    """What the first model that can looked up, and what went wrong on the way."""
    journal, trouble = CallJournal(0), None
    for researcher in researchers:
        journal, error = await researcher.look_up(evidence, library, config)
        if error is None:
            break
        log.warning("%s: %s", NAME, error)
        trouble = trouble or str(error)
        if journal.rounds or isinstance(error, ModelTimeout | ToolCallsUnsupported):
            break
    return journal, trouble
