"""What an off-topic question is told."""

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.state import Understood
from runnables.steps import step
from schemas.answer import Answer
from schemas.platform import Voice


def build_refuse(voice: Voice, answered_by: str) -> Runnable[Understood, Answer]:
    """The step `refuse`."""

    async def refuse(understood: Understood, config: RunnableConfig) -> Answer:
        asked = understood["asked"]
        return Answer(
            id=str(asked.id),
            question=asked.text,
            introduction=voice.say(voice.greeting, asked.language),
            answer=[voice.say(voice.refusal, asked.language)],
            related_url=[],
            type="unknown",
            structured=understood["classified"].structured,
            sources=[],
            confidence="high",
            language=asked.language,
            answered_by=answered_by,
        )

    return step("refuse", refuse)
