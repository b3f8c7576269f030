"""Single flight: concurrent callers share one answer and its events."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from app.service.answer_cache import SingleFlight
from schemas.answer import Answer, Event, EventSink, Step
from schemas.errors import ModelUnavailable
from schemas.question import StructuredQuestion

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def answer(text: str) -> Answer:
    return Answer(
        id=text,
        question="?",
        introduction="",
        answer=[text],
        related_url=[],
        type="general",
        structured=StructuredQuestion(type="general"),
        sources=[],
        confidence="high",
        language="en",
        answered_by="test",
    )


def step(number: int) -> Event:
    return Event("step", Step(number=number, text="…", unverified=[], supported=True))


class Work:
    """Work that ends when the test sets `may_end`."""

    def __init__(self) -> None:
        self.started = 0
        self.cancelled = 0
        self.on_event: EventSink | None = None
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, on_event: EventSink | None) -> Answer:
        self.started += 1
        self.on_event = on_event
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error:
            raise self.error
        return answer(f"answer {self.started}")


class EventRecorder:
    """Records the numbers of the events that a caller receives."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def __call__(self, event: Event) -> None:
        assert isinstance(event.data, Step)
        self.numbers.append(event.data.number)


async def discard(answer: Answer) -> None:
    """Do not store the answer."""


def start(work: Coroutine[Any, Any, tuple[Answer, bool]]) -> asyncio.Task[tuple[Answer, bool]]:
    return asyncio.create_task(work)


async def run_tasks() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_late_caller_receives_all_events() -> None:
    single_flight, work, early, late = SingleFlight(), Work(), EventRecorder(), EventRecorder()
    first = start(single_flight.join("q", work, discard, early))
    await run_tasks()
    assert work.on_event
    await work.on_event(step(1))
    others = [
        start(single_flight.join("q", work, discard, late)),
        *(start(single_flight.join("q", work, discard, None)) for _ in range(98)),
    ]
    await run_tasks()
    await work.on_event(step(2))
    work.may_end.set()
    assert (await first)[1] is False
    results = await asyncio.gather(*others)
    assert {(each.id, joined) for each, joined in results} == {("answer 1", True)}
    assert (early.numbers, late.numbers, work.started) == ([1, 2], [1, 2], 1)


async def test_other_key_or_later_call_starts_new_work() -> None:
    single_flight, work = SingleFlight(), Work()
    work.may_end.set()
    for key in ("q", "q", "another"):
        await single_flight.join(key, work, discard, None)
    assert work.started == 3


async def test_only_callers_that_arrive_during_the_store_wait_for_it() -> None:
    single_flight, work, stored, may_store = SingleFlight(), Work(), list[str](), asyncio.Event()
    work.may_end.set()

    async def store(answer: Answer) -> None:
        await may_store.wait()
        stored.append(answer.id)

    first, _ = await single_flight.join("q", work, store, None)
    later = [start(single_flight.join("q", work, store, None)) for _ in range(3)]
    await run_tasks()
    assert (first.id, work.started, stored) == ("answer 1", 1, [])
    may_store.set()
    results = await asyncio.gather(*later)
    assert {answer.id for answer, _ in results} == {"answer 2"}
    assert [joined for _, joined in results].count(False) == 1


async def test_work_continues_while_one_caller_waits() -> None:
    single_flight, work = SingleFlight(), Work()
    first, second = (
        start(single_flight.join("q", work, discard, EventRecorder())) for _ in range(2)
    )
    await run_tasks()
    first.cancel()
    await run_tasks()
    assert work.cancelled == 0
    work.may_end.set()
    assert (await second)[0].id == "answer 1"


async def test_work_is_cancelled_when_all_callers_leave_and_restarted_for_the_next() -> None:
    single_flight, work = SingleFlight(), Work()
    tasks = [start(single_flight.join("q", work, discard, None)) for _ in range(2)]
    await run_tasks()
    for task in tasks:
        task.cancel()
    await run_tasks()
    late = start(single_flight.join("q", work, discard, None))
    await run_tasks()
    assert (work.started, work.cancelled) == (2, 1)
    work.may_end.set()
    assert (await late) == (answer("answer 2"), False)


async def test_failure_is_raised_to_every_caller() -> None:
    single_flight, work = SingleFlight(), Work()
    work.error = ModelUnavailable("down")
    tasks = [start(single_flight.join("q", work, discard, None)) for _ in range(3)]
    await run_tasks()
    work.may_end.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in results] == [ModelUnavailable] * 3
