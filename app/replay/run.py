"""Kept questions, asked again."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from langsmith import tracing_context

from app.asked import Answerer, Asked
from app.desk import open_desk
from app.records.store import RecordStore
from app.replay.result import Outcome, Replay, Replayed
from ingestion.database import open_engine
from schemas.errors import ApideskError, ConfigurationError, StoreLocked
from schemas.record import Record
from schemas.settings import Settings

AT_ONCE = 4
"""Questions that are asked at the same time."""


@dataclass(frozen=True)
class ReplayOptions:
    """Which questions, and what is to be other than it was."""

    days: int
    limit: int
    k: int | None = None


async def replay(
    settings: Settings, options: ReplayOptions, progress: Callable[[int, int], None]
) -> Replay:
    """Ask the questions of the last days again, newest first; `progress` is told how many of how many
    are done. Nothing of it is kept.

    Raises ConfigurationError where no question was kept, and ApideskError when the desk cannot open.
    """
    kept = await asyncio.to_thread(_read, settings, options.days)
    if not kept:
        raise ConfigurationError(f"no question of the last {options.days} days was kept")
    try:
        async with open_desk(settings) as desk:
            with tracing_context(enabled=False):
                replayed = await _ask_all(desk, kept[: options.limit], options.k, progress)
    except StoreLocked as error:
        raise StoreLocked(f"{error}: stop the server, or replay on a Milvus server") from None
    k = options.k or settings.top_k
    return Replay(days=options.days, settings=f"{settings.chat_model}, k={k}", questions=replayed)


def _read(settings: Settings, days: int) -> list[tuple[Record, int]]:
    """The questions that were answered, newest first, each once with how often it was asked."""
    engine = open_engine(settings)
    try:
        records = list(RecordStore(engine).since(datetime.now(UTC) - timedelta(days=days)))
    finally:
        engine.dispose()
    return distinct(record for record in reversed(records) if record.type is not None)


def distinct(records: Iterable[Record]) -> list[tuple[Record, int]]:
    """The first of all records that ask the same in the same way, and how many they are."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(repr(_asked(record, None)), []).append(record)
    return [(same[0], len(same)) for same in found.values()]


def _asked(record: Record, k: int | None) -> Asked:
    """A follow-up is asked as it was understood, since its session may be gone."""
    text = record.understood if record.session and record.understood else record.question
    return Asked(
        text=text,
        k=k or record.k,
        language=record.language,
        filters=record.filters,
        mode=record.mode,
        fresh=True,
    )


async def _ask_all(
    desk: Answerer,
    kept: list[tuple[Record, int]],
    k: int | None,
    progress: Callable[[int, int], None],
) -> list[Replayed]:
    slots = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def ask(record: Record, times: int) -> Replayed:
        nonlocal done
        async with slots:
            after = await _outcome(desk, _asked(record, k))
        done += 1
        progress(done, len(kept))
        before = Outcome.of_record(record)
        return Replayed(
            id=record.id, question=record.question, times=times, before=before, after=after
        )

    return await asyncio.gather(*(ask(record, times) for record, times in kept))


async def _outcome(desk: Answerer, asked: Asked) -> Outcome:
    try:
        return Outcome.of_answer(await desk.ask(asked))
    except ApideskError as error:
        return Outcome.of_failure(error.code)
