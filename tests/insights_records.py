"""Creates and stores recorded questions, and reads CSV reports."""

from collections.abc import Sequence
from csv import DictReader
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from app.analytics.insights.report import BYTE_ORDER_MARK
from app.service.records import RecordStore
from schemas.insights import Feedback, QuestionRecord
from tests.question_records import record

NOON = datetime.now(UTC).replace(hour=12) - timedelta(days=2)

SHIP = {"api_name": "订单发货", "api_url": "/ship"}

HELPED, DID_NOT = Feedback(score=1), Feedback(score=-1, comment="=1+1 没有用")

MISSED: dict[str, Any] = {"confidence": "low", "pages": (), "session": None}


def asked(number: int, **fields: object) -> QuestionRecord:
    """Return the record of a question that was answered two days ago, with `fields` changed."""
    kept = {"asked_at": NOON + timedelta(seconds=number), "coverage": 1.0}
    return record(f"record-{number:03d}", **(kept | fields))


def wordings(texts: Sequence[str], **fields: object) -> list[QuestionRecord]:
    """Return records of unanswered questions of several callers."""
    return [
        asked(100 + number, **MISSED, question=text, owner=f"key-{number}", **fields)
        for number, text in enumerate(texts)
    ]


DRONES = wordings(["drone delivery", "Is there a drone API?", "drone delivery\nprice"])

RECORDS = [
    asked(1, **SHIP),
    asked(2, **SHIP, asked_at=NOON - timedelta(days=1), error="44203"),
    asked(3, **SHIP, confidence="low", error="44203"),
    asked(4, **SHIP, confidence="low", feedback=HELPED, cached=True),
    asked(5, api_name="退款", api_url="/refund", pages=(), error="40014"),
    asked(6, type="general", feedback=DID_NOT, question="@怎么发货\x1b[2J"),
    asked(7, type="unknown", pages=(), asked_at=NOON - timedelta(days=1)),
    asked(8, type=None, confidence=None, failure="model_timeout"),
    asked(9, asked_at=NOON - timedelta(days=40)),
    *DRONES,
]


def keep(store: RecordStore, records: Sequence[QuestionRecord]) -> None:
    store.add(records)
    for each in records:
        if each.feedback:
            store.rate(each.owner, each.id, each.feedback)


def rows_of(text: str) -> list[dict[str, str]]:
    assert text.startswith(BYTE_ORDER_MARK)
    return list(DictReader(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")))
