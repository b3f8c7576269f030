"""Limits requests and tokens per API key or address. Usage is counted in Redis or in memory."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from limits import RateLimitItem, parse_many
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.errors import StorageError
from pydantic import SecretStr

from app.telemetry.run_observer import TokenMeter
from schemas.errors import ConfigurationError, RateLimited
from schemas.settings import PREFIX, Settings

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool

T = TypeVar("T")

REDIS_URL_SETTING = "APIDESK_REDIS_URL"

REDIS_TIMEOUT_S = 0.5
"""Seconds to wait for Redis. The timeout is short, because counting must not delay a question."""

REDIS_RETRY_S = 5.0
"""Seconds after an error until Redis is tried again."""

MAX_REDIS_CONNECTIONS = 1_000
"""Maximum number of connections to Redis per process. If all are in use, usage is counted in memory."""

log = logging.getLogger(__name__)


class UsageCounter:
    """Counts uses in fixed windows. A window starts with the first use after the previous window.

    In this class, a key is not an API key, but identifies what is counted, for example ("requests",
    account). Fixed windows need only one number per limit and key. Each process counts in memory if Redis
    is not configured or does not answer.
    """

    def __init__(self, redis_url: SecretStr | None) -> None:
        """Create the counter, without connecting to Redis.

        Raises ConfigurationError if the URL is invalid or the redis package is missing.
        """
        self._memory = FixedWindowRateLimiter(MemoryStorage())
        self._pool = _redis_pool(redis_url.get_secret_value()) if redis_url else None
        self._redis = _redis_limiter(self._pool) if self._pool else None
        self._has_redis_failed = False
        self._retry_at = 0.0

    async def hit(self, item: RateLimitItem, *key: str, cost: int = 1) -> bool:
        """Count `cost` uses of `key`, and return whether the limit still allows them."""
        return await self._count(lambda limiter: limiter.hit(item, *key, cost=cost))

    async def test(self, item: RateLimitItem, *key: str) -> bool:
        """Return whether another use of `key` is allowed, without counting it."""
        return await self._count(lambda limiter: limiter.test(item, *key))

    async def seconds_until_reset(self, item: RateLimitItem, *key: str) -> float:
        """Return the seconds until the window ends.

        Redis rounds to whole seconds, so one second is added to its result.
        """

        async def seconds(limiter: FixedWindowRateLimiter) -> float:
            reset = (await limiter.get_window_stats(item, *key)).reset_time
            rounding = 0 if limiter is self._memory else 1
            return reset - time.time() + rounding

        return await self._count(seconds)

    async def close(self) -> None:
        """Close the connections to Redis."""
        if self._pool:
            await self._pool.aclose()

    async def _count(self, use: Callable[[FixedWindowRateLimiter], Awaitable[T]]) -> T:
        if self._redis is None or time.monotonic() < self._retry_at:
            return await use(self._memory)
        try:
            result = await use(self._redis)
        except (StorageError, OSError, TimeoutError) as error:
            self._note_failure(error)
            return await use(self._memory)
        if self._has_redis_failed:
            self._has_redis_failed = False
            log.info("Redis is available again: usage is counted in Redis")
        return result

    def _note_failure(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + REDIS_RETRY_S
        if not self._has_redis_failed:
            self._has_redis_failed = True
            log.warning("Redis does not answer: usage is counted in this process (%s)", error)


def _redis_limiter(pool: "ConnectionPool") -> FixedWindowRateLimiter:
    storage = RedisStorage(
        "async+redis://",
        wrap_exceptions=True,
        implementation="redispy",
        key_prefix="apidesk",
        connection_pool=pool,  # type: ignore[arg-type]  # documented, but not in its types
    )
    return FixedWindowRateLimiter(storage)


def _redis_pool(url: str) -> "ConnectionPool":
    try:
        from redis.asyncio import ConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError:
        raise ConfigurationError(
            f"{REDIS_URL_SETTING}: needs a package: pip install 'apidesk[redis]'"
        ) from None
    try:
        return ConnectionPool.from_url(
            url,
            socket_timeout=REDIS_TIMEOUT_S,
            socket_connect_timeout=REDIS_TIMEOUT_S,
            max_connections=MAX_REDIS_CONNECTIONS,
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError:  # the error's message would reveal a part of the URL
        expected = "must be a URL such as redis://host:6379/0; rediss:// and unix:// also work"
        raise ConfigurationError(f"{REDIS_URL_SETTING}: {expected}") from None


class RateLimiter:
    """Applies the limits in the settings to accounts and addresses."""

    def __init__(self, settings: Settings) -> None:
        """Read the limits from `settings`.

        Raises ConfigurationError if a limit or the Redis URL is invalid, or if the redis package is
        missing.
        """
        self._requests = _parse_limits("rate_limit", settings)
        self._address = _parse_limits("rate_limit_address", settings)
        self._tokens = _parse_limits("token_limit", settings)
        self._counter = UsageCounter(settings.redis_url)

    async def count_request(self, account: str) -> None:
        """Count a request of `account` (see `Caller.account`).

        Raises RateLimited if the account has used up its requests or its tokens.
        """
        await self._hit(self._requests, "requests", account)
        await self._check(self._tokens, "tokens", account)

    async def count_address(self, address: str) -> None:
        """Count a request from an address. Raises RateLimited if the address has sent too many."""
        await self._hit(self._address, "address", address)

    async def check_wrong_keys(self, address: str) -> None:
        """Raise RateLimited if the address has sent too many requests without a valid key."""
        await self._check(self._address, "wrong keys", address)

    async def count_wrong_key(self, address: str) -> None:
        """Count a request without a valid key. Raises RateLimited if the address has sent too many."""
        await self._hit(self._address, "wrong keys", address)

    @asynccontextmanager
    async def meter_tokens(self, account: str) -> AsyncIterator[TokenMeter]:
        """Yield a meter, and charge its tokens to `account` after the block, even after an error."""
        meter = TokenMeter()
        try:
            yield meter
        finally:
            await asyncio.shield(self._count_tokens(account, meter.tokens))

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._counter.close()

    async def _count_tokens(self, account: str, tokens: int) -> None:
        if tokens:
            for item in self._tokens:
                await self._counter.hit(item, "tokens", account, cost=tokens)

    async def _hit(self, items: Sequence[RateLimitItem], kind: str, key: str) -> None:
        exceeded = [item for item in items if not await self._counter.hit(item, kind, key)]
        await self._raise_if_exceeded(exceeded, kind, key)

    async def _check(self, items: Sequence[RateLimitItem], kind: str, key: str) -> None:
        exceeded = [item for item in items if not await self._counter.test(item, kind, key)]
        await self._raise_if_exceeded(exceeded, kind, key)

    async def _raise_if_exceeded(
        self, exceeded: Sequence[RateLimitItem], kind: str, key: str
    ) -> None:
        if exceeded:
            waits = [await self._counter.seconds_until_reset(item, kind, key) for item in exceeded]
            longest = max(waits)
            limit = exceeded[waits.index(longest)]
            seconds = max(1, math.ceil(longest))
            label = "requests" if kind == "address" else kind
            wait = _duration(seconds)
            raise RateLimited(f"too many {label}: the limit is {limit}; wait {wait}", seconds)


def _duration(seconds: int) -> str:
    """Return `seconds` as text for an error message, such as "90 s", "5 min" or "23 h 59 min"."""
    if seconds < 120:
        return f"{seconds} s"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    parts = [(hours, "h"), (minutes, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _parse_limits(name: str, settings: Settings) -> list[RateLimitItem]:
    expression = getattr(settings, name)
    try:
        return parse_many(expression) if expression else []
    except ValueError:
        raise ConfigurationError(
            f"{PREFIX}{name.upper()}: must be limits such as 60/minute or 5/second;1000/day"
        ) from None
