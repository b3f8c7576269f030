"""Questions about error codes and fields of three platforms, answered without a model."""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.index_cache import indexed_settings
from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import plain_text
from schemas.settings import Settings

pytestmark = pytest.mark.acceptance

CODE_PHRASES = (
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

FIELD_PHRASES = ("{}", "{} 是什么意思", "{} 字段说明", "what is {}", "{} 必填吗", "参数 {} 怎么填")

MIN_CODES, MIN_FIELDS = 0.98, 0.95
"""Minimum shares of answers that quote the row of the code or field."""

MAX_NAMES = 30
"""Maximum number of codes, and of fields, that are asked for on each platform."""

_CODE_COLUMN = re.compile(r"\s*\|[^|\n]*(?:错误码|\bcode\b)", re.IGNORECASE)
_CODE = re.compile(r"-?\d{3,9}|\w+(?:[._-]\w+)+")
_FIELD = re.compile(r"[A-Za-z]\w*(?:[._]\w+)+|[a-z]+[A-Z]\w*")


@pytest.fixture(scope="module", params=("everyday", "yunli", "ferrylane"))
def settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    with indexed_settings(request.param, Path(), tmp_path_factory.mktemp("indexes")) as found:
        yield found


def rows_in(collection: Collection) -> Iterator[tuple[str, list[str]]]:
    """Yield the header and the cells of each row of a table."""
    for entry in collection.catalogue():
        for chunk in collection.chunks_of_document(entry.document_id, entry.source):
            lines = [line for line in chunk.body.splitlines() if line.startswith("|")]
            for line in lines[2:]:
                cells = line.replace("\\|", "/").strip().strip("|").split("|")
                yield lines[0], [plain_text(cell).strip() for cell in cells]


def codes_in(collection: Collection) -> dict[str, str]:
    """Return the error codes in the first column of tables, each with itself as what is expected."""
    rows = rows_in(collection)
    codes = {cells[0] for header, cells in rows if _CODE_COLUMN.match(header)}
    return {code: code for code in codes if _CODE.fullmatch(code)}


def fields_in(collection: Collection) -> dict[str, str]:
    """Return the fields that one row describes, each with the beginning of the longest cell of the row."""
    texts = defaultdict[str, list[str]](list)
    for _, (name, *others) in rows_in(collection):
        texts[name].append(max(others, key=len, default=""))
    return {
        name: found[0][:12]
        for name, found in texts.items()
        if len(found) == 1 and _FIELD.fullmatch(name) and len(found[0]) > 5
    }


async def missed_questions(
    service: AnswerService, expected: Mapping[str, str], phrases: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the number of questions, and those whose answer does not contain what is expected."""
    names = random.Random(3).sample(sorted(expected), min(MAX_NAMES, len(expected)))
    questions = {phrase.format(name): expected[name] for name in names for phrase in phrases}
    missed = []
    for question, text in questions.items():
        answer = await service.ask(AskCommand(question))
        if text not in plain_text("\n".join(answer.answer)):
            missed.append(question)
    return len(questions), missed


@pytest.mark.parametrize(
    ("find", "phrases", "minimum"),
    [(codes_in, CODE_PHRASES, MIN_CODES), (fields_in, FIELD_PHRASES, MIN_FIELDS)],
)
def test_row_is_quoted(
    find: Callable[[Collection], dict[str, str]],
    phrases: Sequence[str],
    minimum: float,
    settings: Settings,
) -> None:
    async def ask() -> tuple[int, list[str]]:
        async with open_answer_service(settings) as service:
            return await missed_questions(service, find(service.collection), phrases)

    asked, missed = asyncio.run(ask())
    assert asked >= 10 * len(phrases)
    assert len(missed) <= (1 - minimum) * asked, "\n".join(missed)
