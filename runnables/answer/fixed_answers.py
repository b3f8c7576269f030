"""Answers without a model, for small talk, for off-topic questions and for failures of all models."""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts.chat_prompts import load_quote_texts
from runnables.answer.confidence import confidence_of
from runnables.models.chat_models import EXTRACTIVE
from runnables.run_context import emit_answer
from runnables.state import (
    AnswerFunction,
    Classification,
    Draft,
    PipelineState,
    StateFunction,
    StateStep,
    mark_degraded,
    with_draft,
)
from schemas.answer import Answer, AnswerDraft, DegradedReason
from schemas.choices import Language
from schemas.errors import ModelError
from schemas.platform import PlatformInfo
from schemas.question import Question, StructuredQuestion


def build_acknowledge(platform_info: PlatformInfo, answered_by: str) -> AnswerFunction[Question]:
    """Return the function that replies to small talk. `answered_by` is a model's name."""

    async def acknowledge(question: Question, config: RunnableConfig) -> Answer:
        answer = Answer(
            id=str(question.id),
            question=question.original_text or question.text,
            introduction="",
            answer=[_sentence("welcome", platform_info, question.language)],
            related_url=[],
            type="unknown",
            structured=StructuredQuestion(type="unknown"),
            sources=[],
            confidence="high",
            language=question.language,
            answered_by=answered_by,
        )
        await emit_answer(config, answer)
        return answer

    return acknowledge


def build_refuse(platform_info: PlatformInfo, answered_by: str) -> AnswerFunction[PipelineState]:
    """Return the function that replies to off-topic questions. `answered_by` is a model's name."""

    async def refuse(state: PipelineState, config: RunnableConfig) -> Answer:
        question, on_topic = state["question"], state["classification"].on_topic
        answer = Answer(
            id=str(question.id),
            question=question.text,
            introduction=platform_info.greeting.in_language(question.language),
            answer=[platform_info.refusal.in_language(question.language)],
            related_url=[],
            type="unknown",
            structured=state["classification"].structured,
            sources=[],
            confidence="low" if on_topic is None else confidence_of(1 - on_topic),
            language=question.language,
            answered_by=answered_by,
        )
        await emit_answer(config, answer)
        return answer

    return refuse


def build_decline(platform_info: PlatformInfo) -> StateFunction:
    """Return the function whose draft says that the documents do not answer the question."""

    async def decline(state: PipelineState, config: RunnableConfig) -> PipelineState:
        sentence = not_covered_sentence(platform_info, state["question"].language)
        draft = Draft(AnswerDraft(answer=[sentence]), EXTRACTIVE)
        return with_draft(state, state["chunks"], draft)

    return decline


def not_covered_sentence(platform_info: PlatformInfo, language: Language) -> str:
    """Return the sentence for a question that the documents do not answer."""
    return _sentence("uncovered", platform_info, language)


def _sentence(macro: str, platform_info: PlatformInfo, language: Language) -> str:
    sentences = load_quote_texts(language)
    return str(getattr(sentences, macro)(platform_info.name_in(language)))


def build_answer_or_quote(
    *,
    write_answer: StateFunction,
    classify_by_rules: Runnable[Question, Classification],
    boost_named_api: StateStep,
    quote: StateStep,
    decline: StateFunction,
) -> StateFunction:
    """Return the function that runs `write_answer` and, if that raises ModelError, `quote`.

    If no model could classify the question either, it is classified by rules first; if it is off-topic
    according to the rules, `decline` runs instead of `quote`. The reasons are in
    docs/decisions/0003-model-failure.md.
    """

    async def answer_or_quote(state: PipelineState, config: RunnableConfig) -> PipelineState:
        try:
            return await write_answer(state, config)
        except ModelError as error:
            quoted = await answer_without_model(state, config)
            return mark_degraded(quoted, DegradedReason.from_error(error))

    async def answer_without_model(state: PipelineState, config: RunnableConfig) -> PipelineState:
        degraded = state["classification"].degraded
        if degraded is None:
            return await quote.ainvoke(state, config)
        structured = (await classify_by_rules.ainvoke(state["question"], config)).structured
        if structured.type == "unknown":
            return await decline(state, config)
        reclassified: PipelineState = {
            **state,
            "classification": Classification(structured, degraded),
        }
        return await quote.ainvoke(await boost_named_api.ainvoke(reclassified, config), config)

    return answer_or_quote
