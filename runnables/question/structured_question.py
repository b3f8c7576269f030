"""question -> what it is about, by one model call."""

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.deadline import remaining, with_deadline
from runnables.listener import tell
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import StructuredOutput
from runnables.state import Classified
from runnables.steps import step
from schemas.errors import ModelError
from schemas.events import Event
from schemas.platform import Voice
from schemas.question import Question, StructuredQuestion

NAME = "structured-question"

SHARE_OF_TIME = 0.4
"""What classification may take of the time that is left: the answer needs the rest."""


def build_structured_question(
    models: ChatModels, voice: Voice, on_failure: str
) -> Runnable[Question, Classified]:
    """The step `structured-question`.

    A question that no model could classify is taken for `general`, so that what was found decides;
    with `on_failure` "error" the step raises ModelError instead. docs/decisions/0003-model-failure.md
    """
    output = StructuredOutput(NAME, "structured_question", voice.language, StructuredQuestion)

    async def structure(question: Question, config: RunnableConfig) -> Classified:
        timed = with_deadline(config, SHARE_OF_TIME * remaining(config))
        variables = {"voice": voice, "question": question.text}
        try:
            found = (await output.ask_any(models.structurers, variables, timed)).value
        except ModelError as error:
            if on_failure == "error":
                raise
            return Classified(StructuredQuestion(type="general"), degraded=str(error))
        await tell(config, Event("structured", found))
        return Classified(found)

    return step(NAME, structure)
