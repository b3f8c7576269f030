"""What serves when every model failed: the answer without a model, marked `degraded`."""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts import load_prompt
from runnables.models.chat_models import EXTRACTIVE
from runnables.run_context import named_step
from runnables.state import (
    Classification,
    Draft,
    PipelineState,
    mark_degraded,
    with_draft,
)
from schemas.answer import AnswerDraft
from schemas.errors import ModelError
from schemas.platform import PlatformInfo
from schemas.question import Question


def build_answer_or_quote(
    *,
    answer: Runnable[PipelineState, PipelineState],
    classify: Runnable[Question, Classification],
    focus: Runnable[PipelineState, PipelineState],
    quote: Runnable[PipelineState, PipelineState],
    platform_info: PlatformInfo,
) -> Runnable[PipelineState, PipelineState]:
    """`answer`; when that fails, the steps that need no model: `classify`, `focus` and `quote`.

    Why it is so: docs/decisions/0003-model-failure.md.
    """

    async def answer_or_quote(evidence: PipelineState, config: RunnableConfig) -> PipelineState:
        try:
            return await answer.ainvoke(evidence, config)
        except ModelError as error:
            return mark_degraded(await without_model(evidence, config), str(error))

    async def without_model(evidence: PipelineState, config: RunnableConfig) -> PipelineState:
        if evidence["classification"].degraded is None:
            return await quote.ainvoke(evidence, config)
        by_rules = (await classify.ainvoke(evidence["question"], config)).structured
        if by_rules.type == "unknown":
            return _uncovered(evidence, platform_info)
        classified = Classification(by_rules, evidence["classification"].degraded)
        understood = PipelineState(
            question=evidence["question"],
            classification=classified,
            retrieved=evidence["retrieved"],
        )
        focused = await focus.ainvoke(understood, config)
        if "research" in evidence:
            focused["research"] = evidence["research"]
        return await quote.ainvoke(focused, config)

    return named_step("answer-or-quote", answer_or_quote)


def _uncovered(evidence: PipelineState, platform_info: PlatformInfo) -> PipelineState:
    """No model could tell whether the question is off-topic, but the documents' words say so."""
    say = load_prompt("extractive", evidence["question"].language).module
    sentence = str(say.uncovered(platform_info.name))  # type: ignore[attr-defined]
    written = Draft(AnswerDraft(answer=[sentence]), EXTRACTIVE)
    return with_draft(evidence, evidence["chunks"], written)
