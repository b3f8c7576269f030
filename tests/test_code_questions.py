"""Questions about all error codes of three platforms, answered without a model."""

import asyncio
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.index_cache import indexed_settings
from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import plain_text
from schemas.settings import Settings

pytestmark = pytest.mark.acceptance

PHRASES = (
    "{}",
    "{} 是什么错误",
    "错误码 {}",
    "errcode {} 怎么解决",
    "接口返回 errcode {} 是什么意思，怎么处理",
    "返回 {}",
    "遇到 {} 是什么原因",
    "what does error {} mean and how do I fix it",
    "why do I get {}",
    '{{"code":{},"msg":"x"}} 怎么办',
)

MIN_QUOTED = 0.98
"""Minimum share of answers that quote the row of the code."""

CODES = 30
"""Number of codes that are asked for on each platform."""

_TABLE_OF_CODES = re.compile(r"\A\s*\|[^|\n]*(?:错误码|\bcode\b)", re.IGNORECASE)
_CODE = re.compile(r"-?\d{3,9}|\w+(?:[._-]\w+)+")


@pytest.fixture(scope="module", params=("everyday", "yunli", "ferrylane"))
def settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    with indexed_settings(request.param, Path(), tmp_path_factory.mktemp("indexes")) as found:
        yield found


def codes_in(collection: Collection) -> list[str]:
    """Return some of the codes in the first column of tables of error codes."""
    cells = [
        plain_text(line.split("|")[1]).strip()
        for entry in collection.catalogue()
        for chunk in collection.chunks_of_document(entry.document_id, entry.source)
        if _TABLE_OF_CODES.match(chunk.body)
        for line in chunk.body.splitlines()[2:]
        if line.startswith("|")
    ]
    codes = sorted({cell for cell in cells if _CODE.fullmatch(cell)})
    return random.Random(3).sample(codes, min(CODES, len(codes)))


async def missed_questions(service: AnswerService) -> tuple[int, list[str]]:
    """Return the number of questions, and those whose answer does not contain the code."""
    questions = [(phrase.format(c), c) for c in codes_in(service.collection) for phrase in PHRASES]
    missed = [
        question
        for question, code in questions
        if code not in "\n".join((await service.ask(AskCommand(question))).answer)
    ]
    return len(questions), missed


def test_row_of_a_code_is_quoted(settings: Settings) -> None:
    async def ask() -> tuple[int, list[str]]:
        async with open_answer_service(settings) as service:
            return await missed_questions(service)

    asked, missed = asyncio.run(ask())
    assert asked >= 10 * len(PHRASES)
    assert len(missed) <= (1 - MIN_QUOTED) * asked, "\n".join(missed)
