"""One tiny call to each configured model: what works, and which setting to look at where not.
A new platform.toml, tried: its documents are indexed, and one question is answered.
"""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from langchain_core.messages import HumanMessage
from langsmith import tracing_context

from app.api.suggestions import SuggestedQuestions
from app.service.answer_service import AnswerService, connect_answer_service
from app.service.ask_command import AskCommand
from ingestion.job import IngestionProgress, run_in_thread
from ingestion.providers import ModelRole, model_errors, open_embeddings
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_chat_models, open_judge_model
from runnables.run_context import with_deadline
from schemas.answer import Answer
from schemas.errors import ConfigurationError, ModelError, SourceError
from schemas.ingestion import IngestionRun
from schemas.settings import Settings

CHECK_SECONDS = 15.0
"""How long a model may take to say anything."""


@dataclass(frozen=True)
class ModelCheck:
    """What became of one model's call."""

    role: ModelRole
    problem: str | None
    milliseconds: int


async def check_models(settings: Settings) -> list[ModelCheck]:
    """A check of every model that Settings name, all at once; an empty list for none.

    Raises ConfigurationError when a name or its provider cannot be used at all.
    """
    checks: list[Awaitable[ModelCheck]] = []
    if models := open_chat_models(settings):
        checks += [_timed(model.role, probe(model)) for model in models.all]
    if judge := open_judge_model(settings):
        checks.append(_timed(judge.role, probe(judge)))
    if embeddings := open_embeddings(settings):
        role = ModelRole("EMBEDDING", settings.embedding_model or "")

        async def embed() -> None:
            with model_errors(role):
                async with asyncio.timeout(CHECK_SECONDS):
                    await embeddings.aembed_query("ping")

        checks.append(_timed(role, embed()))
    return list(await asyncio.gather(*checks))


async def probe(model: ChatModel) -> None:
    """One tiny call. Raises ModelError; `model.problem` remembers it."""
    with tracing_context(enabled=False):
        await model.ask([HumanMessage("ping")], with_deadline({}, CHECK_SECONDS))


async def _timed(role: ModelRole, call: Awaitable[None]) -> ModelCheck:
    started = time.monotonic()
    problem: str | None = None
    try:
        await call
    except ModelError as error:
        problem = str(error)
    return ModelCheck(role, problem, round((time.monotonic() - started) * 1000))


@dataclass(frozen=True)
class Trial:
    """What became of it."""

    run: IngestionRun
    question: str | None
    """One that the documents suggest; None where they suggest none."""
    answer: Answer | None


async def try_out(settings: Settings, progress: IngestionProgress) -> Trial:
    """Index the platform in `settings`, as `apidesk ingest` does, and ask what its documents suggest.

    Raises ApideskError; ConfigurationError for a store that holds another platform.
    """
    answer_service = await asyncio.to_thread(connect_answer_service, settings)
    try:
        await asyncio.to_thread(_check_store, answer_service)
        run = await run_in_thread(
            answer_service.job, answer_service.job.new_run("command"), progress
        )
        if not any(source.documents for source in run.sources):
            raise SourceError("; ".join(run.refused) or "nothing was there to index")
        question = await asyncio.to_thread(_suggestion, answer_service)
        answer = await answer_service.ask(AskCommand(question)) if question else None
    finally:
        answer_service.job.close()
        await asyncio.to_thread(answer_service.tracing.close)
    return Trial(run, question, answer)


def _check_store(answer_service: AnswerService) -> None:
    """Documents of sources that this platform does not have would be deleted, or stay among its own."""
    if not answer_service.collection.exists():
        return
    answer_service.collection.load()
    own = {source.name for source in answer_service.platform.sources}
    others = sorted({entry.source for entry in answer_service.collection.catalogue()} - own)
    if others:
        store = answer_service.settings.milvus_uri
        raise ConfigurationError(
            f"{store} holds documents of another platform ({', '.join(others)}): "
            "name another store by APIDESK_MILVUS_URI"
        )


def _suggestion(answer_service: AnswerService) -> str | None:
    questions = SuggestedQuestions(answer_service.collection).get(
        answer_service.platform.platform.language
    )
    return next(iter(questions), None)
