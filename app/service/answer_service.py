"""Provides answers and chunks to the HTTP API, the command line and the Python interface."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from langsmith import tracing_context
from sqlalchemy.engine import Engine

from app.service.ask_command import AskCommand, check_question
from app.telemetry.logs import mask_provider_messages
from app.telemetry.metrics import Metrics, update_limiter_gauge
from app.telemetry.run_observer import RunObserver
from app.telemetry.tracing import open_tracing
from ingestion.database.engine import open_engine
from ingestion.job import IngestionJob, ProgressCallback
from ingestion.platform_config import read_platform
from ingestion.providers import ModelRole
from ingestion.store.collection import WARM_UP_QUESTION
from ingestion.sync import foreign_documents_error
from ingestion.text.language import detect_question_language, remove_pasted_text, simplify
from runnables.answer_events import AnswerEventHandler
from runnables.factory import PipelineFactory
from runnables.models.chat_model import ConcurrencyLimiter
from runnables.models.chat_models import (
    NO_CUSTOM_MODELS,
    CustomModels,
    client_name,
    open_chat_models,
)
from runnables.question.extract_details import extract_details
from runnables.retrieval.ranking import add_neighbours
from runnables.retrieval.retriever import RetrievalMode
from runnables.run_context import with_deadline, with_streaming
from schemas.answer import Answer, DegradedReason, EventSink, Source
from schemas.choices import Language
from schemas.document import RetrievedChunk
from schemas.errors import ModelTimeout, ServerStopping, ServiceBusy
from schemas.platform import PlatformConfig
from schemas.question import AnswerMode, Filters, Question
from schemas.settings import Settings

if TYPE_CHECKING:
    from runnables.tools.tool_context import DocumentLibrary

log = logging.getLogger(__name__)


class AnswerService:
    """Answers questions about one platform from one collection."""

    def __init__(
        self,
        settings: Settings,
        platform: PlatformConfig,
        job: IngestionJob,
        engine: Engine | None = None,
        models: CustomModels = NO_CUSTOM_MODELS,
    ) -> None:
        """Create the service. Without `engine`, open the database in `settings`; opening it blocks.

        `models` take precedence over those of the settings.
        """
        if models.chat is not None:
            settings = settings.model_copy(update={"chat_model": client_name(models.chat)})
        self.engine = engine or open_engine(settings)
        """The database of sessions, question records, API keys, cached answers and ingestion runs."""
        self.settings = settings
        self.platform = platform
        self.job = job
        self.collection = job.collection
        self.metrics = Metrics()
        self.in_flight = InFlight()
        self.question_limiter = ConcurrencyLimiter(
            settings.max_concurrency,
            partial(update_limiter_gauge, self.metrics.questions_under_way),
        )
        """Limits how many questions are answered with a model at once."""
        self.call_limiter = ConcurrencyLimiter(
            settings.max_concurrency,
            partial(update_limiter_gauge, self.metrics.model_calls_under_way),
        )
        """Limits how many calls to chat models run at once."""
        self.models = open_chat_models(settings, self.call_limiter, models.chat)
        self.model_probes: dict[ModelRole, asyncio.Task[None]] = {}
        """The last readiness probe of each chat model."""
        self._factory = PipelineFactory(
            settings,
            platform,
            job.collection,
            job.embeddings,
            self.models,
            self.call_limiter,
            models.reranker,
        )
        self.query_embeddings = self._factory.query_embeddings
        self.classify = self._factory.classify()
        self._retrieve = self._factory.retrieve()
        self._pipeline = self._factory.pipeline()
        self.tracing = open_tracing(settings, platform.platform.name)

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer the question. `on_event` receives the events of the answer. Raises ApideskError."""
        question = self.build_question(command)
        config = self.tracing.config(question.id, command.mode, command.session, *command.callbacks)
        if on_event is not None:
            handler = AnswerEventHandler(on_event)
            config = with_streaming(merge_configs(config, {"callbacks": [handler]}))
        return await self.answer(question, config, command.mode)

    async def answer(
        self, question: Question, config: RunnableConfig, mode: AnswerMode = "pipeline"
    ) -> Answer:
        """Answer the question in a run with `config`.

        Raises ApideskError, in particular ModelTimeout after APIDESK_REQUEST_TIMEOUT.
        """
        observer = RunObserver(self.metrics)
        started = time.monotonic()
        timeout_s = self.settings.request_timeout
        config = with_deadline(merge_configs(config, {"callbacks": [observer]}), timeout_s)
        try:
            async with self.in_flight.track(timeout_s), self._question_slot():
                pipeline = await self._load_pipeline(mode)
                answer = await pipeline.ainvoke(question, config)
        finally:
            self.update_circuit_gauge()
        total = round((time.monotonic() - started) * 1000)
        lacks_tools = mode == "tools" and self.models is None
        degraded = DegradedReason.TOOLS_UNAVAILABLE if lacks_tools else None
        answer = answer.model_copy(
            update={
                "timings": dict(observer.milliseconds) | {"total": total},
                "degraded": answer.degraded or degraded,
            }
        )
        observer.record_answer(answer, mode)
        return answer

    async def repeat(self, command: AskCommand, answer: Answer, milliseconds: int) -> Answer:
        """Return a copy of `answer`, an earlier answer to this question, with a new id.

        The copy gets its own trace and is counted in the metrics. Its total time is `milliseconds`.
        """
        question = self.build_question(command)
        observer = RunObserver(self.metrics)
        repeated = answer.model_copy(
            update={
                "id": str(question.id),
                "session": command.session,
                "cached": True,
                "timings": {"total": milliseconds},
            }
        )
        config = self.tracing.config(question.id, command.mode, command.session, observer)

        async def return_repeated(_: Question) -> Answer:
            return repeated

        await RunnableLambda(return_repeated, name="ask").ainvoke(question, config)
        observer.record_answer(repeated, command.mode)
        return repeated

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks, at most k, as sources. A chat model is called only for reranking.

        Raises ApideskError.
        """
        question = self.build_question(command)
        config = self.tracing.config(question.id, None, None, *command.callbacks)
        chunks = await self.retrieve_chunks(question, config)
        return [Source.from_chunk(number, chunk) for number, chunk in enumerate(chunks, 1)]

    async def retrieve_chunks(
        self, question: Question, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Return the best chunks, in a run with `config`.

        Short chunks are extended with the chunks before and after them in the document.

        Raises ApideskError.
        """
        observer = RunObserver(self.metrics)
        chunks = await self._retrieve.ainvoke(
            question, merge_configs(config, {"callbacks": [observer]})
        )
        return await self.collection.run(
            partial(add_neighbours, self.collection, chunks, question.filters)
        )

    def build_question(self, command: AskCommand) -> Question:
        """Return `command.question`. If it is None, build a question with a new id from `command.text`.

        Raises QuestionError if the text is blank or too long.
        """
        if command.question is not None:
            return command.question
        check_question(command.text, self.settings)
        # Without a model, rules analyse the question. They expect simplified Chinese characters.
        text = command.text if self.models else simplify(command.text)
        return Question(
            text=text,
            k=command.k or self.settings.top_k,
            language=command.language or self._detect_language(command),
            filters=command.filters or Filters(),
            history=command.history,
            details=extract_details(text),
        )

    async def warm_up(self) -> None:
        """Retrieve once with full-text search to fill the caches for the first caller. Calls no model.

        Raises StoreError or CollectionMismatch.
        """
        question = self.build_question(AskCommand(WARM_UP_QUESTION))
        with tracing_context(enabled=False):
            await self._factory.retrieve_without_models().ainvoke(question)

    def update_circuit_gauge(self) -> None:
        """Set the gauge of each model's circuit breaker to its current state."""
        self.metrics.update_circuit_gauge(self.models.all if self.models else ())

    def retriever(self, mode: RetrievalMode) -> Runnable[Question, list[RetrievedChunk]]:
        """Return a retriever for `mode`, which may differ from the configured mode.

        Raises ConfigurationError if `mode` needs an embedding model and there is none.
        """
        return self._factory.retrieve(mode)

    @cached_property
    def library(self) -> "DocumentLibrary":
        """The documents, prepared for lookup by tools. The first use blocks."""
        return self._factory.library()

    @cached_property
    def _tools_pipeline(self) -> Runnable[Question, Answer]:
        return self._factory.pipeline("tools")

    async def _load_pipeline(self, mode: AnswerMode) -> Runnable[Question, Answer]:
        """Return the pipeline for `mode`. The pipeline for `tools` is built in a thread at first use."""
        if mode == "pipeline":
            return self._pipeline
        return await asyncio.to_thread(lambda: self._tools_pipeline)

    @asynccontextmanager
    async def _question_slot(self) -> AsyncIterator[None]:
        """Hold a slot of the question limiter within the block; without a model, do nothing.

        Raises ServiceBusy if no slot becomes free within APIDESK_QUEUE_TIMEOUT.
        """
        if self.models is None:
            yield
            return
        async with AsyncExitStack() as stack:
            try:
                slot = self.question_limiter.acquire(self.settings.queue_timeout)
                await stack.enter_async_context(slot)
            except TimeoutError:
                raise ServiceBusy(
                    "too many questions are being answered: ask again later"
                ) from None
            yield

    def _detect_language(self, command: AskCommand) -> Language:
        """Return the language of the latest question that has words outside code and pasted logs.

        If there is no such question, return the platform's language.
        """
        for text in (command.text, *(turn.question for turn in reversed(command.history))):
            prose = extract_details(remove_pasted_text(text)).prose
            if language := detect_question_language(prose):
                return language
        return self.platform.platform.language


