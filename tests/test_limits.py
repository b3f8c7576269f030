"""Rate limits per key and address, counted in memory and in a real Redis."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr

from app.main import create_app
from app.security import rate_limits as counts_module
from app.security.api_keys import ApiKeyStore
from app.security.rate_limits import RateLimiter
from app.service.answer_service import AnswerService
from schemas.errors import ConfigurationError
from schemas.settings import Settings, read_settings
from tests.http_client import http_client
from tests.live_server import live_server
from tests.model_replies import MakeClient, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.redis_server import RedisServer, missing_redis, running_redis

pytestmark = pytest.mark.acceptance

ADMIN_KEY = "a" * 40

ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}

QUESTION = {"question": "发货接口是哪个"}

Http = TestClient[Litestar]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    """The Redis server of this module."""
    if reason := missing_redis():
        pytest.skip(reason)
    with running_redis() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def counted(request: pytest.FixtureRequest) -> dict[str, object]:
    """Settings that select the storage of the counters."""
    if request.param == "memory":
        return {}
    server: RedisServer = request.getfixturevalue("redis_server")
    server.stop()
    server.start()
    return {"redis_url": SecretStr(server.url)}


def keyed(**settings: object) -> dict[str, object]:
    return {"admin_key": SecretStr(ADMIN_KEY), **settings}


def statuses(
    http: Http, count: int, headers: dict[str, str], path: str = "/ingestions"
) -> list[int]:
    return [http.get(path, headers=headers).status_code for _ in range(count)]


def refused(response: Any, most: int) -> None:
    """Check for a 429 with a Retry-After of at most `most` seconds."""
    assert response.status_code == 429, response.text
    problem = response.json()
    assert (problem["code"], problem["retryable"]) == ("rate_limited", True)
    seconds = int(response.headers["retry-after"])
    assert most - 5 <= seconds <= most + 1
    assert re.search(r"wait \d+ (s|min|h)( \d+ min)?$", problem["detail"])


def test_requests_are_limited_per_key(
    serve_samples: MakeClient, counted: dict[str, object], tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path / 'apidesk.db'}"
    keys = ApiKeyStore.open(read_settings(database_url=url))
    mine, theirs = (
        {"X-API-Key": keys.add(name, ("ingest",), None)[1]} for name in ("mine", "theirs")
    )
    keys.close()
    http = serve_samples(rate_limit="3/minute;100/day", database_url=url, **counted)
    assert statuses(http, 4, mine) == [200, 200, 200, 429]
    refused(http.get("/ingestions", headers=mine), 60)
    assert statuses(http, 1, theirs) == [200]
    assert statuses(http, 5, mine, "/health/live") == [200] * 5


def test_retry_after_is_the_longest_wait(
    serve_samples: MakeClient, counted: dict[str, object]
) -> None:
    http = serve_samples(**keyed(rate_limit="1/minute;1/hour", **counted))
    assert statuses(http, 1, ADMIN) == [200]
    refused(http.get("/ingestions", headers=ADMIN), 3_600)


@pytest.mark.parametrize(
    ("limit", "wait"), [("1/day", "24 h"), ("1/90 minute", "1 h 30 min"), ("1/5 minute", "5 min")]
)
def test_long_wait_is_stated_in_hours_and_minutes(
    serve_samples: MakeClient, limit: str, wait: str
) -> None:
    http = serve_samples(**keyed(rate_limit=limit))
    assert statuses(http, 1, ADMIN) == [200]
    assert http.get("/ingestions", headers=ADMIN).json()["detail"].endswith(f"wait {wait}")


def test_wrong_keys_are_limited_per_address(
    serve_samples: MakeClient, counted: dict[str, object]
) -> None:
    http = serve_samples(**keyed(rate_limit_address="3/minute", **counted))
    assert statuses(http, 4, {"X-API-Key": "wrong"}) == [401, 401, 401, 429]
    refused(http.get("/ingestions", headers=ADMIN), 60)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
    ],
)
def test_requests_are_limited_per_address(
    sample_service: AnswerService, one: str, other: str, shared: bool
) -> None:
    settings = sample_service.settings.model_copy(update=keyed(rate_limit_address="1/minute"))
    app = create_app(AnswerService(settings, sample_service.platform, sample_service.job))
    with http_client(app, one) as http:
        assert statuses(http, 1, ADMIN) == [200]
        assert statuses(http_client(app, other), 1, ADMIN) == [429 if shared else 200]


def test_local_commands_are_not_limited(sample_service: AnswerService) -> None:
    limits = keyed(rate_limit="1/minute", rate_limit_address="1/minute")
    settings = sample_service.settings.model_copy(update=limits)
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
    with http_client(create_app(answer_service, "b" * 40)) as http:
        assert statuses(http, 3, {"X-API-Key": "b" * 40}) == [200] * 3


def test_servers_share_limits_in_redis(
    sample_service: AnswerService, redis_server: RedisServer
) -> None:
    redis_server.stop()
    redis_server.start()
    shared = keyed(rate_limit="3/minute", redis_url=SecretStr(redis_server.url))
    settings = sample_service.settings.model_copy(update=shared)
    apps = [
        create_app(AnswerService(settings, sample_service.platform, sample_service.job))
        for _ in range(2)
    ]
    with http_client(apps[0]) as one, http_client(apps[1]) as other:
        assert statuses(one, 2, ADMIN) + statuses(other, 2, ADMIN) == [200, 200, 200, 429]
        assert statuses(one, 1, ADMIN) == [429]
    assert all(key.startswith("apidesk:") for key in redis_server.names())


def test_limits_are_counted_in_memory_while_redis_is_down(
    serve_samples: MakeClient,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(counts_module, "REDIS_RETRY_S", 0)
    caplog.set_level("INFO")
    redis_server.stop()  # already at the start
    http = serve_samples(**keyed(rate_limit="2/minute", redis_url=SecretStr(redis_server.url)))
    assert statuses(http, 3, ADMIN) == [200, 200, 429]
    redis_server.start()
    assert statuses(http, 3, ADMIN) == [200, 200, 429]
    redis_server.stop()
    assert statuses(http, 1, ADMIN) == [429], "what was counted before counts on"
    messages = [
        record.message for record in caplog.records if record.name == counts_module.__name__
    ]
    assert [line.split(":")[0] for line in messages] == [
        "Redis does not answer",
        "Redis is available again",
        "Redis does not answer",
    ]
    redis_server.start()


# Tokens.


@pytest.fixture
def report_tokens(model_server: ModelServer) -> Callable[[int], None]:
    """Script the model to answer and to report a number of tokens per call."""

    def tell(tokens: int) -> None:
        usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}

        def messages(request: Recorded) -> Said:
            text = structured() if is_classification(request) else draft("用“订单发货”接口。[1]")
            return Reply(text.model_dump_json(by_alias=True), usage=usage)

        model_server.default = messages

    return tell


@pytest.mark.parametrize(
    ("accept", "limit", "answers"),
    [
        ("application/json", 101, 2),  # of two calls each: 100 are spent, then 200
        ("text/event-stream", 1, 1),  # where LangChain does not ask this provider: estimated
    ],
)
def test_answers_use_up_the_token_limit(
    model_client: MakeClient,
    report_tokens: Callable[[int], None],
    counted: dict[str, object],
    accept: str,
    limit: int,
    answers: int,
) -> None:
    report_tokens(50)
    http = model_client(**keyed(token_limit=f"{limit}/hour", **counted))
    headers = ADMIN | {"Accept": accept}
    for _ in range(answers):
        assert http.post("/ask", json=QUESTION, headers=headers).status_code == 200
    refused(http.post("/ask", json=QUESTION, headers=headers), 3_600)
    assert "tokens: " in http.post("/retrieve", json=QUESTION, headers=headers).json()["detail"]


def test_without_keys_tokens_are_charged_to_the_address(
    model_client: MakeClient, report_tokens: Callable[[int], None]
) -> None:
    report_tokens(50)
    http = model_client(token_limit="1/hour")
    assert http.post("/ask", json=QUESTION).status_code == 200
    refused(http.post("/ask", json=QUESTION), 3_600)


def test_extractive_answer_uses_no_tokens(serve_samples: MakeClient) -> None:
    http = serve_samples(token_limit="1/hour")
    assert [http.post("/ask", json=QUESTION).status_code for _ in range(2)] == [200, 200]


def uses_tokens(
    settings: Settings, answer_service: AnswerService, ask: Callable[[str], None]
) -> bool:
    """Return whether `ask` used tokens at a server."""
    limited = settings.model_copy(update={"token_limit": "1/hour"})
    with live_server(AnswerService(limited, answer_service.platform, answer_service.job)) as url:
        ask(url)

        async def until_refused() -> bool:
            async with httpx.AsyncClient(base_url=url) as http:
                for _ in range(100):  # a cancelled question is counted when it has ended
                    response = await http.get("/ingestions")
                    if response.status_code == 429:
                        return True
                    await asyncio.sleep(0.02)
            return False

        return asyncio.run(until_refused())


def with_model(answer_service: AnswerService, server: ModelServer) -> Settings:
    return answer_service.settings.model_copy(update=server.settings)


def test_cancelled_answer_is_charged(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.default = Reply("late", delay=20)

    def leave(url: str) -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{url}/ask", json=QUESTION, timeout=1, headers={"Accept": "text/event-stream"}
            )

    assert uses_tokens(with_model(sample_service, model_server), sample_service, leave)


def test_timed_out_call_is_charged(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.default = Reply("late", delay=20)
    settings = with_model(sample_service, model_server).model_copy(update={"request_timeout": 0.5})

    def wait(url: str) -> None:
        assert httpx.post(f"{url}/ask", json=QUESTION).status_code in (200, 504)

    assert uses_tokens(settings, sample_service, wait)


def test_rejected_call_is_not_charged(model_client: MakeClient, model_server: ModelServer) -> None:
    model_server.default = Reply("no", status=401)
    http = model_client(token_limit="1/hour")
    assert [http.post("/ask", json=QUESTION).status_code for _ in range(2)] == [200, 200]


# Settings.


@pytest.mark.parametrize("setting", ["rate_limit", "rate_limit_address", "token_limit"])
@pytest.mark.parametrize(
    "value", ["many", "60", "60/fortnight", "-1/minute", "60/minute;", "/minute"]
)
def test_invalid_limit_is_rejected(setting: str, value: str) -> None:
    sentence = f"APIDESK_{setting.upper()}: must be limits such as 60/minute"
    with pytest.raises(ConfigurationError, match=sentence):
        RateLimiter(read_settings(**{setting: value}))


@pytest.mark.parametrize("url", ["localhost:6379", "http://redis", "redis//x", "redis://h:port"])
def test_invalid_redis_url_is_rejected(url: str) -> None:
    with pytest.raises(
        ConfigurationError, match="APIDESK_REDIS_URL: must be a URL such as"
    ) as caught:
        RateLimiter(read_settings(redis_url=url))
    assert url not in str(caught.value)


def test_missing_redis_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'apidesk\[redis\]'"):
        RateLimiter(read_settings(redis_url="redis://h"))
