"""Plain questions about the operations of real APIs, answered without a model.

The questions are generated: what an operation takes, returns and needs, what its errors mean, and where it
is, by its name or by its method and path.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from app.analytics.evaluation.answer_scoring import missing_facts
from app.analytics.evaluation.dataset import EvaluationQuestion
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.index_cache import indexed_settings
from benchmarks.fit_answers.plain_questions import plain_questions
from ingestion.sources.api_docs import api_method
from ingestion.store.collection import Collection
from schemas.answer import Answer
from schemas.document import Chunk
from schemas.settings import Settings
from tests.conftest import SHARED_DATA, needs_shared_data

pytestmark = [pytest.mark.acceptance, needs_shared_data]

MIN_RIGHT = 0.9
"""Minimum share of right answers to the questions of one kind."""

PER_API = 60
"""Maximum number of operations that are asked for by method and path."""

NAMES = ("dify_api", "slack", "napcat", "wechatpay")


@pytest.fixture(scope="module", params=NAMES)
def settings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    cache = tmp_path_factory.mktemp("indexes")
    with indexed_settings(request.param, SHARED_DATA, cache) as found:
        yield found


def operations_with_shared_path(collection: Collection) -> list[Chunk]:
    """Return the chunks with the address of each operation whose path other operations have as well."""
    entries = [entry for entry in collection.catalogue() if entry.api_url]
    counts = Counter(entry.api_url for entry in entries)
    shared = [entry for entry in entries if counts[entry.api_url] > 1][:PER_API]
    return [
        chunk
        for entry in shared
        for chunk in collection.chunks_of_document(entry.document_id, entry.source)
        if api_method(chunk)
    ]


def unambiguous_questions(collection: Collection) -> list[EvaluationQuestion]:
    """Return the plain questions that contain the name of an operation that no other one has."""
    entries = {entry.document_id: entry.api_name for entry in collection.catalogue()}
    counts = Counter(entries.values())
    return [
        question
        for question in plain_questions(collection)
        if entries[question.gold[0]] in question.question and counts[entries[question.gold[0]]] == 1
    ]


def cites_first(answer: Answer, chunk: Chunk) -> bool:
    return bool(answer.sources) and answer.sources[0].document_id == chunk.document_id


def test_plain_questions_are_answered(settings: Settings) -> None:
    async def right_by_kind() -> dict[str, list[bool]]:
        right = defaultdict[str, list[bool]](list)
        async with open_answer_service(settings) as service:
            for question in unambiguous_questions(service.collection):
                answer = await service.ask(AskCommand(question.question))
                missing = missing_facts(question.facts, "\n".join(answer.answer))
                right[question.kind].append(not missing)
        return right

    found = asyncio.run(right_by_kind())
    assert len(found) >= 3
    wrong = {kind: f"{sum(each)} of {len(each)}" for kind, each in found.items() if not all(each)}
    assert sum(map(sum, found.values())) >= MIN_RIGHT * sum(map(len, found.values())), wrong


def test_operation_is_found_by_its_method_and_path(settings: Settings) -> None:
    async def found(service: AnswerService, chunk: Chunk) -> list[bool]:
        method, path = api_method(chunk), chunk.api_url
        questions = [
            f"{method} {path}",
            f"{method} {path} returns 400, which parameters are required?",
            f"curl -X {method} https://api.example.com{path} 报错",
        ]
        return [cites_first(await service.ask(AskCommand(text)), chunk) for text in questions]

    async def found_shares() -> list[bool]:
        async with open_answer_service(settings) as service:
            chunks = operations_with_shared_path(service.collection)
            return [each for chunk in chunks for each in await found(service, chunk)]

    right = asyncio.run(found_shares())
    assert sum(right) >= MIN_RIGHT * len(right)
