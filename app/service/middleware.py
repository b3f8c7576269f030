"""Answering whose tokens are counted.
Questions in a session: each is asked with what was said before, and remembered with its answer.
Answering that leaves a record, whatever comes of it.
A desk that does not answer the same question twice while nothing has changed.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version

from app.masking.masking import has_secret, mask, secrets_in
from app.security.rate_limits import RateLimiter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from app.service.cache import AnswerCache, CachedAnswer, SingleFlight, digests
from app.service.record_writer import RecordWriter
from app.service.records import failed_record, record_of
from app.service.sessions import SessionStore
from schemas.answer import Answer, Event, EventSink, Source
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import ApideskError, StoreError, StoreUnavailable
from schemas.question import Turn
from schemas.record import QuestionRecord


class MeteringAnswerer:
    """Answers by `answerer`, and charges what the models took to who asked, once the work has ended.

    Others may wait for the same work: they are charged nothing, and who began it pays for all of it,
    though they left before.
    """

    def __init__(self, answerer: Answerer, limits: RateLimiter) -> None:
        self._answerer = answerer
        self._limits = limits

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers. Raises ApideskError."""
        async with self._limits.metered(asked.account) as meter:
            metered = replace(asked, callbacks=(*asked.callbacks, meter))
            return await self._answerer.ask(metered, listener)


log = logging.getLogger(__name__)


class SessionAnswerer:
    """Answering that remembers, for each owner apart."""

    def __init__(self, answerer: Answerer, history: SessionStore) -> None:
        self._answerer = answerer
        self._history = history

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers, in the session where one is named.

        What asked nothing about the platform is not remembered. Raises ApideskError.
        """
        if asked.session is None:
            return await self._answerer.ask(asked, listener)
        history = await self._history.read(asked.owner, asked.session)
        answer = await self._answerer.ask(replace(asked, history=history), listener)
        if answer.type != "unknown":
            await self._remember(asked, asked.session, answer)
        return answer.model_copy(update={"session": asked.session})

    async def _remember(self, asked: AskCommand, session: str, answer: Answer) -> None:
        """An answer that cannot be remembered is still an answer."""
        try:
            await self._history.append(asked.owner, session, turn_of(asked, answer))
        except StoreUnavailable as error:
            log.warning("the session will not know of an answer: %s", error)


def turn_of(asked: AskCommand, answer: Answer) -> Turn:
    """What later questions need to know of `answer`; no secret of it or of what was asked."""
    masked = partial(mask, known=secrets_in(asked.text))
    structured = answer.structured
    return Turn(
        question=masked(answer.question),
        answer=masked("\n".join(answer.answer)),
        api_name=structured.api_name and masked(structured.api_name),
        api_url=structured.api_url and masked(structured.api_url),
        asked_at=datetime.now(UTC),
    )


ABANDONED = "abandoned"
"""What the record of a question says whose caller left before the answer."""


class RecordingAnswerer:
    """Answers by `answerer`; each question is kept before its answer goes out."""

    def __init__(self, answerer: Answerer, keeper: RecordWriter) -> None:
        self._answerer = answerer
        self._keeper = keeper

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers. Raises ApideskError."""
        started = time.monotonic()
        try:
            answer = await self._answerer.ask(asked, listener)
        except BaseException as error:
            self._keep(partial(failed_record, asked, _code(error)), started)
            raise
        self._keep(partial(record_of, asked, answer), started)
        return answer

    def _keep(self, record: Callable[[int], QuestionRecord], started: float) -> None:
        """An answer goes out with or without its record."""
        milliseconds = round((time.monotonic() - started) * 1000)
        try:
            self._keeper.keep(record(milliseconds))
        except Exception as error:  # its words and its stack may hold the question
            log.error("a question is not kept: %s", type(error).__name__)


