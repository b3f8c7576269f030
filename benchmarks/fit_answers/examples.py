"""Collects features and outcomes of the questions of the sets."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from langsmith import tracing_context

from app.analytics.evaluation.answer_scoring import missing_facts
from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.index_cache import indexed_settings
from benchmarks.answers.sets import SETS, is_available, off_topic_questions, read_set
from benchmarks.fit_answers.plain_questions import plain_questions
from runnables.answer.confidence import Quotes, answer_features
from runnables.answer.extractive_answer import find_quotes
from runnables.answer.quoted_steps import quoted_steps
from runnables.classification.classify import search_candidates
from runnables.classification.topic_gate import topic_features
from runnables.question.extract_details import details_of
from runnables.question.query_analysis import Glossary
from runnables.retrieval.chunk_search import build_boost_named_api
from runnables.retrieval.relevance import MAX_COMPARED_CHUNKS
from runnables.state import PipelineState
from schemas.document import RetrievedChunk
from schemas.question import Question

FOREIGN_STEP = 5
"""Of the questions about other platforms, every fifth is asked."""

WEIGHTS = {"foreign": 0.3, "removed": 0.3, "off-topic": 0.04, "plain": 0.3}
"""Weights of the kinds of questions that are more frequent in the examples than among users' questions.

Other kinds have weight 1.
"""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One question with the features and the outcome that a regression learns from."""

    corpus: str
    kind: str
    """`answerable`, `unanswerable`, `plain` (generated), `foreign` (about another platform), `removed` (its
    documents were left out) or `off-topic`.
    """
    features: Mapping[str, float]
    label: bool
    weight: float = 1.0


@dataclass(frozen=True)
class RankingExample:
    """The passages of one question: a row of features per passage, and which passages state all facts."""

    corpus: str
    features: Array
    right: npt.NDArray[np.bool_]
    weight: float


@dataclass(frozen=True)
class AskedQuestion:
    """A question, and the state of the pipeline before its answer is drafted."""

    kind: str
    question: EvaluationQuestion | None
    """None for an off-topic question."""
    state: PipelineState


@dataclass(frozen=True)
class AskedCorpus:
    """The questions that were asked about one corpus, and the open service that answers them."""

    name: str
    service: AnswerService
    asked: Sequence[AskedQuestion]

    @cached_property
    def glossary(self) -> Glossary:
        """The platform's glossary."""
        return Glossary(self.service.platform.glossary)

    def ranking_examples(self, names: Sequence[str]) -> Iterator[RankingExample]:
        """Yield the passages of each answerable or plain question that has facts and passages.

        The columns are the features `names`.
        """
        for each in self.asked:
            if each.kind not in ("answerable", "plain") or not each.question:
                continue
            if not each.question.facts:
                continue
            quotes = find_quotes(each.state, self.service.collection, self.glossary)
            passages = quotes.ranked[0]
            if not passages:
                continue
            rows = [[passage.features[name] for name in names] for passage in passages]
            alone = (replace(quotes, passages=[p], ranked=[[p]]) for p in passages)
            right = [self._is_right(each, quoted) for quoted in alone]
            weight = WEIGHTS.get(each.kind, 1.0)
            yield RankingExample(self.name, np.array(rows), np.array(right, dtype=bool), weight)

    def answer_examples(self, weights: Mapping[str, float]) -> Iterator[Example]:
        """Yield an example for each answer that quotes a passage.

        Passages are ranked with `weights`. A question with an identifier that no document contains is
        skipped.
        """
        collection = self.service.collection
        for each in self.asked:
            state = each.state
            quotes = find_quotes(state, collection, self.glossary, weights)
            if not quotes.passages or state["missing_identifiers"]:
                continue
            features = answer_features(quotes)
            is_right = each.kind != "foreign" and self._is_right(each, quotes)
            yield Example(self.name, each.kind, features, is_right, WEIGHTS.get(each.kind, 1.0))

    def topic_examples(self) -> Iterator[Example]:
        """Yield the on-topic and off-topic questions that are not certainly on topic."""
        collection, glossary = self.service.collection, self.glossary
        for each in self.asked:
            if each.kind in ("removed", "foreign", "plain"):
                continue
            if each.state["classification"].on_topic == 1:
                continue
            details = details_of(each.state["question"])
            chunks = search_candidates(details, collection, glossary)
            features = topic_features(details, collection, glossary, chunks)
            yield Example(self.name, each.kind, features, each.kind != "off-topic")

    def _is_right(self, each: AskedQuestion, quotes: Quotes) -> bool:
        if each.question is None or not each.question.facts:
            return False
        steps = quoted_steps(each.state, quotes, self.service.collection)
        return not missing_facts(each.question.facts, "\n".join(text for text, _ in steps))


