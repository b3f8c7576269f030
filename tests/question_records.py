"""Creates, writes and reads records of answered questions."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy.engine import Engine

from app.service.record_writer import RecordWriter
from app.service.records import RecordStore
from schemas.answer import Page
from schemas.insights import QuestionRecord, RecordedPage
from schemas.question import Filters

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def record(record_id: str, **fields: object) -> QuestionRecord:
    """Return a record of an answered question, with `fields` changed."""
    complete = QuestionRecord(
        id=record_id,
        owner="key-1",
        asked_at=datetime.now(UTC),
        session="s",
        question="怎么发货\u2028\r\n",
        understood="怎么发货",
        language="zh",
        mode="pipeline",
        k=5,
        filters=Filters(metadata={"version": "v2"}),
        type="api_call",
        confidence="high",
        answer=("先调用接口 [1]",),
        pages=(RecordedPage(title="发货", page_url="https://x/1", source="api", document_id="1"),),
        nearest=Page(title="发货", page_url="https://x/1"),
        milliseconds=12,
    )
    return complete.model_copy(update=fields)


def stored(engine: Engine) -> list[QuestionRecord]:
    return list(RecordStore(engine).since(LONG_AGO))


def run_writer(record_writer: RecordWriter, use: Callable[[], None]) -> None:
    async def run() -> None:
        async with record_writer.running():
            use()

    asyncio.run(run())