def _code(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return ABANDONED
    return error.code if isinstance(error, ApideskError) else ApideskError.code


class CachingAnswerer:
    """Answers from the cache where every document that the answer cites is as it was; else by `answerer`.

    The same question, asked while it is being answered, waits for that answer.
    """

    def __init__(
        self, answer_service: AnswerService, answerer: Answerer, answers: AnswerCache
    ) -> None:
        self._answer_service = answer_service
        self._answerer = answerer
        self._answers = answers
        self._flights = SingleFlight()
        self._lookups = answer_service.metrics.cache_lookups
        settings, platform = (
            answer_service.settings.model_dump_json(),
            answer_service.platform.model_dump_json(),
        )
        self._installation = f"{version('apidesk')}{settings}{platform}"

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers, or as it did. Raises ApideskError."""
        started = time.monotonic()
        key = self._key(asked)
        if asked.fresh:
            self._lookups.labels("bypass").inc()
            answer = await self._answerer.ask(asked, listener)
            await self._keep(key, asked, answer)
            return answer
        known_or_new = partial(self._known_or_new, key, asked)
        keep = partial(self._keep, key, asked)
        answer, joined = await self._flights.join(key, known_or_new, keep, listener)
        result = "hit" if answer.cached else "joined" if joined else "miss"
        self._lookups.labels(result).inc()
        if result == "miss":
            return answer
        milliseconds = round((time.monotonic() - started) * 1000)
        return await self._answer_service.repeat(asked, answer, milliseconds)

    async def _known_or_new(
        self, key: str, asked: AskCommand, listener: EventSink | None
    ) -> Answer:
        """Looked up within the flight: else who looks while it lands would find neither."""
        known = await self._known(key)
        if known is None:
            return await self._answerer.ask(asked, listener)
        if listener is not None:
            await listener(Event("structured", known.structured))
        return known.model_copy(update={"cached": True})

    async def _known(self, key: str) -> Answer | None:
        """The answer under `key`, if what it cites is as it was."""
        try:
            cached = await self._answers.get(key)
            if cached is None:
                return None
            documents = list(cached.documents)
            chunks = await asyncio.to_thread(
                self._answer_service.collection.chunks_of_all, documents
            )
            if digests(chunks) == cached.documents:
                return cached.answer
            await self._answers.drop(key)
        except StoreError as error:
            log.warning("the cache of answers does not answer: %s", error)
        return None

    async def _keep(self, key: str, asked: AskCommand, answer: Answer) -> None:
        """Keep an answer that may be kept; one that is not, is still an answer."""
        try:
            if _may_be_kept(asked, answer):
                await self._put(key, answer)
        except StoreError as error:
            log.warning("an answer is not cached: %s", error)

    async def _put(self, key: str, answer: Answer) -> None:
        """Keep `answer`, unless what it cites was changed while it was made, or is of the web."""
        places = {(source.source, source.document_id) for source in answer.sources}
        chunks = await asyncio.to_thread(self._answer_service.collection.chunks_of_all, places)
        cited = {source.text for source in answer.sources}
        held = [_shown(chunk) for chunk in chunks if chunk.body in cited]
        if all(_unnumbered(source) in held for source in answer.sources):
            await self._answers.put(key, CachedAnswer(answer, digests(chunks)))

    def _key(self, asked: AskCommand) -> str:
        """Whatever an answer depends on, but for the documents. Raises QuestionError."""
        question = self._answer_service.question(asked).model_dump(
            mode="json", exclude={"id": True, "history": {"__all__": {"asked_at"}}}
        )
        said = json.dumps([asked.mode, question], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256((self._installation + said).encode()).hexdigest()


def _may_be_kept(asked: AskCommand, answer: Answer) -> bool:
    """Whether `answer` is new, and holds as long as the documents do. One that cites none, or is in
    doubt, may be another when there are more of them; a degraded one would be better a minute later.
    """
    sound = bool(answer.sources) and answer.confidence != "low" and not answer.degraded
    return not answer.cached and sound and not has_secret(asked.text)


def _shown(chunk: Chunk) -> Source:
    return Source.of(0, RetrievedChunk(chunk=chunk, score=0))


def _unnumbered(source: Source) -> Source:
    return source.model_copy(update={"number": 0, "score": 0})
