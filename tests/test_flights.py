"""The same question at the same time: answered once, told to all."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from app.service.cache import SingleFlight
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
    """An answer that comes when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.tell: EventSink | None = None
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, listener: EventSink | None) -> Answer:
        self.begun += 1
        self.tell = listener
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error:
            raise self.error
        return answer(f"answer {self.begun}")


class Heard:
    """What one listener was told."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def __call__(self, event: Event) -> None:
        assert isinstance(event.data, Step)
        self.numbers.append(event.data.number)


async def unkept(answer: Answer) -> None:
    """Keep nothing."""


def begin(work: Coroutine[Any, Any, tuple[Answer, bool]]) -> asyncio.Task[tuple[Answer, bool]]:
    return asyncio.create_task(work)


async def turn() -> None:
    """Let every task go on as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_later_hears_all_from_the_beginning() -> None:
    flights, work, early, late = SingleFlight(), Work(), Heard(), Heard()
    first = begin(flights.join("q", work, unkept, early))
    await turn()
    assert work.tell
    await work.tell(step(1))
    others = [
        begin(flights.join("q", work, unkept, late)),
        *(begin(flights.join("q", work, unkept, None)) for _ in range(98)),
    ]
    await turn()
    await work.tell(step(2))
    work.may_end.set()
    assert (await first)[1] is False
    found = await asyncio.gather(*others)
    assert {(each.id, joined) for each, joined in found} == {("answer 1", True)}
    assert (early.numbers, late.numbers, work.begun) == ([1, 2], [1, 2], 1)


async def test_another_key_or_a_later_time_is_another_answer() -> None:
    flights, work = SingleFlight(), Work()
    work.may_end.set()
    for key in ("q", "q", "another"):
        await flights.join(key, work, unkept, None)
    assert work.begun == 3


async def test_only_who_comes_meanwhile_waits_until_an_answer_is_kept() -> None:
    flights, work, kept, may_keep = SingleFlight(), Work(), list[str](), asyncio.Event()
    work.may_end.set()

    async def keep(answer: Answer) -> None:
        await may_keep.wait()
        kept.append(answer.id)

    first, _ = await flights.join("q", work, keep, None)
    later = [begin(flights.join("q", work, keep, None)) for _ in range(3)]
    await turn()
    assert (first.id, work.begun, kept) == ("answer 1", 1, [])
    may_keep.set()
    found = await asyncio.gather(*later)
    assert {answer.id for answer, _ in found} == {"answer 2"}
    assert [joined for _, joined in found].count(False) == 1


async def test_the_work_goes_on_while_anybody_waits() -> None:
    flights, work = SingleFlight(), Work()
    first, second = (begin(flights.join("q", work, unkept, Heard())) for _ in range(2))
    await turn()
    first.cancel()
    await turn()
    assert work.cancelled == 0
    work.may_end.set()
    assert (await second)[0].id == "answer 1"


async def test_the_work_ends_when_everybody_has_left_and_begins_anew_for_who_comes_then() -> None:
    flights, work = SingleFlight(), Work()
    tasks = [begin(flights.join("q", work, unkept, None)) for _ in range(2)]
    await turn()
    for task in tasks:
        task.cancel()
    await turn()
    late = begin(flights.join("q", work, unkept, None))
    await turn()
    assert (work.begun, work.cancelled) == (2, 1)
    work.may_end.set()
    assert (await late) == (answer("answer 2"), False)


async def test_a_failure_is_everybodys() -> None:
    flights, work = SingleFlight(), Work()
    work.error = ModelUnavailable("down")
    tasks = [begin(flights.join("q", work, unkept, None)) for _ in range(3)]
    await turn()
    work.may_end.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in found] == [ModelUnavailable] * 3