@asynccontextmanager
async def ask_corpora(data: Path, cache: Path) -> AsyncIterator[list[AskedCorpus]]:
    """Yield all corpora whose documents are available, with the questions of the working part."""
    names = [name for name in SETS if is_available(name, data)]
    questions = {name: read_set(name, "work") for name in names}
    off_topic = off_topic_questions("work", data)["general"]
    with tracing_context(enabled=False):
        async with AsyncExitStack() as stack:
            corpora = []
            for name in names:
                settings = stack.enter_context(indexed_settings(name, data, cache))
                service = await stack.enter_async_context(open_answer_service(settings))
                corpora.append(await _ask_corpus(name, service, questions, off_topic))
            yield corpora


async def _ask_corpus(
    name: str,
    service: AnswerService,
    questions: Mapping[str, Sequence[EvaluationQuestion]],
    off_topic: Sequence[str],
) -> AskedCorpus:
    documents = await asyncio.to_thread(DocumentIndex.read, service.collection, 0)
    asked = []
    for question in questions[name]:
        kind = "unanswerable" if question.has_no_answer else "answerable"
        state = await _state(service, question.question)
        asked.append(AskedQuestion(kind, question, state))
        if removed := _without(state, frozenset[str]().union(*documents.gold_documents(question))):
            asked.append(AskedQuestion("removed", question, removed))
    for other, foreign in questions.items():
        if other.partition("_")[0] != name.partition("_")[0]:  # two sets are about Dify
            for question in foreign[::FOREIGN_STEP]:
                state = await _state(service, question.question)
                asked.append(AskedQuestion("foreign", question, state))
    for question in plain_questions(service.collection):
        asked.append(AskedQuestion("plain", question, await _state(service, question.question)))
    for text in off_topic:
        asked.append(AskedQuestion("off-topic", None, await _state(service, text)))
    return AskedCorpus(name, service, asked)


async def _state(service: AnswerService, text: str) -> PipelineState:
    """Return the state before the answer is drafted, even if the pipeline would refuse the question."""
    question: Question = service.build_question(AskCommand(text))
    deeper = question.model_copy(update={"k": MAX_COMPARED_CHUNKS})
    found = await service.retriever("full_text").ainvoke(deeper)
    state: PipelineState = {
        "question": question,
        "classification": await service.classify.ainvoke(question),
        "retrieved": found[: question.k],
        "further": found[question.k :],
    }
    return await build_boost_named_api(service.collection).ainvoke(state)


def _without(state: PipelineState, documents: frozenset[str]) -> PipelineState | None:
    """Return `state` without the chunks of `documents`.

    The result is None if the state has no chunks of these documents, or no other chunks.
    """

    def kept(ranking: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        return [r for r in ranking if f"{r.chunk.source}/{r.chunk.document_id}" not in documents]

    chunks = kept(state["chunks"])
    if not chunks or len(chunks) == len(state["chunks"]):
        return None
    return {**state, "chunks": chunks, "further": kept(state["further"])}
