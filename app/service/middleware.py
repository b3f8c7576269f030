"""Middleware around the answer service: records, sessions, caching and token limits.

Each class is an Answerer that wraps another Answerer. A question passes through RecordingAnswerer,
SessionAnswerer, CachingAnswerer, MeteringAnswerer and AnswerService, in this order.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version

from app.masking.masking import SecretScan, mask
from app.security.rate_limits import RateLimiter
from app.service.answer_cache import (
    AnswerCache,
    CachedAnswer,
    DocumentedPages,
    SingleFlight,
    document_digests,
)
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from app.service.record_writer import RecordWriter
from app.service.records import build_failed_record, build_record, scan_secrets
from app.service.session_store import SessionStore
from ingestion.store.catalogue import DocumentKey
from ingestion.text.words import index_words
from schemas.answer import Answer, Event, EventSink, Source
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import ApideskError, CollectionMismatch, StoreError, StoreUnavailable
from schemas.insights import QuestionRecord
from schemas.question import Question, Turn

ABANDONED = "abandoned"
"""The failure code of a question whose caller disconnected before the answer."""

log = logging.getLogger(__name__)


class RecordingAnswerer:
    """Records each question with its answer or error, before the answer is returned.

    Nothing is recorded with APIDESK_KEEP_QUESTIONS=false.
    """

    def __init__(self, answerer: Answerer, record_writer: RecordWriter) -> None:
        self._answerer = answerer
        self._record_writer = record_writer

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer and record the question. Raises ApideskError."""
        started = time.monotonic()
        command = replace(command, secret_scan=SecretScan(command.text))
        try:
            answer = await self._answerer.ask(command, on_event)
        except BaseException as error:
            self._record(partial(build_failed_record, command, _failure_code(error)), started)
            raise
        self._record(partial(build_record, command, answer), started)
        return answer

    def _record(self, build: Callable[[int], QuestionRecord], started: float) -> None:
        """Write the record. A failure is only logged, so that the caller still gets the answer."""
        milliseconds = round((time.monotonic() - started) * 1000)
        try:
            self._record_writer.write(build(milliseconds))
        except Exception as error:
            # Log only the type, because the message may contain the question.
            log.error("question not recorded: %s", type(error).__name__)


