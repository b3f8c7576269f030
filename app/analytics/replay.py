"""Asks recorded questions again, and compares the new outcomes with the recorded ones."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Literal, NamedTuple, Self, get_args

from langsmith import tracing_context
from pydantic import Field, computed_field

from app.analytics.evaluation.answer_scoring import (
    CITATION,
    AnswerJudge,
    Grade,
    count_grades,
    open_answer_judge,
)
from app.analytics.report_text import time_span
from app.service.answer_service import open_answer_service
from app.service.ask_command import Answerer, AskCommand
from app.service.records import RecordStore, build_failed_record, build_record
from app.telemetry.progress import QuestionProgress
from ingestion.database.engine import open_engine
from schemas.answer import Page
from schemas.base import ApiModel
from schemas.errors import ApideskError, ConfigurationError
from schemas.insights import QuestionRecord
from schemas.question import QuestionType
from schemas.settings import Settings

ReplayVerdict = Literal["high", "medium", "low", "off-topic", "failed"]
"""The confidence of an answer, `off-topic` for an off-topic question, or `failed` if there is no answer."""

VERDICTS: tuple[ReplayVerdict, ...] = get_args(ReplayVerdict)
"""All verdicts, from best to worst."""

ReplayChange = Literal[
    "failed", "lost", "won", "other type", "other confidence", "other pages", "other words", "same"
]
"""The most severe difference between the recorded and the new outcome.

`lost`: only the recorded answer cites pages. `won`: only the new answer cites pages.
"""

CHANGES: tuple[ReplayChange, ...] = get_args(ReplayChange)
"""All changes, the most severe first."""

CHANGE_LABELS: dict[ReplayChange, str] = {
    "failed": "failed",
    "lost": "lost",
    "won": "won",
    "other type": "different type",
    "other confidence": "different confidence",
    "other pages": "different pages",
    "other words": "reworded",
    "same": "same",
}
"""How each change is shown in the report and the plot."""

CONCURRENCY = 4
"""Maximum number of questions that are asked at the same time."""


class ReplayOutcome(ApiModel):
    """The answer to a question, or its error."""

    type: QuestionType | None
    verdict: ReplayVerdict
    pages: list[Page]
    """Cited pages, without duplicates."""
    steps: list[str]
    """The steps of the answer."""
    answered_by: str
    failure: str | None
    """The error code; None if there was an answer."""

    @classmethod
    def of(cls, record: QuestionRecord) -> Self:
        """Return the outcome stored in `record`."""
        return cls(
            type=record.type,
            verdict=_verdict(record),
            pages=_distinct_pages(record.pages),
            steps=list(record.answer),
            answered_by=record.answered_by,
            failure=record.failure,
        )

    @property
    def page_keys(self) -> set[str]:
        """Keys of the cited pages."""
        return set(map(page_key, self.pages))


class ReplayedQuestion(ApiModel):
    """A question with its recorded and its new outcome."""

    id: str
    """Id of the record."""
    question: str
    """The text that is asked again; for a follow-up, its standalone form if this was recorded."""
    times: int
    """Number of times that the question was asked."""
    before: ReplayOutcome
    after: ReplayOutcome
    grade: Grade | None = None
    """The judge's grade of the new answer; None if the judge failed or was not asked.

    `correct` means that the new answer states everything that the recorded answer states.
    """
    judge_failure: str | None = None
    """Why the judge gave no grade; None if the judge gave a grade or was not asked."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """Jaccard similarity of the cited pages, 0 to 1; 1 if neither answer cites a page."""
        before, after = self.before.page_keys, self.after.page_keys
        return len(before & after) / len(before | after) if before | after else 1.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def change(self) -> ReplayChange:
        """The most severe change."""
        before, after = self.before, self.after
        if after.verdict == "failed":
            return "failed"
        if bool(before.pages) != bool(after.pages):
            return "lost" if before.pages else "won"
        if before.type != after.type:
            return "other type"
        if before.verdict != after.verdict:
            return "other confidence"
        if self.overlap < 1:
            return "other pages"
        return "same" if before.steps == after.steps else "other words"


class Replay(ApiModel):
    """Recorded questions, asked again."""

    days: int
    recorded: int = Field(alias="kept")
    """Number of distinct answered questions in the last `days` days. The newest of them are replayed."""
    settings: str
    """Model and k of the replay as text, such as `extractive, k=5 by default`."""
    judge: str | None = None
    """The model that grades the changed answers; None if no judge is configured."""
    questions: list[ReplayedQuestion]

    @property
    def grades(self) -> dict[Grade, int]:
        """Number of changed answers with each grade."""
        return count_grades(question.grade for question in self.questions)

    @property
    def changes(self) -> Counter[ReplayChange]:
        """Number of questions per kind of change."""
        return Counter(question.change for question in self.questions)

    @property
    def overlap(self) -> float:
        """Mean overlap of the questions' cited pages."""
        return fmean(question.overlap for question in self.questions)