def connect_answer_service(
    settings: Settings,
    engine: Engine | None = None,
    models: CustomModels = NO_CUSTOM_MODELS,
    *,
    long_lived: bool = False,
) -> AnswerService:
    """Return a service that is connected to its store, without loading the collection.

    This function blocks. Pass `engine` if the database in `settings` is already open. `models` take
    precedence over those of the settings. With `long_lived`, each ingestion run frees its memory when it
    ends. Raises ApideskError.
    """
    mask_provider_messages()
    platform = read_platform(settings.platform)
    job = IngestionJob.connect(settings, engine, long_lived=long_lived)
    return AnswerService(settings, platform, job, job.runs.engine, models)


@asynccontextmanager
async def open_answer_service(
    settings: Settings,
    progress: ProgressCallback = lambda run: None,
    engine: Engine | None = None,
    models: CustomModels = NO_CUSTOM_MODELS,
    *,
    long_lived: bool = False,
) -> AsyncIterator[AnswerService]:
    """Open a service that is ready to answer, and close it at the end of the block.

    If the collection does not exist yet, the platform is indexed first, and `progress` is called with the
    state of the run. Pass `engine` if the database in `settings` is already open; the engine is closed with
    the service. `models` take precedence over those of the settings. `long_lived` is meant for servers:
    each ingestion run then frees its memory when it ends. Raises ApideskError.
    """
    answer_service = await asyncio.to_thread(
        connect_answer_service, settings, engine, models, long_lived=long_lived
    )
    try:
        job = answer_service.job
        if await asyncio.to_thread(job.collection.exists):
            await asyncio.to_thread(job.collection.load)
            await asyncio.to_thread(_warn_of_foreign_documents, answer_service)
        else:
            await asyncio.to_thread(job.run, job.new_run("start"), progress)
        await answer_service.warm_up()
        yield answer_service
    finally:
        answer_service.job.close()
        await asyncio.to_thread(answer_service.tracing.close)


def _warn_of_foreign_documents(answer_service: AnswerService) -> None:
    """Log a warning if no source of the indexed documents is in platform.toml."""
    indexed = answer_service.collection.indexed_sources().keys()
    if indexed and indexed.isdisjoint(source.name for source in answer_service.platform.sources):
        log.warning("%s", foreign_documents_error(indexed, str(answer_service.settings.platform)))


class InFlight:
    """Limits the duration of answers, and can stop those in progress. For use on one event loop."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_stopped = False

    @asynccontextmanager
    async def track(self, timeout_s: float) -> AsyncIterator[None]:
        """Limit the block to `timeout_s` seconds, and end it earlier if `stop` is called.

        Raises ModelTimeout after the timeout, and ServerStopping after `stop`.
        """
        try:
            async with asyncio.timeout(0 if self._is_stopped else timeout_s) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError:
            if self._is_stopped:
                raise ServerStopping("the server is stopping: ask again") from None
            raise ModelTimeout("the question took longer than APIDESK_REQUEST_TIMEOUT") from None

    def stop(self) -> None:
        """End all tracked blocks with ServerStopping, including those that start later."""
        self._is_stopped = True
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(0)
