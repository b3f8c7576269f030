"""A question, and what was found for it -> what the answer may rest on, looked up by a model with tools.

LangChain's agent only gathers: the answer is written, checked and grounded by the steps that follow.
"""

import logging
from collections.abc import Mapping, Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.deadline import remaining, with_deadline
from runnables.models.chat_models import ChatModels
from runnables.state import Evidence, Researched, Understood
from runnables.steps import step
from runnables.tools.bench import Library
from runnables.tools.calls import CannotCallTools
from runnables.tools.journal import Journal, once
from runnables.tools.registry import TOOLS, Tool
from runnables.tools.researcher import Researcher
from schemas.errors import ModelTimeout
from schemas.platform import Voice

NAME = "research"

SHARE_OF_TIME = 0.6
"""What looking up may take of the time that is left: the answer needs the rest."""

MOST_CHUNKS = 15
"""Chunks that the answer is written from, where tools found any."""

log = logging.getLogger(__name__)


def build_research(
    models: ChatModels,
    voice: Voice,
    library: Library,
    focus: Runnable[Understood, Evidence],
    *,
    rounds: int,
    seconds: float,
    tools: Mapping[str, Tool] = TOOLS,
) -> Runnable[Understood, Evidence]:
    """The step `research`: what `focus` gives, behind what a model found with `tools`.

    The model may call tools in `rounds` rounds of `seconds` each, all within a share of the run's time.
    It raises nothing that tools or models do: what was found until then is the evidence.
    """
    researchers = [Researcher(model, voice, tools, rounds, seconds) for model in models.writers]

    async def research(understood: Understood, config: RunnableConfig) -> Evidence:
        evidence = await focus.ainvoke(understood, config)
        timed = with_deadline(config, SHARE_OF_TIME * remaining(config))
        journal, trouble = await _look_up(researchers, evidence, library, timed)
        found = journal.chunks
        chunks = once([*found, *evidence["chunks"]])[:MOST_CHUNKS] if found else evidence["chunks"]
        return {**evidence, "chunks": chunks, "researched": Researched(journal.rounds, trouble)}

    return step(NAME, research)


async def _look_up(
    researchers: Sequence[Researcher],
    evidence: Evidence,
    library: Library,
    config: RunnableConfig,
) -> tuple[Journal, str | None]:
    """What the first model that can looked up, and what went wrong on the way."""
    journal, trouble = Journal(0), None
    for researcher in researchers:
        journal, error = await researcher.look_up(evidence, library, config)
        if error is None:
            break
        log.warning("%s: %s", NAME, error)
        trouble = trouble or str(error)
        if journal.rounds or isinstance(error, ModelTimeout | CannotCallTools):
            break
    return journal, trouble
