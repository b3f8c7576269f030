"""A new platform.toml, tried: its documents are indexed, and one question is answered."""

import asyncio
from dataclasses import dataclass

from app.answer_service import AnswerService, connect_answer_service
from app.asked import AskCommand
from app.page.suggestions import SuggestedQuestions
from ingestion.job import IngestionProgress, run_in_thread
from schemas.answer import Answer
from schemas.errors import ConfigurationError, SourceError
from schemas.ingestion import IngestionRun
from schemas.settings import Settings


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
