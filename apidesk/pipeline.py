"""The pipeline as a LangChain Runnable that accepts a question as text, as a dict or as a `Question`."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from pydantic import Field

from apidesk.event_loop import EventLoopRunner
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand, check_question
from runnables.run_context import with_streaming
from schemas.answer import Answer
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.question import Filters, Question


class QuestionFields(ApiModel):
    """A question with options: the fields of `POST /ask` without `session` and `mode`."""

    question: str
    k: int | None = Field(default=None, ge=1, le=50)
    """Maximum number of chunks to retrieve. Default: APIDESK_TOP_K."""
    language: Language | None = None
    """The language of the answer. Default: the language of the question."""
    filters: Filters | None = None


QuestionInput = str | dict[str, Any] | QuestionFields | Question
"""The text of a question, a dict with the fields of QuestionFields, or an object."""


class AnswerPipeline(Runnable[QuestionInput, Answer]):
    """Answers questions. The runs of the steps in `runnables.pipeline` are children of its run.

    It dispatches the custom events `structured`, `sources` and `step`. With `stream`, `astream` and
    `astream_events`, each step of the answer is dispatched as soon as it is grounded; the stream itself has
    one item, the answer. The methods raise ApideskError, pydantic.ValidationError for input of the wrong
    form, and RuntimeError outside the block of the `Apidesk`.
    """

    name = "apidesk"

    def __init__(self, answer_service: AnswerService, runner: EventLoopRunner) -> None:
        self._answer_service = answer_service
        self._runner = runner

    @property
    def InputType(self) -> Any:  # noqa: N802  # LangChain's name
        """The accepted types, from which LangChain derives the input schema."""
        return str | QuestionFields | Question

    def invoke(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Return the answer."""
        return self._runner.run(self._answer(input, ensure_config(config)))

    async def ainvoke(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Return the answer."""
        return await self._runner.arun(self._answer(input, ensure_config(config)))

    def stream(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Answer]:
        """Yield the answer. Callbacks receive its steps before it is complete."""
        yield self._runner.run(self._answer(input, with_streaming(ensure_config(config))))

    async def astream(
        self, input: QuestionInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Answer]:
        """Yield the answer. Callbacks receive its steps before it is complete."""
        run_config = with_streaming(ensure_config(config))
        yield await self._runner.arun(self._answer(input, run_config))

    async def _answer(self, input: QuestionInput, config: RunnableConfig) -> Answer:
        question = read_question(self._answer_service, input)
        if not isinstance(config.get("callbacks"), BaseCallbackManager):  # the root of a trace
            traced = self._answer_service.tracing.config(question.id, "pipeline")
            config = merge_configs(traced, config)
        return await self._answer_service.answer(question, config)


def read_question(answer_service: AnswerService, input: QuestionInput) -> Question:
    """Return `input` as a question; options that it does not set have the values of the settings.

    Raises QuestionError for a blank or too long text, and pydantic.ValidationError for invalid fields.
    """
    if isinstance(input, Question):
        check_question(input.text, answer_service.settings)
        return input
    if isinstance(input, str):
        return answer_service.build_question(AskCommand(input))
    fields = QuestionFields.model_validate(input)
    command = AskCommand(fields.question, fields.k, fields.language, fields.filters)
    return answer_service.build_question(command)
