"""A new platform.toml, tried: its documents are indexed, and one question is answered."""

import asyncio
from dataclasses import dataclass

from app.asked import Asked
from app.desk import Desk, connect_desk
from app.page.suggestions import Suggestions
from ingestion.job import Progress, run_in_thread
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


async def try_out(settings: Settings, progress: Progress) -> Trial:
    """Index the platform in `settings`, as `apidesk ingest` does, and ask what its documents suggest.

    Raises ApideskError; ConfigurationError for a store that holds another platform.
    """
    desk = await asyncio.to_thread(connect_desk, settings)
    try:
        await asyncio.to_thread(_check_store, desk)
        run = await run_in_thread(desk.job, desk.job.new_run("command"), progress)
        if not any(source.documents for source in run.sources):
            raise SourceError("; ".join(run.refused) or "nothing was there to index")
        question = await asyncio.to_thread(_suggestion, desk)
        answer = await desk.ask(Asked(question)) if question else None
    finally:
        desk.job.close()
        await asyncio.to_thread(desk.tracing.close)
    return Trial(run, question, answer)


def _check_store(desk: Desk) -> None:
    """Documents of sources that this platform does not have would be deleted, or stay among its own."""
    if not desk.collection.exists():
        return
    desk.collection.load()
    own = {source.name for source in desk.platform.sources}
    others = sorted({entry.source for entry in desk.collection.catalogue()} - own)
    if others:
        store = desk.settings.milvus_uri
        raise ConfigurationError(
            f"{store} holds documents of another platform ({', '.join(others)}): "
            "name another store by APIDESK_MILVUS_URI"
        )


def _suggestion(desk: Desk) -> str | None:
    questions = Suggestions(desk.collection).get(desk.platform.platform.language)
    return next(iter(questions), None)
