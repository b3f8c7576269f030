"""Evidence -> a drafted answer, by one model call."""

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig

from runnables.state import Drafted, Evidence
from runnables.steps import step
from runnables.structured_output import structured_output
from schemas.answer import AnswerDraft
from schemas.platform import Voice

NAME = "answer"


def build_answer(
    model: BaseChatModel, model_name: str, voice: Voice
) -> Runnable[Evidence, Drafted]:
    """The step `answer`."""
    ask = structured_output(NAME, "answer", voice.language, model, AnswerDraft)

    async def answer(evidence: Evidence, config: RunnableConfig) -> Drafted:
        asked = evidence["asked"]
        draft = await ask.ainvoke(
            {
                "voice": voice,
                "greeting": voice.say(voice.greeting, asked.language),
                "language": asked.language,
                "chunks": evidence["chunks"],
                "structured": evidence["structured"].model_dump_json(by_alias=True),
                "question": asked.text,
            },
            config,
        )
        return Drafted(**evidence, draft=draft, answered_by=model_name)

    return step(NAME, answer)
