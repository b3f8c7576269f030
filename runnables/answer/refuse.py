"""What an off-topic question is told."""

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.state import PipelineState
from runnables.steps import named_step
from schemas.answer import Answer
from schemas.platform import PlatformInfo


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
