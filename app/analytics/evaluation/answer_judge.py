"""Asks a model whether answers are correct, compared with the facts that a right answer states."""

from pydantic import ConfigDict, Field

from app.analytics.evaluation.answer_result import Grade, ScoredAnswer
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_judge_model
from runnables.models.structured_output import StructuredOutputCall
from runnables.run_context import with_deadline
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.errors import ConfigurationError
from schemas.settings import Settings


class AnswerGrade(ApiModel):
    """The reply of the judge."""

    model_config = ConfigDict(extra="ignore")

    grade: Grade = Field(description="correct, partly or wrong")


class AnswerJudge:
    """Grades answers, with one call of `model` each, within `timeout_s`."""

    def __init__(self, model: ChatModel, language: Language, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall("grade", "grade", language, AnswerGrade)

    async def grade(self, result: ScoredAnswer) -> ScoredAnswer:
        """Return `result` with its grade if it has facts and quotes a source. Raises ModelError."""
        if result.outcome != "answered" or not result.facts:
            return result
        variables = {
            "facts": result.facts,
            "question": result.question,
            "written": "\n".join(result.steps),
        }
        config = with_deadline({}, self._timeout_s)
        reply = await self._output.ask(self._model, variables, config)
        return result.model_copy(update={"grade": reply.value.grade})


def open_answer_judge(settings: Settings, model: str, language: Language) -> AnswerJudge:
    """Return a judge that calls `model`, with APIDESK_JUDGE_BASE_URL and APIDESK_JUDGE_API_KEY.

    `language` is the language of its prompt. Raises ConfigurationError if the model's name or provider is
    invalid.
    """
    opened = open_judge_model(settings.model_copy(update={"judge_model": model}))
    if opened is None:
        raise ConfigurationError("--judge: is empty")
    return AnswerJudge(opened, language, settings.request_timeout)
