"""The events of an answer -> the chunks of a completion."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from app.openai.response import (
    AnswerDetails,
    ChunkChoice,
    CompletionChunk,
    Delta,
    Usage,
    annotations,
    new_id,
    now,
)
from app.openai.telling import StreamedText
from schemas.answer import Answer
from schemas.events import Event


class ChunkMaker:
    """Makes the chunks of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = new_id()
        self._created = now()
        self._telling = StreamedText()

    def first(self) -> CompletionChunk:
        """Who speaks."""
        return self._chunk(Delta(role="assistant", content=""))

    def of(self, event: Event) -> CompletionChunk | None:
        """What `event` adds to the text; None where that is nothing."""
        piece = self._telling.hear(event)
        return self._chunk(Delta(content=piece)) if piece else None

    def last(self, answer: Answer) -> CompletionChunk:
        """What there is to know of `answer` beyond its text."""
        cited = annotations(self._telling.text, answer)
        return self._chunk(Delta(annotations=cited, apidesk=AnswerDetails.of(answer)), ended=True)

    def counted(self, usage: Usage) -> CompletionChunk:
        """The tokens, for clients that asked for them."""
        return self._made([], usage)

    def _chunk(self, delta: Delta, ended: bool = False) -> CompletionChunk:
        return self._made([ChunkChoice(delta=delta, finish_reason="stop" if ended else None)])

    def _made(self, choices: list[ChunkChoice], usage: Usage | None = None) -> CompletionChunk:
        return CompletionChunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )


async def stream_chunks(
    events: AsyncGenerator[Event | None], model: str, count: Callable[[], Usage] | None
) -> AsyncGenerator[CompletionChunk | None]:
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
