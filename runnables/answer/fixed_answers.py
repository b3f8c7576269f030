"""What thanks and small talk in a conversation are told.
What an off-topic question is told.
"""

from langchain_core.runnables import Runnable, RunnableConfig

from prompts import load_prompt
from runnables.run_context import named_step
from runnables.state import PipelineState
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


def build_refuse(platform_info: PlatformInfo, answered_by: str) -> Runnable[PipelineState, Answer]:
    """The step `refuse`."""

    async def refuse(understood: PipelineState, config: RunnableConfig) -> Answer:
        asked = understood["question"]
        return Answer(
            id=str(asked.id),
            question=asked.text,
            introduction=platform_info.say(platform_info.greeting, asked.language),
            answer=[platform_info.say(platform_info.refusal, asked.language)],
            related_url=[],
            type="unknown",
            structured=understood["classification"].structured,
            sources=[],
            confidence="high",
            language=asked.language,
            answered_by=answered_by,
        )

    return named_step("refuse", refuse)
