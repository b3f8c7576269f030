"""A model that grades answers by the facts that a right answer states."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from app.analytics.evaluation.dataset import Fact
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_judge_model
from runnables.models.structured_output import StructuredOutputCall
from runnables.run_context import with_deadline
from schemas.choices import Language
from schemas.errors import ConfigurationError, ModelError
from schemas.model_output import ModelOutput
from schemas.settings import Settings

Grade = Literal["correct", "partly", "wrong"]

GRADES: tuple[Grade, ...] = get_args(Grade)


class AnswerGrade(ModelOutput):
    """The reply of the judge."""

    grade: Grade = Field(description="correct, partly or wrong")


class Judgement(NamedTuple):
    """The grade of one answer, or the reason why there is none."""

    grade: Grade | None
    failure: str | None
    """The message of the ModelError; None if there is a grade."""


class AnswerJudge:
    """Grades answers, with one call of `model` each, within `timeout_s` seconds."""

    def __init__(self, model: ChatModel, language: Language, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall("grade", "grade", language, AnswerGrade)

    @property
    def name(self) -> str:
        """The model's `provider:model`."""
        return self._model.name

    async def judge(self, question: str, facts: Sequence[Fact], steps: Sequence[str]) -> Judgement:
        """Return the grade of an answer with these steps, or the failure of the model."""
        variables = {"facts": facts, "question": question, "written": "\n".join(steps)}
        config = with_deadline({}, self._timeout_s)
        try:
            reply = await self._output.ask(self._model, variables, config)
        except ModelError as error:
            return Judgement(None, str(error))
        return Judgement(reply.value.grade, None)


def open_answer_judge(
    settings: Settings, model: str | None, language: Language
) -> AnswerJudge | None:
    """Return a judge that calls `model`. If `model` is None, the judge calls APIDESK_JUDGE_MODEL.

    The judge uses APIDESK_JUDGE_BASE_URL, APIDESK_JUDGE_API_KEY and a prompt in `language`. Returns None if
    no model is given or configured. Raises ConfigurationError if the model's name or provider is invalid.
    """
    if model is not None:
        settings = settings.model_copy(update={"judge_model": model})
    opened = open_judge_model(settings)
    if opened is None and model is not None:
        raise ConfigurationError("--judge: must not be empty")
    return AnswerJudge(opened, language, settings.request_timeout) if opened else None


def count_grades(grades: Iterable[Grade | None]) -> dict[Grade, int]:
    """Return the number of answers with each grade."""
    counts = Counter(grades)
    return {grade: counts[grade] for grade in GRADES}
