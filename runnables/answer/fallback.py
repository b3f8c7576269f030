"""The fallback when every chat model fails: an answer without a model, marked as degraded."""

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.run_context import named_step
from runnables.state import Classification, PipelineState, mark_degraded
from schemas.degraded import DegradedReason
from schemas.errors import ModelError
from schemas.question import Question


def build_answer_or_quote(
    *,
    write_answer: Runnable[PipelineState, PipelineState],
    classify_by_rules: Runnable[Question, Classification],
    boost_named_api: Runnable[PipelineState, PipelineState],
    quote: Runnable[PipelineState, PipelineState],
    decline: Runnable[PipelineState, PipelineState],
) -> Runnable[PipelineState, PipelineState]:
    """Return the step that runs `write_answer` and, if that raises ModelError, `quote`.

    A question that no model could classify is classified by rules first; `decline` answers it if the
    rules take it for off-topic. The reasons are in docs/decisions/0003-model-failure.md.
    """

    async def answer_or_quote(state: PipelineState, config: RunnableConfig) -> PipelineState:
        try:
            return await write_answer.ainvoke(state, config)
        except ModelError as error:
            quoted = await answer_without_model(state, config)
            return mark_degraded(quoted, DegradedReason.from_error(error))

    async def answer_without_model(state: PipelineState, config: RunnableConfig) -> PipelineState:
        degraded = state["classification"].degraded
        if degraded is None:
            return await quote.ainvoke(state, config)
        structured = (await classify_by_rules.ainvoke(state["question"], config)).structured
        if structured.type == "unknown":
            return await decline.ainvoke(state, config)
        reclassified: PipelineState = {
            **state,
            "classification": Classification(structured, degraded),
        }
        return await quote.ainvoke(await boost_named_api.ainvoke(reclassified, config), config)

    return named_step("answer-or-quote", answer_or_quote)
