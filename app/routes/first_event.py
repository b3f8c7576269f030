"""What has to be known before a response of events begins: after that it can be no error any more."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from litestar import Request

from schemas.events import Event


async def first_event(
    events: AsyncGenerator[Event | None], request: Request[Any, Any, Any]
) -> Event | None:
    """The first event, so that what fails before it is a response of its own; or None for a client
    that has left.
    """
    coming = asyncio.ensure_future(anext(events))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({coming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        return None
    finally:
        leaving.cancel()
        coming.cancel()


async def _left(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
