"""What thanks and small talk in a conversation are told."""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts import load
from runnables.steps import step
from schemas.answer import Answer
from schemas.platform import Voice
from schemas.question import Question, StructuredQuestion


def build_acknowledge(voice: Voice, answered_by: str) -> Runnable[Question, Answer]:
    """The step `acknowledge`: nothing is retrieved for it."""

    async def acknowledge(question: Question, config: RunnableConfig) -> Answer:
        say = load("extractive", question.language).module
        return Answer(
            id=str(question.id),
            question=question.said or question.text,
            introduction="",
            answer=[str(say.welcome(voice.name))],  # type: ignore[attr-defined]
            related_url=[],
            type="unknown",
            structured=StructuredQuestion(type="unknown"),
            sources=[],
            confidence="high",
            language=question.language,
            answered_by=answered_by,
        )

    return step("acknowledge", acknowledge)
