"""What thanks and small talk in a conversation are told."""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts import load_prompt
from runnables.steps import named_step
from schemas.answer import Answer
from schemas.platform import PlatformInfo
from schemas.question import Question, StructuredQuestion


def build_acknowledge(platform_info: PlatformInfo, answered_by: str) -> Runnable[Question, Answer]:
    """The step `acknowledge`: nothing is retrieved for it."""

    async def acknowledge(question: Question, config: RunnableConfig) -> Answer:
        say = load_prompt("extractive", question.language).module
        return Answer(
            id=str(question.id),
            question=question.said or question.text,
            introduction="",
            answer=[str(say.welcome(platform_info.name))],  # type: ignore[attr-defined]
            related_url=[],
            type="unknown",
            structured=StructuredQuestion(type="unknown"),
            sources=[],
            confidence="high",
            language=question.language,
            answered_by=answered_by,
        )

    return named_step("acknowledge", acknowledge)
