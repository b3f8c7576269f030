"""Creates turns of conversations, and finds the documents that a question retrieves."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from app.service.answer_service import AnswerService
from schemas.question import Turn

DATA = Path(__file__).parent / "data"


def read(name: str) -> list[dict[str, Any]]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def turn(question: str, answer: str = "", api_name: str | None = None) -> Turn:
    return Turn(question=question, answer=answer, api_name=api_name, asked_at=datetime.now(UTC))


SHIP = turn("发货接口是哪个", "用“订单发货”接口提交包裹和运单号。 [1]", "订单发货")

PRICE = turn("How do I change a price?", "Call Update SKU Price. [1]", "Update SKU Price")

SHIPMENT = turn("How do I create a shipment?", "", "Create shipment")

SIGN = turn("签名怎么算", "取出查询串中的全部参数，按 ASCII 码升序排列。 [1]")

HOOKS = turn("How do I verify webhook signatures?", "Use the bytes as received. [1]")


def found_by(
    client: TestClient[Litestar], answer_service: AnswerService, question: str
) -> set[str]:
    """Return the ids of the documents of the first five chunks."""
    sources = client.post("/retrieve", json={"question": question, "k": 5}).json()["sources"]
    return {ids_by_title(answer_service)[source["title"]] for source in sources}


@cache
def ids_by_title(answer_service: AnswerService) -> dict[str, str]:
    chunks = answer_service.collection.chunks_by_id(
        [chunk.id for chunk in answer_service.collection.stored_chunks()]
    )
    return {chunk.title: chunk.document_id for chunk in chunks}
