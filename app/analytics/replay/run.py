"""Kept questions, asked again."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from langsmith import tracing_context

from app.analytics.replay.result import Replay, Replayed, ReplayOutcome
from app.service.answer_service import open_answer_service
from app.service.ask_command import Answerer, AskCommand
from app.service.records import RecordStore, failed_record, record_of
from ingestion.database.engine import open_engine
from schemas.errors import ApideskError, ConfigurationError, StoreLocked
from schemas.record import QuestionRecord
from schemas.settings import Settings

AT_ONCE = 4
"""Questions that are asked at the same time."""

ReplayProgress = Callable[[int, int], None]
"""Told how many questions of how many are done."""


@dataclass(frozen=True)
class ReplayOptions:
    """Which questions, and what is to be other than it was."""

    days: int
    limit: int
    k: int | None = None


class KeptQuestion(NamedTuple):
    """A question, its newest record, and how often it was asked."""

    asked: AskCommand
    record: QuestionRecord
    times: int


async def replay(settings: Settings, options: ReplayOptions, progress: ReplayProgress) -> Replay:
    """Ask the questions of the last days again, newest first. Nothing of it is kept or traced.

    Raises ConfigurationError where no question was kept, and ApideskError when the desk cannot open.
    """
    kept = await asyncio.to_thread(_read, settings, options.days)
    if not kept:
        raise ConfigurationError(f"no question of the last {options.days} days was kept")
    try:
        with tracing_context(enabled=False):
            async with open_answer_service(settings) as answer_service:
                replayed = await _ask_all(
                    answer_service, kept[: options.limit], options.k, progress
                )
    except StoreLocked as error:
        raise StoreLocked(f"{error}: stop the server, or replay on a Milvus server") from None
    k = options.k or settings.top_k
    return Replay(
        days=options.days,
        kept=len(kept),
        settings=f"{settings.chat_model}, k={k}",
        questions=replayed,
    )


def _read(settings: Settings, days: int) -> list[KeptQuestion]:
    engine = open_engine(settings)
    try:
        return distinct(RecordStore(engine).since(datetime.now(UTC) - timedelta(days=days)))
    finally:
        engine.dispose()


def distinct(records: Iterable[QuestionRecord]) -> list[KeptQuestion]:
    """What was asked and answered in `records`, which are in order: each question once, newest first."""
    found: dict[str, list[tuple[AskCommand, QuestionRecord]]] = {}
    for asked, record in reversed(list(_answered(records))):
        found.setdefault(repr(asked), []).append((asked, record))
    return [KeptQuestion(*same[0], times=len(same)) for same in found.values()]


def _answered(records: Iterable[QuestionRecord]) -> Iterator[tuple[AskCommand, QuestionRecord]]:
    """A follow-up is asked as it was understood, since its session may be gone; what began a session, or
    has none, as it was said.
    """
    begun: set[tuple[str, str | None]] = set()
    for record in records:
        if record.type is None:
            continue
        session = (record.owner, record.session)
        follows = record.session is not None and session in begun
        text = record.understood if follows and record.understood else record.question
        yield _asked(text, record), record
        if record.type != "unknown":  # which sessions do not remember
            begun.add(session)


def _asked(text: str, record: QuestionRecord) -> AskCommand:
    return AskCommand(
        text=text,
        k=record.k,
        language=record.language,
        filters=record.filters,
        mode=record.mode,
    )


async def _ask_all(
    answer_service: Answerer, kept: Sequence[KeptQuestion], k: int | None, progress: ReplayProgress
) -> list[Replayed]:
    slots = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def ask(each: KeptQuestion) -> Replayed:
        nonlocal done
        async with slots:
            after = await _outcome(answer_service, replace(each.asked, k=k or each.asked.k))
        done += 1
        progress(done, len(kept))
        return Replayed(
            id=each.record.id,
            question=each.record.question,
            times=each.times,
            before=ReplayOutcome.of(each.record),
            after=after,
        )

    return await asyncio.gather(*map(ask, kept))


async def _outcome(answer_service: Answerer, asked: AskCommand) -> ReplayOutcome:
    """As a record would say it, so that what is compared was masked and cut in the same way."""
    try:
        return ReplayOutcome.of(record_of(asked, await answer_service.ask(asked), 0))
    except ApideskError as error:
        return ReplayOutcome.of(failed_record(asked, error.code, 0))
