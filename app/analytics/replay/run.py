"""Asks recorded questions again and compares the outcomes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from langsmith import tracing_context

from app.analytics.replay.result import Replay, ReplayedQuestion, ReplayOutcome
from app.service.answer_service import open_answer_service
from app.service.ask_command import Answerer, AskCommand
from app.service.record_store import RecordStore
from app.service.records import build_failed_record, build_record
from ingestion.database.engine import open_engine
from schemas.errors import ApideskError, ConfigurationError, StoreLocked
from schemas.record import QuestionRecord
from schemas.settings import Settings

CONCURRENCY = 4
"""Questions asked at the same time."""

ReplayProgress = Callable[[int, int], None]
"""Called with the number of finished questions and the total."""


@dataclass(frozen=True)
class ReplayOptions:
    """Options of `apidesk replay`."""

    days: int
    limit: int
    """Maximum number of questions, the newest first."""
    k: int | None = None
    """Number of chunks; None means as recorded."""


class RecordedQuestion(NamedTuple):
    """A recorded question: how to ask it again, its newest record, and how often it was asked."""

    command: AskCommand
    record: QuestionRecord
    times: int


async def replay(settings: Settings, options: ReplayOptions, progress: ReplayProgress) -> Replay:
    """Ask the questions of the last days again, newest first. Nothing is recorded or traced.

    Raises ConfigurationError if no question was recorded, and ApideskError if the service cannot open.
    """
    recorded = await asyncio.to_thread(_read_questions, settings, options.days)
    if not recorded:
        raise ConfigurationError(f"no questions were recorded in the last {options.days} days")
    try:
        with tracing_context(enabled=False):
            async with open_answer_service(settings) as answer_service:
                replayed = await _replay_all(
                    answer_service, recorded[: options.limit], options.k, progress
                )
    except StoreLocked as error:
        raise StoreLocked(f"{error}: stop the server, or replay on a Milvus server") from None
    k = options.k or settings.top_k
    return Replay(
        days=options.days,
        recorded=len(recorded),
        settings=f"{settings.chat_model}, k={k}",
        questions=replayed,
    )


def _read_questions(settings: Settings, days: int) -> list[RecordedQuestion]:
    engine = open_engine(settings)
    try:
        return distinct_questions(
            RecordStore(engine).since(datetime.now(UTC) - timedelta(days=days))
        )
    finally:
        engine.dispose()


def distinct_questions(records: Iterable[QuestionRecord]) -> list[RecordedQuestion]:
    """The distinct answered questions in `records` (oldest first), returned newest first."""
    by_command: dict[str, list[tuple[AskCommand, QuestionRecord]]] = {}
    for command, record in reversed(list(_commands(records))):
        by_command.setdefault(repr(command), []).append((command, record))
    return [RecordedQuestion(*same[0], times=len(same)) for same in by_command.values()]


def _commands(records: Iterable[QuestionRecord]) -> Iterator[tuple[AskCommand, QuestionRecord]]:
    """How to ask each answered question again.

    A follow-up is asked in its condensed form, because its session may have expired.
    """
    started: set[tuple[str, str | None]] = set()
    for record in records:
        if record.type is None:
            continue
        session = (record.owner, record.session)
        is_follow_up = record.session is not None and session in started
        text = record.understood if is_follow_up and record.understood else record.question
        yield _command(text, record), record
        if record.type != "unknown":  # off-topic questions are not added to sessions
            started.add(session)


def _command(text: str, record: QuestionRecord) -> AskCommand:
    return AskCommand(
        text=text,
        k=record.k,
        language=record.language,
        filters=record.filters,
        mode=record.mode,
    )


async def _replay_all(
    answerer: Answerer,
    recorded: Sequence[RecordedQuestion],
    k: int | None,
    progress: ReplayProgress,
) -> list[ReplayedQuestion]:
    semaphore = asyncio.Semaphore(CONCURRENCY)
    done = 0

    async def ask(each: RecordedQuestion) -> ReplayedQuestion:
        nonlocal done
        async with semaphore:
            after = await _outcome(answerer, replace(each.command, k=k or each.command.k))
        done += 1
        progress(done, len(recorded))
        return ReplayedQuestion(
            id=each.record.id,
            question=each.record.question,
            times=each.times,
            before=ReplayOutcome.of(each.record),
            after=after,
        )

    return await asyncio.gather(*map(ask, recorded))


async def _outcome(answerer: Answerer, command: AskCommand) -> ReplayOutcome:
    """Ask again. The answer is converted to a record, so that both sides are masked and cut alike."""
    try:
        return ReplayOutcome.of(build_record(command, await answerer.ask(command), 0))
    except ApideskError as error:
        return ReplayOutcome.of(build_failed_record(command, error.code, 0))