class SessionAnswerer:
    """Adds the session's earlier turns to each question, and stores the new turn."""

    def __init__(self, answerer: Answerer, session_store: SessionStore) -> None:
        self._answerer = answerer
        self._session_store = session_store

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer the question, and store the turn if the command has a session.

        Turns of type `unknown`, that is, small talk and off-topic questions, are not stored. Raises
        ApideskError.
        """
        if command.session is None:
            return await self._answerer.ask(command, on_event)
        asked_at = datetime.now(UTC)
        history = await self._session_store.read(command.owner, command.session)
        answer = await self._answerer.ask(replace(command, history=history), on_event)
        if answer.type != "unknown":
            turn = _build_turn(command, answer, asked_at)
            await self._store_turn(command.owner, command.session, turn)
        return answer.model_copy(update={"session": command.session})

    async def _store_turn(self, owner: str, session: str, turn: Turn) -> None:
        """Store the turn. A failure is only logged, so that the caller still gets the answer."""
        try:
            await self._session_store.append(owner, session, turn)
        except StoreUnavailable as error:
            log.warning("answer not stored in its session: %s", error)


class CachingAnswerer:
    """Caches answers, and shares answers in progress.

    A cached answer is returned only if the documents that it cites are unchanged, and the pages that it
    suggests still exist. Callers that ask the same question at the same time share one answer.
    """

    def __init__(
        self, answer_service: AnswerService, answerer: Answerer, answer_cache: AnswerCache
    ) -> None:
        self._answer_service = answer_service
        self._answerer = answerer
        self._answer_cache = answer_cache
        self._pages = DocumentedPages(answer_service.collection)
        self._single_flight = SingleFlight()
        self._lookups = answer_service.metrics.cache_lookups
        settings = answer_service.settings.model_dump_json()
        platform = answer_service.platform.model_dump_json()
        self._key_prefix = f"{version('apidesk')}{settings}{platform}"

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer from the cache, or with the wrapped answerer. Raises ApideskError."""
        started = time.monotonic()
        question = self._answer_service.build_question(command)
        key = self._cache_key(command, question)
        command = replace(command, question=question)
        if command.fresh:
            self._lookups.labels("bypass").inc()
            answer = await self._answerer.ask(command, on_event)
            await self._store(key, command, answer)
            return answer
        answer, joined = await self._single_flight.join(
            key,
            partial(self._look_up_or_ask, key, command),
            partial(self._store, key, command),
            on_event,
        )
        result = "hit" if answer.cached else "joined" if joined else "miss"
        self._lookups.labels(result).inc()
        if result == "miss":
            return answer
        milliseconds = round((time.monotonic() - started) * 1000)
        return await self._answer_service.repeat(command, answer, milliseconds)

    async def _look_up_or_ask(
        self, key: str, command: AskCommand, on_event: EventSink | None
    ) -> Answer:
        """Return the cached answer, or ask the wrapped answerer.

        Callers with the same key share the lookup. With separate lookups, a caller could miss the cache
        just before another caller's answer is stored, and ask the model again.
        """
        cached = await self._look_up(key)
        if cached is None:
            return await self._answerer.ask(command, on_event)
        if on_event is not None:
            await on_event(Event("structured", cached.structured))
        return cached.model_copy(update={"cached": True})

    async def _look_up(self, key: str) -> Answer | None:
        """Return the cached answer, or None.

        If a document that the answer cites has changed, or a page that it suggests is gone, the answer is
        deleted from the cache.
        """
        try:
            cached = await self._answer_cache.get(key)
            if cached is None:
                return None
            chunks = await self._chunks_of_documents(cached.documents)
            is_current = document_digests(chunks) == cached.documents
            if is_current and await self._has_pages(cached.answer):
                return cached.answer
            await self._answer_cache.delete(key)
        except (StoreError, CollectionMismatch) as error:
            log.warning("answer cache unavailable: %s", error)
        return None

    async def _store(self, key: str, command: AskCommand, answer: Answer) -> None:
        """Cache the answer if it is cacheable. A failure is only logged."""
        try:
            if _is_cacheable(command, answer):
                await self._store_if_current(key, answer)
        except (StoreError, CollectionMismatch) as error:
            log.warning("answer not cached: %s", error)

    async def _store_if_current(self, key: str, answer: Answer) -> None:
        """Cache the answer, unless an ingestion run has made it out of date in the meantime.

        The collection must still contain every cited chunk unchanged, and every suggested page.
        """
        documents = {(source.source, source.document_id) for source in answer.sources}
        chunks = await self._chunks_of_documents(documents)
        cited = {source.text for source in answer.sources}
        current = [_as_source(chunk) for chunk in chunks if chunk.body in cited]
        is_current = all(_without_rank(source) in current for source in answer.sources)
        if is_current and await self._has_pages(answer):
            await self._answer_cache.put(key, CachedAnswer(answer, document_digests(chunks)))

    async def _chunks_of_documents(self, documents: Iterable[DocumentKey]) -> list[Chunk]:
        collection = self._answer_service.collection
        return await collection.run(partial(collection.chunks_of_documents, documents))

    async def _has_pages(self, answer: Answer) -> bool:
        """Return whether all pages that `answer` suggests are in the collection."""
        suggested = (page.page_url for page in (*answer.related_pages, *answer.nearest))
        urls = [url for url in (*answer.related_url, *suggested) if url]
        collection = self._answer_service.collection
        return not urls or await collection.run(partial(self._pages.has_all, urls))

    def _cache_key(self, command: AskCommand, question: Question) -> str:
        """Return a hash of everything that the answer depends on, except the documents."""
        fields = question.model_dump(
            mode="json", exclude={"id": True, "history": {"__all__": {"asked_at"}}}
        )
        request = json.dumps([command.mode, fields], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256((self._key_prefix + request).encode()).hexdigest()


class MeteringAnswerer:
    """Counts the tokens of each answer towards the token limit of the caller's account.

    The tokens are counted when the answer is complete or has failed. If several callers share an answer,
    all of its tokens are counted for the first caller, even if that caller has disconnected.
    """

    def __init__(self, answer_service: AnswerService, limits: RateLimiter) -> None:
        self._answer_service = answer_service
        self._limits = limits

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer the question, and count the tokens. Raises ApideskError."""
        async with self._limits.meter_tokens(command.account) as meter:
            metered = replace(command, callbacks=(*command.callbacks, meter))
            return await self._answer_service.ask(metered, on_event)

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks as sources, and count the tokens. Raises ApideskError."""
        async with self._limits.meter_tokens(command.account) as meter:
            metered = replace(command, callbacks=(*command.callbacks, meter))
            return await self._answer_service.retrieve(metered)


def _failure_code(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return ABANDONED
    return error.code if isinstance(error, ApideskError) else ApideskError.code


def _build_turn(command: AskCommand, answer: Answer, asked_at: datetime) -> Turn:
    """Return the turn to store. Secrets in the question and the answer are masked.

    The API name is left out if the question does not contain its words and no cited source has this name.
    """
    masked = partial(mask, known_secrets=scan_secrets(command).secrets)
    structured, api_name = answer.structured, answer.structured.api_name
    is_named = index_words(api_name or "") <= index_words(answer.question)
    if not is_named and api_name not in {source.api_name for source in answer.sources}:
        api_name = None
    return Turn(
        question=masked(answer.question),
        answer=masked("\n".join(answer.answer)),
        api_name=api_name and masked(api_name),
        api_url=structured.api_url and masked(structured.api_url),
        asked_at=asked_at,
    )


def _is_cacheable(command: AskCommand, answer: Answer) -> bool:
    """Return whether to store the answer.

    Answers without sources or with low confidence may improve when documents are added. Degraded answers
    may improve within minutes. Answers to questions that contain secrets are never stored.
    """
    is_sound = bool(answer.sources) and answer.confidence != "low" and not answer.degraded
    return not answer.cached and is_sound and not scan_secrets(command).has_secret


def _as_source(chunk: Chunk) -> Source:
    return Source.from_chunk(0, RetrievedChunk(chunk=chunk, score=0))


def _without_rank(source: Source) -> Source:
    return source.model_copy(update={"number": 0, "score": 0})
