"""What serves when every model failed: the answer without a model, marked `degraded`."""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts import load
from runnables.models.chat_models import EXTRACTIVE
from runnables.state import (
    Classified,
    Drafted,
    Evidence,
    Understood,
    Written,
    degraded,
    with_answer,
)
from runnables.steps import step
from schemas.answer import AnswerDraft
from schemas.errors import ModelError
from schemas.platform import Voice
from schemas.question import Question


def build_answer_or_quote(
    *,
    answer: Runnable[Evidence, Drafted],
    classify: Runnable[Question, Classified],
    focus: Runnable[Understood, Evidence],
    quote: Runnable[Evidence, Drafted],
    voice: Voice,
) -> Runnable[Evidence, Drafted]:
    """`answer`; when that fails, the steps that need no model: `classify`, `focus` and `quote`.

    Why it is so: docs/decisions/0003-model-failure.md.
    """

    async def answer_or_quote(evidence: Evidence, config: RunnableConfig) -> Drafted:
        try:
            return await answer.ainvoke(evidence, config)
        except ModelError as error:
            return degraded(await without_model(evidence, config), str(error))

    async def without_model(evidence: Evidence, config: RunnableConfig) -> Drafted:
        if evidence["classified"].degraded is None:
            return await quote.ainvoke(evidence, config)
        by_rules = (await classify.ainvoke(evidence["asked"], config)).structured
        if by_rules.type == "unknown":
            return _uncovered(evidence, voice)
        classified = Classified(by_rules, evidence["classified"].degraded)
        understood = Understood(
            asked=evidence["asked"], classified=classified, retrieved=evidence["retrieved"]
        )
        focused = await focus.ainvoke(understood, config)
        if "researched" in evidence:
            focused["researched"] = evidence["researched"]
        return await quote.ainvoke(focused, config)

    return step("answer-or-quote", answer_or_quote)


def _uncovered(evidence: Evidence, voice: Voice) -> Drafted:
    """No model could tell whether the question is off-topic, but the documents' words say so."""
    say = load("extractive", evidence["asked"].language).module
    sentence = str(say.uncovered(voice.name))  # type: ignore[attr-defined]
    written = Written(AnswerDraft(answer=[sentence]), EXTRACTIVE)
    return with_answer(evidence, evidence["chunks"], written)
