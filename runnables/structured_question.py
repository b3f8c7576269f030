"""question -> StructuredQuestion, by one model call."""

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig

from runnables.steps import step
from runnables.structured_output import structured_output
from schemas.platform import Voice
from schemas.question import Question, StructuredQuestion

NAME = "structured-question"


def build_structured_question(
    model: BaseChatModel, voice: Voice
) -> Runnable[Question, StructuredQuestion]:
    """The step `structured-question`."""
    ask = structured_output(NAME, "structured_question", voice.language, model, StructuredQuestion)

    async def structure(question: Question, config: RunnableConfig) -> StructuredQuestion:
        return await ask.ainvoke({"voice": voice, "question": question.text}, config)

    return step(NAME, structure)
