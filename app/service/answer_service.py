"""The desk put together from Settings: what the HTTP routes and the command line both talk to."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_core.runnables import Runnable, RunnableLambda
from langsmith import tracing_context

from app.service.ask_command import AskCommand, InFlight, check_question
from app.telemetry.metrics import Metrics
from app.telemetry.run_observer import RunObserver
from app.telemetry.tracing import open_tracing
from ingestion.job import IngestionJob, IngestionProgress
from ingestion.platform_config import read_platform
from ingestion.text.language import detect_language
from runnables.factory import PipelineFactory
from runnables.models.chat_models import open_chat_models
from runnables.models.concurrency import ConcurrencyLimiter
from runnables.question.extract_details import extract_details
from runnables.retrieval.retriever import RetrievalMode
from runnables.run_context import with_deadline, with_event_sink
from schemas.answer import Answer, EventSink, Source
from schemas.choices import Language
from schemas.document import RetrievedChunk
from schemas.errors import ServiceBusy
from schemas.platform import PlatformConfig
from schemas.question import AnswerMode, Filters, Question
from schemas.settings import Settings

if TYPE_CHECKING:
    from runnables.tools.tool_context import DocumentLibrary

NO_TOOLS = "mode tools takes a chat model, and APIDESK_CHAT_MODEL names none"


class AnswerService:
    """Answers questions about one platform from one collection."""

    def __init__(
        self,
        settings: Settings,
        platform: PlatformConfig,
        job: IngestionJob,
    ) -> None:
        self.settings = settings
        self.platform = platform
        self.job = job
        self.collection = job.collection
        self.metrics = Metrics()
        self.running = InFlight()
        self.questions = ConcurrencyLimiter(
            settings.max_concurrency, self.metrics.update_question_gauge
        )
        """What each question takes one of that a model answers."""
        self.calls = ConcurrencyLimiter(settings.max_concurrency, self.metrics.update_call_gauge)
        """What each call of a chat model takes one of."""
        self.models = open_chat_models(settings, self.calls)
        self._wiring = PipelineFactory(settings, platform, job, self.models, self.calls)
        self.classify = self._wiring.classify()
        self._retrieve = self._wiring.retrieve()
        self._pipeline = self._wiring.pipeline(self.classify, self._retrieve)
        self.tracing = open_tracing(settings, platform.platform.name)

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """Answer from the chunks that the filters let through; `listener` is told how it goes.

        Raises ApideskError.
        """
        question = self.question(asked)
        observer = RunObserver(self.metrics)
        started = time.monotonic()
        seconds = self.settings.request_timeout
        traced = self.tracing.config(
            question.id, asked.mode, asked.session, observer, *asked.callbacks
        )
        config = with_deadline(traced, seconds)
        if listener is not None:
            config = with_event_sink(config, listener)
        try:
            async with self.running.within(seconds), self._admitted():
                answer = await (await self._pipeline_of(asked.mode)).ainvoke(question, config)
        finally:
            self.update_circuit_gauge()
        no_tools = NO_TOOLS if asked.mode == "tools" and not self.models else None
        total = round((time.monotonic() - started) * 1000)
        timed = dict(observer.milliseconds) | {"total": total}
        answer = answer.model_copy(
            update={"timings": timed, "degraded": answer.degraded or no_tools}
        )
        observer.answered(answer, asked.mode)
        return answer

    async def repeat(self, asked: AskCommand, answer: Answer, milliseconds: int) -> Answer:
        """`answer`, given once more: under an id, in a trace and with a time of its own."""
        question = self.question(asked)
        observer = RunObserver(self.metrics)
        again = answer.model_copy(
            update={
                "id": str(question.id),
                "session": asked.session,
                "cached": True,
                "timings": {"total": milliseconds},
            }
        )
        config = self.tracing.config(question.id, asked.mode, asked.session, observer)

        async def give_again(_: Question) -> Answer:
            return again

        await RunnableLambda(give_again, name="ask").ainvoke(question, config)
        observer.answered(again, asked.mode)
        return again

    async def retrieve(self, asked: AskCommand) -> list[Source]:
        """The k best chunks, without asking a model. Raises ApideskError."""
        question = self.question(asked)
        observer = RunObserver(self.metrics)
        config = self.tracing.config(question.id, None, None, observer, *asked.callbacks)
        found = await self._retrieve.ainvoke(question, config)
        return [Source.of(number, retrieved) for number, retrieved in enumerate(found, 1)]

    def update_circuit_gauge(self) -> None:
        """Let the metrics know of each model's circuit as it is now."""
        self.metrics.update_circuit_gauge(self.models.all if self.models else ())

    async def warm_up(self) -> None:
        """Retrieve once, so that no caller is the first; no model is asked. Raises StoreError."""
        question = self.question(AskCommand("预热 warm-up"))
        with tracing_context(enabled=False):
            await self._wiring.retrieve_unaided().ainvoke(question)

    def retriever(self, mode: RetrievalMode) -> Runnable[Question, list[RetrievedChunk]]:
        """Retrieval in one mode, whichever Settings name. Raises ConfigurationError."""
        return self._wiring.retrieve(mode)

    def pipeline(self, mode: AnswerMode) -> Runnable[Question, Answer]:
        """What answers in `mode`. It blocks the first time that a model is to look things up."""
        return self._pipeline if mode == "pipeline" else self._with_tools

    async def _pipeline_of(self, mode: AnswerMode) -> Runnable[Question, Answer]:
        return (
            self._pipeline if mode == "pipeline" else await asyncio.to_thread(self.pipeline, mode)
        )

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        """One of the questions that may be answered at once by a model. Raises DeskBusy."""
        if self.models is None:
            yield
            return
        async with AsyncExitStack() as stack:
            try:
                slot = self.questions.taken(self.settings.queue_timeout)
                await stack.enter_async_context(slot)
            except TimeoutError:
                raise ServiceBusy(
                    "too many questions are being answered: ask again later"
                ) from None
            yield

    @cached_property
    def library(self) -> "DocumentLibrary":
        """What tools look things up in; the first use blocks."""
        return self._wiring.library()

    @cached_property
    def _with_tools(self) -> Runnable[Question, Answer]:
        return self._wiring.pipeline(self.classify, self._retrieve, "tools")

    def question(self, asked: AskCommand) -> Question:
        """What the pipeline is asked, under an id of its own. Raises QuestionError."""
        check_question(asked.text, self.settings)
        return Question(
            text=asked.text,
            k=asked.k or self.settings.top_k,
            language=asked.language or self._language_of(asked.text),
            filters=asked.filters or Filters(),
            history=asked.history,
        )

    def _language_of(self, text: str) -> Language:
        """The question's language; the platform's when nothing but details was pasted."""
        prose = extract_details(text).prose
        if any(character.isalpha() for character in prose):
            return detect_language(prose)
        return self.platform.platform.language


def connect_answer_service(settings: Settings) -> AnswerService:
    """A desk connected to its store, its collection not yet loaded. Raises ApideskError."""
    platform = read_platform(settings.platform)
    return AnswerService(settings, platform, IngestionJob.connect(settings))


@asynccontextmanager
async def open_answer_service(
    settings: Settings, progress: IngestionProgress = lambda run: None
) -> AsyncIterator[AnswerService]:
    """A desk ready to answer; what has never been indexed is indexed first. Raises ApideskError."""
    answer_service = await asyncio.to_thread(connect_answer_service, settings)
    try:
        if await asyncio.to_thread(answer_service.collection.exists):
            await asyncio.to_thread(answer_service.collection.load)
        else:
            await asyncio.to_thread(
                answer_service.job.run, answer_service.job.new_run("start"), progress
            )
        await answer_service.warm_up()
        yield answer_service
    finally:
        answer_service.job.close()
        await asyncio.to_thread(answer_service.tracing.close)
