"""A desk that does not answer the same question twice while nothing has changed."""

import asyncio
import hashlib
import json
import logging
import time
from functools import partial

from app.asked import Asked
from app.caching.answers import CachedAnswer, CachedAnswers, digests
from app.caching.flights import Flights
from app.desk import Desk
from app.masking.masking import has_secret
from runnables.listener import Listener
from schemas.answer import Answer
from schemas.errors import StoreError

log = logging.getLogger(__name__)


class CachedDesk:
    """Answers from the cache where every document that the answer cites is as it was; else by the desk.

    The same question, asked while it is being answered, waits for that answer.
    """

    def __init__(
        self,
        desk: Desk,
        answers: CachedAnswers,
    ) -> None:
        self._desk = desk
        self._answers = answers
        self._flights = Flights()
        self._lookups = desk.metrics.cache_lookups
        self._installation = f"{desk.settings.model_dump_json()}{desk.platform.model_dump_json()}"

    async def ask(self, asked: Asked, listener: Listener | None = None) -> Answer:
        """As the desk answers, or as it did. Raises ApideskError."""
        started = time.monotonic()
        key = self._key(asked)
        if asked.fresh:
            return self._counted("refused", await self._answer(key, asked, listener))
        if (known := await self._known(key)) is not None:
            return self._counted("hit", await self._again(asked, known, started))
        answer, joined = await self._flights.join(key, partial(self._answer, key, asked), listener)
        if joined:
            return self._counted("joined", await self._again(asked, answer, started))
        return self._counted("miss", answer)

    def _counted(self, result: str, answer: Answer) -> Answer:
        self._lookups.labels(result).inc()
        return answer

    async def _again(self, asked: Asked, answer: Answer, started: float) -> Answer:
        milliseconds = round((time.monotonic() - started) * 1000)
        return await self._desk.repeat(asked, answer, milliseconds)

    async def _known(self, key: str) -> Answer | None:
        """The answer under `key`, if what it cites is as it was."""
        try:
            cached = await asyncio.to_thread(self._answers.get, key)
            if cached is None:
                return None
            documents = list(cached.documents)
            chunks = await asyncio.to_thread(self._desk.collection.chunks_of_all, documents)
            if digests(chunks) == cached.documents:
                return cached.answer
            await asyncio.to_thread(self._answers.drop, key)
        except StoreError as error:
            log.warning("the cache of answers does not answer: %s", error)
        return None

    async def _answer(self, key: str, asked: Asked, listener: Listener | None) -> Answer:
        answer = await self._desk.ask(asked, listener)
        if _may_be_kept(asked, answer):
            try:
                await self._keep(key, answer)
            except StoreError as error:
                log.warning("an answer is not cached: %s", error)
        return answer

    async def _keep(self, key: str, answer: Answer) -> None:
        """Keep `answer`, unless what it cites was changed while it was made, or is of the web."""
        places = {(source.source, source.document_id) for source in answer.sources}
        chunks = await asyncio.to_thread(self._desk.collection.chunks_of_all, places)
        held = {(chunk.source, chunk.document_id, chunk.body) for chunk in chunks}
        if all((s.source, s.document_id, s.text) in held for s in answer.sources):
            cached = CachedAnswer(answer, digests(chunks))
            await asyncio.to_thread(self._answers.put, key, cached)

    def _key(self, asked: Asked) -> str:
        """Whatever an answer depends on, but for the documents."""
        said = {
            "text": asked.text,
            "k": asked.k,
            "language": asked.language,
            "filters": asked.filters and asked.filters.model_dump(),
            "mode": asked.mode,
            "history": [turn.model_dump(exclude={"asked_at"}) for turn in asked.history],
        }
        text = self._installation + json.dumps(said, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _may_be_kept(asked: Asked, answer: Answer) -> bool:
    """Whether `answer` holds as long as the documents do: one that cites none may be another when
    there are more of them; a degraded one would be better a minute later.
    """
    return bool(answer.sources) and not answer.degraded and not has_secret(asked.text)
