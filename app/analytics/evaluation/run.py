"""How well the desk's own classifier tells the types of labelled questions.
An evaluation, from its questions to its figures.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from langsmith import tracing_context
from rich.console import Console
from rich.progress import track

from app.analytics.evaluation.dataset import EvaluationQuestion, read_questions, write_questions
from app.analytics.evaluation.documents import SAMPLE, DocumentIndex
from app.analytics.evaluation.experiments import ExperimentLog
from app.analytics.evaluation.generated_questions import make_questions
from app.analytics.evaluation.measures import GoldDocuments, confusion
from app.analytics.evaluation.result import MOST_K, ClassificationResult, Evaluation, MadeQuestions
from app.analytics.evaluation.retrieval_probe import RetrievalProbe, watch_embeddings
from app.analytics.evaluation.scoring import ProbeResult, route_result
from app.cli.terminal.progress import ingestion_progress
from app.service.answer_service import AnswerService, open_answer_service
from ingestion.text.language import detect_language
from runnables.retrieval.retriever import RetrievalMode
from runnables.run_context import with_deadline
from runnables.state import Classification
from schemas.errors import QuestionError
from schemas.question import Question
from schemas.settings import Settings

AT_A_TIME = 4
"""Questions that are classified at the same time."""


async def classify(
    answer_service: AnswerService, questions: Sequence[EvaluationQuestion]
) -> ClassificationResult | None:
    """The types that labelled questions are given, against their labels; None without labels.

    Raises ModelError where APIDESK_ON_MODEL_FAILURE is `error`.
    """
    labelled = [(question.label, question) for question in questions if question.label]
    if not labelled:
        return None
    turns = asyncio.Semaphore(AT_A_TIME)

    async def type_of(asked: EvaluationQuestion) -> Classification:
        language = detect_language(asked.question)
        question = Question(text=asked.question, k=answer_service.settings.top_k, language=language)
        async with turns:
            config = with_deadline({}, answer_service.settings.request_timeout)
            return await answer_service.classify.ainvoke(question, config)

    given = await asyncio.gather(*(type_of(question) for _, question in labelled))
    types = [each.structured.type for each in given]
    labels = [label for label, _ in labelled]
    right = sum(label == said for label, said in zip(labels, types, strict=True))
    return ClassificationResult(
        by=_classifier_name(answer_service),
        matrix=confusion(zip(labels, types, strict=True)),
        accuracy=round(right / len(labelled), 4),
        unanswered=sum(each.degraded is not None for each in given),
    )


def _classifier_name(answer_service: AnswerService) -> str:
    if answer_service.models is None:
        return "extractive"
    return answer_service.settings.structure_model or answer_service.settings.chat_model


MODES: tuple[RetrievalMode, ...] = ("full_text", "dense", "hybrid")


@dataclass(frozen=True)
class EvaluationOptions:
    """What was asked for on the command line."""

    questions: Path | None = None
    """A file of questions; without one they are made from the documents."""
    k: int | None = None
    """Documents that count; without it APIDESK_TOP_K, 20 at most."""
    mode: RetrievalMode | Literal["all"] = "all"
    save: Path | None = None
    """Where made questions are kept; without it data/evaluation/<name>.jsonl."""


class EvaluationInput(NamedTuple):
    """The questions, what is to be found for those with a gold, and whether they were made."""

    questions: list[EvaluationQuestion]
    judged: list[EvaluationQuestion]
    golds: list[GoldDocuments]
    made: MadeQuestions | None


async def evaluate_retrieval(settings: Settings, options: EvaluationOptions) -> Evaluation:
    """Ask all questions by every route that is possible, or by the one that is named.

    Raises QuestionError for the questions, ConfigurationError for a route without its model, ModelError
    for an embedding model that fails, StoreError (StoreLocked while a server holds the store), and
    ApideskError for a LangSmith that is configured and fails.
    """
    given = read_questions(options.questions) if options.questions else None
    with ingestion_progress() as progress:
        async with open_answer_service(settings, progress) as answer_service:
            sample = 0 if given else SAMPLE
            documents = await asyncio.to_thread(
                DocumentIndex.read, answer_service.collection, sample
            )
            asked = _asked(settings, options, documents, given)
            return await _evaluate(answer_service, options, documents.count, asked)


async def _evaluate(
    answer_service: AnswerService,
    options: EvaluationOptions,
    documents: int,
    asked: EvaluationInput,
) -> Evaluation:
    k = options.k or min(answer_service.settings.top_k, MOST_K)
    platform = answer_service.platform.platform.name
    modes = _modes(answer_service, options.mode)
    watched = watch_embeddings(answer_service)
    probes = {mode: RetrievalProbe(answer_service, mode, watched) for mode in modes}
    experiments = await ExperimentLog.open(platform, asked.judged)
    routes = []
    for mode, probe in probes.items():
        found = await _ask_all(probe, asked, k, experiments)
        routes.append(route_result(mode, asked.judged, asked.golds, found, k))
    return Evaluation(
        platform=platform,
        documents=documents,
        questions=len(asked.questions),
        with_gold=len(asked.judged),
        k=k,
        judged=_judged(answer_service, modes),
        routes=tuple(routes),
        classification=await classify(answer_service, asked.questions),
        made=asked.made,
        experiments=tuple(experiments.names) if experiments else (),
    )


async def _ask_all(
    probe: RetrievalProbe, asked: EvaluationInput, k: int, experiments: ExperimentLog | None
) -> list[ProbeResult]:
    """What one route finds for each question, one after the other: latency is that of one user."""
    questions = asked.judged
    with tracing_context(enabled=False):
        await probe.ask(questions[0])  # opens what the first caller opens
    if experiments:
        return await experiments.run(probe, asked.golds, k)
    console = Console(stderr=True)
    shown = track(
        questions,
        f"asking by {probe.mode.replace('_', ' ')}",
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    return [await probe.ask(question) for question in shown]


def _asked(
    settings: Settings,
    options: EvaluationOptions,
    documents: DocumentIndex,
    given: list[EvaluationQuestion] | None,
) -> EvaluationInput:
    made = None
    questions = given or make_questions(documents)
    documents.check(questions)
    judged = [documents.without_doubles(question) for question in questions if question.gold]
    if not judged:
        raise QuestionError("gold: no question names a document", field="questions")
    if given is None:
        path = options.save or Path("data", "evaluation", f"{_name(settings.platform)}.jsonl")
        write_questions(path, questions)
        counts = Counter(question.made for question in questions if question.made)
        made = MadeQuestions(path=str(path), counts=dict(counts))
    return EvaluationInput(
        questions, judged, [documents.gold(question) for question in judged], made
    )


def _name(platform: Path) -> str:
    """A platform's short name: its file's, or the folder's of a file called platform.toml."""
    path = platform.resolve()
    return path.parent.name if path.stem == "platform" else path.stem


def _modes(
    answer_service: AnswerService, wanted: RetrievalMode | Literal["all"]
) -> Sequence[RetrievalMode]:
    if wanted != "all":
        return (wanted,)
    return MODES if answer_service.job.embeddings else ("full_text",)


def _judged(answer_service: AnswerService, modes: Sequence[RetrievalMode]) -> RetrievalMode:
    """The route that the settings name; where it was not measured, the one that was."""
    configured = answer_service.settings.retrieval
    if configured == "auto":
        configured = "hybrid" if answer_service.job.embeddings else "full_text"
    return configured if configured in modes else modes[0]
