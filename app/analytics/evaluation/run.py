"""Evaluates retrieval: reads or generates questions, runs the selected routes and collects the metrics.

A route is a retrieval mode: full text, dense or hybrid.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.callbacks import AsyncCallbackHandler
from langsmith import tracing_context
from rich.console import Console
from rich.progress import track

from app.analytics.evaluation.dataset import (
    SAMPLE_DOCUMENTS,
    DocumentIndex,
    EvaluationQuestion,
    GoldDocuments,
    distinct_questions,
    read_questions,
    write_questions,
)
from app.analytics.evaluation.experiments import ExperimentLog, LoggedResult
from app.analytics.evaluation.generated_questions import generate_questions
from app.analytics.evaluation.scoring import (
    MAX_K,
    ClassificationResult,
    Evaluation,
    GeneratedQuestions,
    ProbeResult,
    best_documents,
    confusion_matrix,
    question_scores,
    route_result,
)
from app.service.answer_service import AnswerService, open_answer_service
from app.telemetry.progress import ingestion_progress
from ingestion.text.language import detect_language
from runnables.retrieval.retriever import RetrievalMode
from runnables.run_context import MODEL_FAILURE, with_deadline
from runnables.state import Classification
from schemas.errors import ModelUnavailable, QuestionError
from schemas.question import Question
from schemas.settings import Settings

CLASSIFY_CONCURRENCY = 4
"""Maximum number of questions that are classified at the same time."""

MODES: tuple[RetrievalMode, ...] = ("full_text", "dense", "hybrid")

PROBE_CHUNKS = 60
"""Number of chunks to retrieve per question. They usually come from at least `MAX_K` documents."""


class EmbeddingFailureHandler(AsyncCallbackHandler):
    """Records the error code of the last failure to embed a question.

    The retriever falls back to full text when embedding fails. An evaluation must report the failure
    instead of measuring the fallback.
    """

    code: str | None = None
    """None if every question was embedded."""

    async def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """Record the code if the event is a failure of the embedding model."""
        if name == MODEL_FAILURE and data["role"] == "embedding":
            self.code = data["code"]


class RetrievalProbe:
    """Retrieves chunks with the route `mode`.

    The constructor raises ConfigurationError if the route needs a model that is not configured.
    """

    def __init__(self, answer_service: AnswerService, mode: RetrievalMode) -> None:
        self.mode = mode
        self._failures = EmbeddingFailureHandler()
        self._retrieve = answer_service.retriever(mode)
        self._role = answer_service.collection.embedding_role

    async def run(self, question: EvaluationQuestion) -> ProbeResult:
        """Return the best chunks and the time to retrieve them. Raises ApideskError."""
        text = question.question
        query = Question(text=text, k=PROBE_CHUNKS, language=detect_language(text))
        started = time.perf_counter()
        chunks = await self._retrieve.ainvoke(query, {"callbacks": [self._failures]})
        milliseconds = (time.perf_counter() - started) * 1000
        if self._failures.code:
            raise ModelUnavailable(
                f"{self._role.setting} failed ({self._failures.code}), so only full text would be "
                "measured: see `apidesk check`, or pass --mode full_text"
            )
        return ProbeResult(chunks, milliseconds)


async def evaluate_classifier(
    answer_service: AnswerService, questions: Sequence[EvaluationQuestion]
) -> ClassificationResult | None:
    """Compare predicted with expected question types. Returns None if no question has an expected type.

    Raises ModelError if the model fails and APIDESK_ON_MODEL_FAILURE is `error`.
    """
    labelled = [(label, question) for question in questions if (label := question.expected_type)]
    if not labelled:
        return None
    semaphore = asyncio.Semaphore(CLASSIFY_CONCURRENCY)

    async def classify(question: EvaluationQuestion) -> Classification:
        text, settings = question.question, answer_service.settings
        request = Question(text=text, k=settings.top_k, language=detect_language(text))
        async with semaphore:
            config = with_deadline({}, settings.request_timeout)
            return await answer_service.classify.ainvoke(request, config)

    predictions = await asyncio.gather(*(classify(question) for _, question in labelled))
    types = [prediction.structured.type for prediction in predictions]
    labels = [label for label, _ in labelled]
    correct = sum(label == type_ for label, type_ in zip(labels, types, strict=True))
    return ClassificationResult(
        by=_classifier_name(answer_service),
        matrix=confusion_matrix(zip(labels, types, strict=True)),
        accuracy=round(correct / len(labelled), 4),
        unclassified=sum(prediction.degraded is not None for prediction in predictions),
    )


def _classifier_name(answer_service: AnswerService) -> str:
    if answer_service.models is None:
        return "extractive"
    return answer_service.settings.structure_model or answer_service.settings.chat_model


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of `apidesk evaluate`."""

    questions: Path | None = None
    """Dataset file; None generates questions from the documents."""
    k: int | None = None
    """The k of hit@k and recall@k, a number of documents; None means APIDESK_TOP_K, but at most 20."""
    mode: RetrievalMode | Literal["all"] = "all"
    save: Path | None = None
    """File for generated questions; None means data/evaluation/<name>.jsonl (see `_platform_slug`)."""


