"""Tries a new platform.toml: indexes its documents and answers one question."""

import asyncio
from dataclasses import dataclass

from app.api.suggestions import SuggestedQuestions
from app.service.answer_service import AnswerService, connect_answer_service
from app.service.ask_command import AskCommand
from ingestion.job import ProgressCallback, run_in_thread
from schemas.answer import Answer
from schemas.errors import ConfigurationError, SourceError
from schemas.ingestion import IngestionRun
from schemas.settings import Settings


@dataclass(frozen=True)
class Trial:
    """The result of trying a platform.toml."""

    run: IngestionRun
    question: str | None
    """A suggested question; None if the documents suggest none."""
    answer: Answer | None
    """None if there is no question."""


async def run_trial(settings: Settings, progress: ProgressCallback) -> Trial:
    """Index the platform in `settings`, as `apidesk ingest` does, and ask a suggested question.

    Raises ApideskError, in particular ConfigurationError if the store contains documents of other sources.
    """
    answer_service = await asyncio.to_thread(connect_answer_service, settings)
    try:
        await asyncio.to_thread(_check_store, answer_service)
        run = await run_in_thread(
            answer_service.job, answer_service.job.new_run("command"), progress
        )
        if not any(source.documents for source in run.sources):
            raise SourceError("; ".join(run.refused) or "there was nothing to index")
        question = await asyncio.to_thread(_suggested_question, answer_service)
        answer = await answer_service.ask(AskCommand(question)) if question else None
    finally:
        answer_service.job.close()
        await asyncio.to_thread(answer_service.tracing.close)
    return Trial(run, question, answer)


def _check_store(answer_service: AnswerService) -> None:
    """Raise ConfigurationError if the store contains documents of other sources.

    The run would delete those documents or mix them with its own.
    """
    if not answer_service.collection.exists():
        return
    answer_service.collection.load()
    own = {source.name for source in answer_service.platform.sources}
    others = sorted({entry.source for entry in answer_service.collection.catalogue()} - own)
    if others:
        settings = answer_service.settings
        raise ConfigurationError(
            f"{settings.milvus_uri} contains documents of sources that are not in "
            f"{settings.platform.name} ({', '.join(others)}): set APIDESK_MILVUS_URI to another store"
        )


def _suggested_question(answer_service: AnswerService) -> str | None:
    questions = SuggestedQuestions(answer_service.collection).get(
        answer_service.platform.platform.language
    )
    return next(iter(questions), None)