def page_key(page: Page) -> str:
    """Return the key that identifies a page: its url, or its title if it has no url."""
    return page.page_url or page.title


def _verdict(record: QuestionRecord) -> ReplayVerdict:
    if record.type is None or record.confidence is None:
        return "failed"
    return "off-topic" if record.type == "unknown" else record.confidence


def _distinct_pages(pages: Iterable[Page]) -> list[Page]:
    plain = (Page(title=page.title, page_url=page.page_url) for page in pages)
    return list({page_key(page): page for page in plain}.values())


@dataclass(frozen=True)
class ReplayOptions:
    """Options of `apidesk replay`."""

    days: int
    limit: int
    """Maximum number of questions to ask, newest first."""
    k: int | None = None
    """Number of chunks to retrieve; None means the recorded k or, if none was recorded, APIDESK_TOP_K."""
    judge: str | None = None
    """`provider:model` of the judge; None means APIDESK_JUDGE_MODEL."""


class RecordedQuestion(NamedTuple):
    """A recorded question, and the command that asks it again."""

    command: AskCommand
    record: QuestionRecord
    """The newest record of the question."""
    times: int
    """Number of times that the question was asked."""


async def replay(settings: Settings, options: ReplayOptions, progress: QuestionProgress) -> Replay:
    """Ask the newest `options.limit` answered questions of the last `options.days` days again.

    Nothing is recorded or traced. Raises ConfigurationError if there are no such questions or the judge
    is invalid, and ApideskError if the database fails or the answer service cannot be opened.
    """
    recorded = await asyncio.to_thread(_read_questions, settings, options.days)
    if not recorded:
        raise ConfigurationError(
            f"no answered questions were recorded in {time_span(options.days)}; pass a larger --days"
        )
    with tracing_context(enabled=False):
        async with open_answer_service(settings) as answer_service:
            language = answer_service.platform.platform.language
            judge = open_answer_judge(settings, options.judge, language)
            replayed = await _replay_all(
                answer_service, judge, recorded[: options.limit], options.k, progress
            )
    k = f"k={options.k}" if options.k else f"k={settings.top_k} by default"
    return Replay(
        days=options.days,
        recorded=len(recorded),
        settings=f"{settings.chat_model}, {k}",
        judge=judge.name if judge else None,
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
    """Return the distinct answered questions in `records`, newest first; `records` are oldest first."""
    by_command: dict[str, list[tuple[AskCommand, QuestionRecord]]] = {}
    for command, record in reversed(list(_commands(records))):
        by_command.setdefault(repr(command), []).append((command, record))
    return [RecordedQuestion(*asked[0], times=len(asked)) for asked in by_command.values()]


def _commands(records: Iterable[QuestionRecord]) -> Iterator[tuple[AskCommand, QuestionRecord]]:
    """Yield each answered question as a command that asks it again, with its record.

    Questions are asked without a session. A follow-up to an earlier question in `records` is asked in its
    standalone form, `record.understood`, if this form was recorded.
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
    judge: AnswerJudge | None,
    recorded: Sequence[RecordedQuestion],
    k: int | None,
    progress: QuestionProgress,
) -> list[ReplayedQuestion]:
    semaphore = asyncio.Semaphore(CONCURRENCY)
    done = 0

    async def ask(question: RecordedQuestion) -> ReplayedQuestion:
        nonlocal done
        command, record = question.command, question.record
        async with semaphore:
            after = await _replay_question(answerer, replace(command, k=k or command.k))
            replayed = ReplayedQuestion(
                id=record.id,
                question=command.text,
                times=question.times,
                before=ReplayOutcome.of(record),
                after=after,
            )
            graded = await _grade(replayed, judge) if judge else replayed
        done += 1
        progress(done, len(recorded))
        return graded

    return await asyncio.gather(*map(ask, recorded))


async def _grade(replayed: ReplayedQuestion, judge: AnswerJudge) -> ReplayedQuestion:
    """Return `replayed` with the grade of its new answer, if both answers cite pages and differ."""
    before, after = replayed.before, replayed.after
    if not (before.pages and after.pages) or before.steps == after.steps:
        return replayed
    facts = [(CITATION.sub("", step).strip(),) for step in before.steps]
    grade, failure = await judge.judge(replayed.question, facts, after.steps)
    return replayed.model_copy(update={"grade": grade, "judge_failure": failure})


async def _replay_question(answerer: Answerer, command: AskCommand) -> ReplayOutcome:
    """Ask a question again, and return its outcome.

    The answer is converted to a record, so that it is masked and truncated like the recorded answer.
    """
    try:
        return ReplayOutcome.of(build_record(command, await answerer.ask(command), 0))
    except ApideskError as error:
        return ReplayOutcome.of(build_failed_record(command, error.code, 0))
