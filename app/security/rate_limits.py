"""How much of a limit is used: counted in Redis for several servers, else in memory.
How much a key or an address may use: requests, and tokens of the models.
"""

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

from app.security.token_meter import TokenMeter
from schemas.errors import ConfigurationError, RateLimited
from schemas.settings import PREFIX, Settings

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool

T = TypeVar("T")

SETTING = "APIDESK_REDIS_URL"

PATIENCE = 0.5
"""Seconds for Redis to answer: a limit is no reason to keep a question waiting."""

RETRY_SECONDS = 5.0

CONNECTIONS = 1_000
"""More than a process has requests at a time; each is held for one command."""

log = logging.getLogger(__name__)


class UsageCounter:
    """Fixed windows, each of which begins with the first use after the last one's end.

    They cost one number a limit and say exactly when there is more. While Redis does not answer,
    this process counts for itself.
    """

    def __init__(self, redis_url: SecretStr | None) -> None:
        """Raises ConfigurationError for a url that is none, or lacks its package."""
        self._memory = FixedWindowRateLimiter(MemoryStorage())
        self._pool = _pool(redis_url.get_secret_value()) if redis_url else None
        self._redis = _limiter(self._pool) if self._pool else None
        self._lost = False
        self._again_at = 0.0

    async def add(self, item: RateLimitItem, *who: str, amount: int = 1) -> bool:
        """Count `amount`; whether the limit still holds."""
        return await self._count(lambda limiter: limiter.hit(item, *who, cost=amount))

    async def left(self, item: RateLimitItem, *who: str) -> bool:
        """Whether anything is left of the limit."""
        return await self._count(lambda limiter: limiter.test(item, *who))

    async def seconds_until_more(self, item: RateLimitItem, *who: str) -> float:
        """When the window ends. Redis tells it in whole seconds, either way: one more is safe."""

        async def seconds(limiter: FixedWindowRateLimiter) -> float:
            reset = (await limiter.get_window_stats(item, *who)).reset_time
            return reset - time.time() + (limiter is not self._memory)

        return await self._count(seconds)

    async def close(self) -> None:
        """Close the connections to Redis."""
        if self._pool:
            await self._pool.aclose()

    async def _count(self, work: Callable[[FixedWindowRateLimiter], Awaitable[T]]) -> T:
        if self._redis is None or time.monotonic() < self._again_at:
            return await work(self._memory)
        try:
            counted = await work(self._redis)
        except (StorageError, OSError, TimeoutError) as error:
            self._lose(error)
            return await work(self._memory)
        if self._lost:
            self._lost = False
            log.info("Redis answers again: limits are counted there")
        return counted

    def _lose(self, error: Exception) -> None:
        self._again_at = time.monotonic() + RETRY_SECONDS
        if not self._lost:
            self._lost = True
            log.warning("Redis does not answer: this process counts for itself (%s)", error)


def _limiter(pool: "ConnectionPool") -> FixedWindowRateLimiter:
    storage = RedisStorage(
        "async+redis://",
        wrap_exceptions=True,
        implementation="redispy",
        key_prefix="apidesk",
        connection_pool=pool,  # type: ignore[arg-type]  # documented, but not in its types
    )
    return FixedWindowRateLimiter(storage)


def _pool(url: str) -> "ConnectionPool":
    try:
        from redis.asyncio import ConnectionPool
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError:
        raise ConfigurationError(
            f"{SETTING}: needs a package: pip install 'apidesk[redis]'"
        ) from None
    try:
        return ConnectionPool.from_url(
            url,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            max_connections=CONNECTIONS,
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError:  # its words would show a part of the url
        said = "takes a url such as redis://host:6379/0, with rediss:// or unix:// as well"
        raise ConfigurationError(f"{SETTING}: {said}") from None


class RateLimiter:
    """What Settings limit; what they do not name is unlimited."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError for an expression or a url that is none."""
        self._requests = _parsed("rate_limit", settings)
        self._address = _parsed("rate_limit_address", settings)
        self._tokens = _parsed("token_limit", settings)
        self._counts = UsageCounter(settings.redis_url)

    async def take_request(self, account: str) -> None:
        """Count a request of a caller. Raises RateLimited, also when their tokens are spent."""
        await self._take(self._requests, "requests", account)
        await self._check(self._tokens, "tokens", account)

    async def take_address(self, address: str) -> None:
        """Count a request from an address. Raises RateLimited."""
        await self._take(self._address, "address", address)

    async def check_guesses(self, address: str) -> None:
        """Raises RateLimited when too many wrong keys came from the address."""
        await self._check(self._address, "wrong keys", address)

    async def take_guess(self, address: str) -> None:
        """Count a wrong key. Raises RateLimited."""
        await self._take(self._address, "wrong keys", address)

    @asynccontextmanager
    async def metered(self, account: str) -> AsyncIterator[TokenMeter]:
        """Count what the meter shows at the end of the block, however it ends."""
        meter = TokenMeter()
        try:
            yield meter
        finally:
            await asyncio.shield(self._spend(account, meter.tokens))

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._counts.close()

    async def _spend(self, account: str, tokens: int) -> None:
        if tokens:
            for item in self._tokens:
                await self._counts.add(item, "tokens", account, amount=tokens)

    async def _take(self, items: Sequence[RateLimitItem], what: str, who: str) -> None:
        over = [item for item in items if not await self._counts.add(item, what, who)]
        await self._refuse(over, what, who)

    async def _check(self, items: Sequence[RateLimitItem], what: str, who: str) -> None:
        spent = [item for item in items if not await self._counts.left(item, what, who)]
        await self._refuse(spent, what, who)

    async def _refuse(self, over: Sequence[RateLimitItem], what: str, who: str) -> None:
        if over:
            waits = [await self._counts.seconds_until_more(item, what, who) for item in over]
            seconds = max(1, math.ceil(max(waits)))
            counted = "requests" if what == "address" else what
            raise RateLimited(f"{counted}: {over[0]} are allowed; wait {seconds} s", seconds)


def _parsed(name: str, settings: Settings) -> list[RateLimitItem]:
    expression = getattr(settings, name)
    try:
        return parse_many(expression) if expression else []
    except ValueError:
        raise ConfigurationError(
            f"{PREFIX}{name.upper()}: takes limits such as 60/minute or 5/second;1000/day"
        ) from None
