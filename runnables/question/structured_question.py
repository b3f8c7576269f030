"""question -> what it is about, by one model call."""

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.deadline import remaining, with_deadline
from runnables.listener import emit
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import StructuredOutputCall
from runnables.state import Classification
from runnables.steps import named_step
from schemas.errors import ModelError
from schemas.events import Event
from schemas.platform import PlatformInfo
from schemas.question import Question, StructuredQuestion

NAME = "structured-question"

SHARE_OF_TIME = 0.4
"""What classification may take of the time that is left: the answer needs the rest."""


def build_structured_question(
    models: ChatModels, platform_info: PlatformInfo, on_failure: str
) -> Runnable[Question, Classification]:
    """The step `structured-question`.

    A question that no model could classify is taken for `general`, so that what was found decides;
    with `on_failure` "error" the step raises ModelError instead. docs/decisions/0003-model-failure.md
    """
    output = StructuredOutputCall(
        NAME, "structured_question", platform_info.language, StructuredQuestion
    )

    async def structure(question: Question, config: RunnableConfig) -> Classification:
        timed = with_deadline(config, SHARE_OF_TIME * remaining(config))
        variables = {"platform_info": platform_info, "question": question.text}
        try:
            found = (await output.ask_any(models.extraction_models, variables, timed)).value
        except ModelError as error:
            if on_failure == "error":
                raise
            return Classification(StructuredQuestion(type="general"), degraded=str(error))
        await emit(config, Event("structured", found))
        return Classification(found)

    return named_step(NAME, structure)
