"""Fixed answers to small talk, off-topic questions, and questions that the documents do not cover."""

from langchain_core.runnables import RunnableConfig

from ingestion.store.collection import NO_FILTERS
from prompts.chat_prompts import load_quote_texts
from runnables.answer.confidence import refusal_confidence
from runnables.models.chat_models import EXTRACTIVE
from runnables.run_context import emit_answer
from runnables.state import AnswerFunction, Draft, PipelineState, StateFunction, with_draft
from schemas.answer import Answer, AnswerDraft
from schemas.platform import PlatformInfo
from schemas.question import Question, StructuredQuestion


def build_acknowledge(platform_info: PlatformInfo, answered_by: str) -> AnswerFunction[Question]:
    """Return the function that replies to small talk. Its answers get the given `answered_by`."""

    async def acknowledge(question: Question, config: RunnableConfig) -> Answer:
        name = platform_info.name_in(question.language)
        answer = Answer(
            id=str(question.id),
            question=question.original_text or question.text,
            introduction="",
            answer=[str(load_quote_texts(question.language).welcome(name))],
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
    """Return the function that replies to off-topic questions. Its answers get the given `answered_by`."""

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
            # The confidence that the question is off-topic.
            confidence="low" if on_topic is None else refusal_confidence(on_topic),
            language=question.language,
            answered_by=answered_by,
        )
        await emit_answer(config, answer)
        return answer

    return refuse


def build_decline(platform_info: PlatformInfo) -> StateFunction:
    """Return the function that drafts the reply to a question that the documents do not cover."""

    async def decline(state: PipelineState, config: RunnableConfig) -> PipelineState:
        sentence = not_covered_sentence(platform_info, state["question"])
        draft = Draft(AnswerDraft(answer=[sentence]), EXTRACTIVE)
        return with_draft(state, state["chunks"], draft)

    return decline


def gap_opening(question: Question) -> str:
    """Return the first words of a step that names what the documents do not answer."""
    return str(load_quote_texts(question.language).gap())


def not_covered_sentence(platform_info: PlatformInfo, question: Question) -> str:
    """Return the sentence for a question that the documents do not answer."""
    texts, name = load_quote_texts(question.language), platform_info.name_in(question.language)
    return str(texts.uncovered(name, question.filters != NO_FILTERS))
