"""The desk put together from Settings: what the HTTP routes and the command line both talk to."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langchain_core.runnables import Runnable

from app.timings import StepTimings
from ingestion.collection import Collection
from ingestion.job import IngestionJob, Progress
from ingestion.language import detect_language
from ingestion.profile import read_platform
from runnables.answer import build_answer
from runnables.deadline import with_deadline
from runnables.extractive_answer import build_extractive_answer
from runnables.extractive_question import build_extractive_question
from runnables.fallback import build_answer_or_quote
from runnables.focus import build_focus
from runnables.grounding import build_ground, build_refuse
from runnables.models import ChatModels, open_chat_models
from runnables.pasted import read_pasted
from runnables.pipeline import build_pipeline
from runnables.retriever import Mode, build_retriever
from runnables.structured_question import build_structured_question
from schemas.answer import Answer, Source
from schemas.document import RetrievedChunk
from schemas.errors import ModelTimeout, QuestionError, QuestionTooLong
from schemas.language import Language
from schemas.platform import Platform, Voice
from schemas.question import Question
from schemas.settings import Settings


class Desk:
    """Answers questions about one platform from one collection."""

    def __init__(
        self,
        settings: Settings,
        platform: Platform,
        job: IngestionJob,
    ) -> None:
        self.settings = settings
        self.platform = platform
        self.job = job
        self.collection = job.collection
        self._retrieve = build_retriever(settings, job.collection, job.embeddings)
        self.models = open_chat_models(settings)
        self._pipeline = _pipeline(
            settings, platform.platform, job.collection, self.models, self._retrieve
        )

    async def ask(
        self, text: str, k: int | None = None, language: Language | None = None
    ) -> Answer:
        """Answer `text`. Raises ApideskError."""
        question = self._question(text, k, language)
        timings = StepTimings()
        started = time.monotonic()
        seconds = self.settings.request_timeout
        config = with_deadline({"callbacks": [timings]}, seconds)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._pipeline.ainvoke(question, config)
        except TimeoutError:
            raise ModelTimeout("the question took longer than APIDESK_REQUEST_TIMEOUT") from None
        total = round((time.monotonic() - started) * 1000)
        return answer.model_copy(update={"timings": timings.milliseconds | {"total": total}})

    async def retrieve(self, text: str, k: int | None = None) -> list[Source]:
        """The k best chunks for `text`, without asking a model. Raises ApideskError."""
        found = await self._retrieve.ainvoke(self._question(text, k, None))
        return [Source.of(number, retrieved) for number, retrieved in enumerate(found, 1)]

    def retriever(self, mode: Mode) -> Runnable[Question, list[RetrievedChunk]]:
        """Retrieval in one mode, whichever Settings name. Raises ConfigurationError."""
        settings = self.settings.model_copy(update={"retrieval": mode})
        return build_retriever(settings, self.collection, self.job.embeddings)

    def _question(self, text: str, k: int | None, language: Language | None) -> Question:
        check_question(text, self.settings)
        return Question(
            text=text,
            k=k or self.settings.top_k,
            language=language or self._language_of(text),
        )

    def _language_of(self, text: str) -> Language:
        """The question's language; the platform's when nothing but details was pasted."""
        prose = read_pasted(text).prose
        if any(character.isalpha() for character in prose):
            return detect_language(prose)
        return self.platform.platform.language


def check_question(text: str, settings: Settings) -> None:
    """Raises QuestionError for a question that is blank or too long."""
    if not text.strip():
        raise QuestionError("question: is empty", field="question")
    if len(text) > settings.max_question_chars:
        raise QuestionTooLong(
            f"question: {len(text)} characters, at most {settings.max_question_chars} are taken",
            field="question",
        )


def connect_desk(settings: Settings) -> Desk:
    """A desk connected to its store, its collection not yet loaded. Raises ApideskError."""
    platform = read_platform(settings.platform)
    return Desk(settings, platform, IngestionJob.connect(settings))


@asynccontextmanager
async def open_desk(
    settings: Settings, progress: Progress = lambda run: None
) -> AsyncIterator[Desk]:
    """A desk ready to answer; what has never been indexed is indexed first. Raises ApideskError."""
    desk = await asyncio.to_thread(connect_desk, settings)
    try:
        if await asyncio.to_thread(desk.collection.exists):
            await asyncio.to_thread(desk.collection.load)
        else:
            await asyncio.to_thread(desk.job.run, desk.job.new_run("start"), progress)
        yield desk
    finally:
        desk.job.close()


def _pipeline(
    settings: Settings,
    voice: Voice,
    collection: Collection,
    models: ChatModels | None,
    retrieve: Runnable[Question, list[RetrievedChunk]],
) -> Runnable[Question, Answer]:
    classify, quote = (
        build_extractive_question(collection),
        build_extractive_answer(collection, voice),
    )
    focus = build_focus(collection)
    structured_question, answer = classify, quote
    if models:
        structured_question = build_structured_question(models, voice, settings.on_model_failure)
        answer = build_answer(models, voice)
        if settings.on_model_failure == "extractive":
            answer = build_answer_or_quote(
                answer=answer, classify=classify, focus=focus, quote=quote, voice=voice
            )
    return build_pipeline(
        structured_question=structured_question,
        retrieve=retrieve,
        refuse=build_refuse(voice, settings.chat_model),
        focus=focus,
        answer=answer,
        ground=build_ground(voice),
    )
