"""How much a key or an address may use: requests, and tokens of the models."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from limits import RateLimitItem, parse_many

from app.security.counts import UsageCounter
from app.security.token_meter import TokenMeter
from schemas.errors import ConfigurationError, RateLimited
from schemas.settings import PREFIX, Settings


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
