"""The events of an answer -> the chunks of a completion."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from app.openai.response import (
    Chunk,
    ChunkChoice,
    Delta,
    Details,
    Usage,
    annotations,
    new_id,
    now,
)
from app.openai.telling import Telling
from schemas.answer import Answer
from schemas.events import Event


class ChunkMaker:
    """Makes the chunks of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = new_id()
        self._created = now()
        self._telling = Telling()

    def first(self) -> Chunk:
        """Who speaks."""
        return self._chunk(Delta(role="assistant", content=""))

    def of(self, event: Event) -> Chunk | None:
        """What `event` adds to the text; None where that is nothing."""
        piece = self._telling.hear(event)
        return self._chunk(Delta(content=piece)) if piece else None

    def last(self, answer: Answer) -> Chunk:
        """What there is to know of `answer` beyond its text."""
        cited = annotations(self._telling.text, answer)
        return self._chunk(Delta(annotations=cited, apidesk=Details.of(answer)), ended=True)

    def counted(self, usage: Usage) -> Chunk:
        """The tokens, for clients that asked for them."""
        return self._made([], usage)

    def _chunk(self, delta: Delta, ended: bool = False) -> Chunk:
        return self._made([ChunkChoice(delta=delta, finish_reason="stop" if ended else None)])

    def _made(self, choices: list[ChunkChoice], usage: Usage | None = None) -> Chunk:
        return Chunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )


async def stream_chunks(
    events: AsyncGenerator[Event | None], model: str, count: Callable[[], Usage] | None
) -> AsyncGenerator[Chunk | None]:
    """The chunks of an answer, the last of them with what `count` gives; None where nothing happened
    for a while.

    Raises what `events` raises, and closes them.
    """
    maker = ChunkMaker(model)
    async with aclosing(events):
        yield maker.first()
        async for event in events:
            chunk = maker.of(event) if event else None
            if event is None or chunk is not None:
                yield chunk
            if event and isinstance(event.data, Answer):
                yield maker.last(event.data)
    if count:
        yield maker.counted(count())
