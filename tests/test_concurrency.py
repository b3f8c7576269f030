"""Limits on concurrent questions and model calls."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from runnables.models.chat_model import FAILURE_THRESHOLD, ConcurrencyLimiter
from runnables.models.structured_output import probe_model
from runnables.run_context import with_deadline
from schemas.answer import Answer, Event
from schemas.errors import ModelBusy, ServiceBusy
from tests.http_client import http_client
from tests.model_replies import MakeClient, draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

QUESTION = {"question": "发货接口是哪个"}


class Gate:
    """Holds back the replies of a model until it is opened, and counts concurrent requests."""

    def __init__(self) -> None:
        self.max_concurrent = 0
        self._concurrent = 0
        self._lock = threading.Lock()
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def __call__(self, request: Recorded) -> Any:
        with self._lock:
            self._concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self._concurrent)
        assert self._open.wait(10), "the gate was not opened"
        with self._lock:
            self._concurrent -= 1
        return structured() if is_classification(request) else draft("订单发货。[1]")


@pytest.fixture
def gate(model_server: ModelServer) -> Iterator[Gate]:
    gate = Gate()
    model_server.default = gate
    yield gate
    gate.open()


MakeService = Callable[..., AnswerService]


@pytest.fixture
def make_model_service(sample_service: AnswerService, model_server: ModelServer) -> MakeService:
    """Makes answer services over the sample collection with the scripted model."""

    def make(**overrides: object) -> AnswerService:
        settings = sample_service.settings.model_copy(update=model_server.settings | overrides)
        return AnswerService(settings, sample_service.platform, sample_service.job)

    return make


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds that other tasks bring about."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def is_idle(answer_service: AnswerService) -> bool:
    slots = (answer_service.question_limiter, answer_service.call_limiter)
    return all((each.running, each.waiting) == (0, 0) for each in slots)


def test_concurrent_questions_are_limited(
    make_model_service: MakeService, model_server: ModelServer, gate: Gate
) -> None:
    answer_service = make_model_service(max_concurrency=2, queue_timeout=30)

    async def asked() -> list[Answer]:
        answers = asyncio.gather(
            *(answer_service.ask(AskCommand("发货接口是哪个")) for _ in range(6))
        )
        await until(
            lambda: gate.max_concurrent == 2 and answer_service.question_limiter.waiting == 4
        )
        assert answer_service.question_limiter.running == answer_service.call_limiter.running == 2
        gate.open()
        return await answers

    answers = asyncio.run(asked())
    assert [answer.answered_by for answer in answers] == ["openai:scripted-chat"] * 6
    assert len(model_server.chat_requests) == 12
    assert gate.max_concurrent == 2
    assert is_idle(answer_service)


REFUSALS: dict[str, tuple[Callable[[Recorded], bool], Reply]] = {
    "temperature": (
        lambda request: "temperature" in request.body,
        Reply("Unsupported value: 'temperature' does not support 0", status=400),
    ),
    "limit": (
        lambda request: "max_tokens" in request.body,
        Reply("Unsupported parameter: 'max_tokens'", status=400),
    ),
    "cut reasoning": (
        lambda request: "max_tokens" in request.body,
        Reply("<think>The user wants to ship", finish_reason="length"),
    ),
    "usage": (
        lambda request: "stream_options" in request.body,
        Reply("Unrecognized request argument: stream_options", status=400),
    ),
    "system role": (
        lambda request: request.body["messages"][0]["role"] == "system",
        Reply("System role not supported", status=400),
    ),
}
"""Options of requests: which requests have them, and how a provider refuses them."""


@pytest.mark.parametrize("option", REFUSALS)
def test_refused_option_is_left_out_of_all_concurrent_calls(
    make_model_service: MakeService, model_server: ModelServer, option: str
) -> None:
    """Two requests with the option are sent before the first of them is refused."""
    has_option, refusal = REFUSALS[option]
    both_sent = threading.Barrier(2, timeout=10)

    def reply(request: Recorded) -> Any:
        if has_option(request):
            both_sent.wait()
            return refusal
        return structured() if is_classification(request) else draft("订单发货。[1]")

    async def ignore(event: Event) -> None:
        """Ask for a stream."""

    async def asked() -> list[Answer]:
        answer_service = make_model_service()
        command = AskCommand("发货接口是哪个")
        return await asyncio.gather(*(answer_service.ask(command, ignore) for _ in range(2)))

    model_server.default = reply
    answers = asyncio.run(asked())

    assert [answer.degraded for answer in answers] == [None, None]
    requests = model_server.chat_requests
    assert [has_option(request) for request in requests].count(True) == 2
    assert len(requests) == 6
    formats = {request.body["response_format"]["type"] for request in requests}
    assert formats == {"json_schema"}
    roles = {message["role"] for request in requests for message in request.body["messages"]}
    assert "assistant" not in roles  # the model was not shown its own reply


def test_waiting_too_long_raises_service_busy(make_model_service: MakeService, gate: Gate) -> None:
    answer_service = make_model_service(max_concurrency=1, queue_timeout=0.01)

    async def asked() -> Answer:
        first = asyncio.create_task(answer_service.ask(AskCommand("发货接口是哪个")))
        await until(lambda: gate.max_concurrent == 1)
        with pytest.raises(ServiceBusy):
            await answer_service.ask(AskCommand("怎么发货"))
        gate.open()
        return await first

    answer = asyncio.run(asked())
    assert (answer.answered_by, answer.degraded) == ("openai:scripted-chat", None)
    assert answer_service.models is not None
    assert [model.last_error for model in answer_service.models.all] == [None]
    assert is_idle(answer_service)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_busy_is_503_with_retry_after(
    model_client: MakeClient, model_server: ModelServer, gate: Gate, accept: str
) -> None:
    client = model_client(max_concurrency=1, queue_timeout=0.01)
    first = threading.Thread(target=client.post, args=("/ask",), kwargs={"json": QUESTION})
    first.start()
    while not gate.max_concurrent:
        first.join(0.005)
    busy = client.post("/ask", json=QUESTION, headers={"Accept": accept})
    gate.open()
    first.join()
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "5")
    assert (busy.json()["code"], busy.json()["retryable"]) == ("busy", True)
    assert len(model_server.chat_requests) == 2  # both of the first question


def test_cancelled_question_releases_its_slot(make_model_service: MakeService, gate: Gate) -> None:
    answer_service = make_model_service(max_concurrency=1, queue_timeout=30)

    async def asked() -> Answer:
        running = asyncio.create_task(answer_service.ask(AskCommand("发货接口是哪个")))
        await until(lambda: gate.max_concurrent == 1)
        waiting = asyncio.create_task(answer_service.ask(AskCommand("发货接口是哪个")))
        await until(lambda: answer_service.question_limiter.waiting == 1)
        for task in (waiting, running):
            task.cancel()
        await asyncio.wait({waiting, running})
        assert is_idle(answer_service)
        gate.open()
        return await answer_service.ask(AskCommand("发货接口是哪个"))

    assert asyncio.run(asked()).degraded is None


def test_questions_without_a_model_are_not_limited(sample_service: AnswerService) -> None:
    settings = sample_service.settings.model_copy(update={"max_concurrency": 1, "queue_timeout": 0})
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)

    async def asked() -> list[Answer]:
        return await asyncio.gather(*(answer_service.ask(AskCommand("怎么发货")) for _ in range(3)))

    assert [answer.answered_by for answer in asyncio.run(asked())] == ["extractive"] * 3


def test_no_slot_is_held_between_retries(
    make_model_service: MakeService, model_server: ModelServer, gate: Gate
) -> None:
    answer_service = make_model_service(max_concurrency=1)
    assert answer_service.models is not None
    model = answer_service.models.answer_models[0]
    model_server.reply(Reply(status=429, headers={"retry-after": "30"}))
    gate.open()

    async def asked() -> None:
        slow = asyncio.create_task(probe_model(model))
        await until(
            lambda: len(model_server.chat_requests) == 1 and not answer_service.call_limiter.running
        )
        await probe_model(model)
        slow.cancel()
        await asyncio.wait({slow})

    asyncio.run(asked())
    assert len(model_server.chat_requests) == 2
    assert is_idle(answer_service)


def test_missing_slot_says_nothing_about_the_model(
    make_model_service: MakeService, model_server: ModelServer
) -> None:
    answer_service = make_model_service(max_concurrency=1)
    assert answer_service.models is not None
    model = answer_service.models.answer_models[0]

    async def asked() -> None:
        async with answer_service.call_limiter.acquire(1):
            for _ in range(FAILURE_THRESHOLD + 1):
                with pytest.raises(ModelBusy):
                    await model.ask([HumanMessage("?")], with_deadline({}, 0.001))

    asyncio.run(asked())
    assert model.last_error is None
    assert is_idle(answer_service)
    model_server.default = Reply(status=401)
    with http_client(create_app(answer_service)) as client:
        ready = client.get("/health/ready").json()
    assert ready["checks"]["model:chat"]["status"] == "degraded"


@pytest.mark.parametrize("seconds", [0.01, float("inf")])
def test_slots_are_given_in_order_of_arrival(seconds: float) -> None:
    order: list[int] = []

    async def use(slots: ConcurrencyLimiter, number: int) -> None:
        async with slots.acquire(float("inf")):
            order.append(number)

    async def main() -> None:
        slots = ConcurrencyLimiter(1)
        async with slots.acquire(seconds):
            tasks = [asyncio.create_task(use(slots, number)) for number in range(3)]
            await until(lambda: slots.waiting == 3)
            tasks[0].cancel()
            late: Awaitable[Any] = slots.acquire(0.001).__aenter__()
            with pytest.raises(TimeoutError):
                await late
        await asyncio.wait(tasks)
        assert (slots.running, slots.waiting) == (0, 0)

    asyncio.run(main())
    assert order == [1, 2]