class EvaluationInput(NamedTuple):
    """The questions of an evaluation and their gold documents."""

    questions: list[EvaluationQuestion]
    with_gold: list[EvaluationQuestion]
    """The questions that have gold documents."""
    golds: list[GoldDocuments]
    """The gold documents of the questions in `with_gold`, in the same order."""
    generated: GeneratedQuestions | None


async def evaluate_retrieval(settings: Settings, options: EvaluationOptions) -> Evaluation:
    """Measure the routes that `options.mode` selects, on the questions that have gold documents.

    The predicted question types are compared with the expected types, if any. If reranking fails, the order
    before reranking is measured.

    Raises QuestionError for invalid or missing questions, ConfigurationError for a missing model or a file
    that cannot be written, and other kinds of ApideskError if the store, a model or LangSmith fails.
    """
    all_questions = read_questions(options.questions) if options.questions else None
    dataset = distinct_questions(all_questions) if all_questions else None
    with ingestion_progress() as progress:
        async with open_answer_service(settings, progress) as answer_service:
            sample = 0 if dataset else SAMPLE_DOCUMENTS
            documents = await asyncio.to_thread(
                DocumentIndex.read, answer_service.collection, sample
            )
            data = _prepare_input(settings, options, documents, dataset)
            evaluation = await _evaluate(answer_service, options, documents.count, data)
    repeated = len(all_questions or ()) - len(dataset or ())
    return evaluation.model_copy(update={"repeated": repeated})


async def _evaluate(
    answer_service: AnswerService,
    options: EvaluationOptions,
    document_count: int,
    data: EvaluationInput,
) -> Evaluation:
    k = options.k or min(answer_service.settings.top_k, MAX_K)
    platform = answer_service.platform.platform.name
    modes = _modes(answer_service, options.mode)
    probes = {mode: RetrievalProbe(answer_service, mode) for mode in modes}
    experiments = await ExperimentLog.open(platform, data.with_gold)
    routes = []
    for mode, probe in probes.items():
        results = await _run_probe(probe, data, k, experiments)
        routes.append(route_result(mode, data.with_gold, data.golds, results, k))
    return Evaluation(
        platform=platform,
        documents=document_count,
        questions=len(data.questions),
        with_gold=len(data.with_gold),
        k=k,
        primary_mode=_primary_mode(answer_service, modes),
        routes=tuple(routes),
        classification=await evaluate_classifier(answer_service, data.questions),
        generated=data.generated,
        experiments=tuple(experiments.names) if experiments else (),
    )


async def _run_probe(
    probe: RetrievalProbe, data: EvaluationInput, k: int, experiments: ExperimentLog | None
) -> list[ProbeResult]:
    """Run one route on the questions, one after the other, to measure the latency for a single user."""
    questions = data.with_gold
    with tracing_context(enabled=False):
        await probe.run(questions[0])  # warm up
    if experiments:

        async def logged_result(number: int) -> LoggedResult[ProbeResult]:
            result, gold = await probe.run(questions[number]), data.golds[number]
            best = [
                document.model_dump(by_alias=True) for document in best_documents(result, gold, k)
            ]
            return LoggedResult(result, {"documents": best}, question_scores(result, gold, k))

        return await experiments.run(probe.mode, logged_result, {"mode": probe.mode, "k": k})
    console = Console(stderr=True)
    tracked = track(
        questions,
        f"measuring {probe.mode.replace('_', ' ')}",
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    return [await probe.run(question) for question in tracked]


def _prepare_input(
    settings: Settings,
    options: EvaluationOptions,
    documents: DocumentIndex,
    dataset: list[EvaluationQuestion] | None,
) -> EvaluationInput:
    """Check the questions of the dataset. Without a dataset, generate questions and save them."""
    generated = None
    questions = dataset or generate_questions(documents)
    if not questions:
        raise QuestionError(
            "no questions can be generated from the documents: pass QUESTIONS", field="questions"
        )
    documents.check_gold(questions)
    with_gold = [documents.deduplicate_gold(question) for question in questions if question.gold]
    if not with_gold:
        raise QuestionError(
            "gold: no question names a document, so retrieval cannot be measured; add gold documents, or "
            "measure answers with --answers",
            field="questions",
        )
    if dataset is None:
        slug = _platform_slug(settings.platform)
        path = options.save or Path("data", "evaluation", f"{slug}.jsonl")
        write_questions(path, questions)
        counts = Counter(
            question.generated_from for question in questions if question.generated_from
        )
        generated = GeneratedQuestions(path=str(path), counts=dict(counts))
    golds = [documents.gold_documents(question) for question in with_gold]
    return EvaluationInput(questions, with_gold, golds, generated)


def _platform_slug(platform: Path) -> str:
    """Return the platform file's stem, or the name of its folder if the file is called platform.toml."""
    path = platform.resolve()
    return path.parent.name if path.stem == "platform" else path.stem


def _modes(
    answer_service: AnswerService, requested: RetrievalMode | Literal["all"]
) -> Sequence[RetrievalMode]:
    if requested != "all":
        return (requested,)
    return MODES if answer_service.job.embeddings else ("full_text",)


def _primary_mode(answer_service: AnswerService, modes: Sequence[RetrievalMode]) -> RetrievalMode:
    """Return the configured route, or the first measured route if the configured one is not measured."""
    configured = answer_service.settings.retrieval
    if configured == "auto":
        configured = "hybrid" if answer_service.job.embeddings else "full_text"
    return configured if configured in modes else modes[0]
