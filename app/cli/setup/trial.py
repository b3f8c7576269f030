"""Tries a new platform.toml: indexes its documents and answers one question."""

import asyncio
from dataclasses import dataclass

from app.api.suggestions import SuggestedQuestions
from app.service.answer_service import AnswerService, connect_answer_service
from app.service.ask_command import AskCommand
from ingestion.job import ProgressCallback, run_in_thread
from schemas.answer import Answer
from schemas.errors import ConfigurationError, SourceError
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.settings import Settings


@dataclass(frozen=True)
class Trial:
    """The result of trying a platform.toml."""

    run: IngestionRun
    question: str | None
    """The question that was asked; None if no question can be suggested from the documents."""
    answer: Answer | None
    """None if there is no question."""


async def run_trial(settings: Settings, progress: ProgressCallback) -> Trial:
    """Index the platform in `settings`, as `apidesk ingest` does, and ask a suggested question.

    Raises ApideskError, in particular ConfigurationError if the store contains documents that the sources
    of the platform do not contain, and SourceError if no document was indexed.
    """
    answer_service = await asyncio.to_thread(connect_answer_service, settings)
    try:
        await _check_store(answer_service)
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


async def _check_store(answer_service: AnswerService) -> None:
    """Raise ConfigurationError if the store contains documents that the sources do not contain.

    Such documents usually belong to another platform. The run would delete them, or index its own
    documents next to them.
    """
    if not await asyncio.to_thread(answer_service.collection.exists):
        return
    job, settings = answer_service.job, answer_service.settings
    dry_run = job.new_run("command", IngestionOptions(dry_run=True))
    compared = (await run_in_thread(job, dry_run)).sources
    if indexed_from := [source.name for source in compared if source.deleted or source.kept]:
        raise ConfigurationError(
            f"{settings.milvus_uri} contains documents that are not in the sources of "
            f"{settings.platform.name}. They were indexed under these source names: "
            f"{', '.join(indexed_from)}. Set APIDESK_MILVUS_URI to another store, or run "
            "`apidesk ingest --allow-deletes` to delete them"
        )


def _suggested_question(answer_service: AnswerService) -> str | None:
    questions = SuggestedQuestions(answer_service.collection).get(
        answer_service.platform.platform.language
    )
    return next(iter(questions), None)
