"""Checks the models with small calls (`apidesk check`), and tries a new platform.toml (`apidesk init`)."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingestion.embeddings import check_vectors, open_embeddings
from ingestion.providers import ModelRole, model_errors
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_chat_models, open_judge_model
from runnables.models.structured_output import PROBE_TIMEOUT_S, probe_model
from schemas.answer import Answer
from schemas.errors import ModelError, ModelOutputInvalid, SourceError
from schemas.ingestion import IngestionOptions, IngestionRun
from schemas.settings import Settings

if TYPE_CHECKING:
    from app.service.answer_service import AnswerService
    from ingestion.job import ProgressCallback

# --- models ---------------------------------------------------------------------------------------

PROBE_TEXTS = ["ping", "a longer text that has more tokens"]
"""Texts for the check of the embedding model.

Their lengths differ, because this reveals a server that returns a vector per token instead of per text.
"""


@dataclass(frozen=True)
class ModelCheck:
    """The result of checking one model."""

    role: ModelRole
    problem: str | None
    """An error message that names the setting to check; None if the check succeeded."""
    milliseconds: int
    output: str = ""
    """The way in which a chat model is asked for JSON, such as `json_schema`; empty if it is not known."""


async def check_models(settings: Settings) -> list[ModelCheck]:
    """Check the configured chat, judge and embedding models concurrently. Returns a result for each model.

    Raises ConfigurationError for a model name or provider that cannot be used.
    """
    checks: list[Awaitable[ModelCheck]] = []
    if models := open_chat_models(settings):
        checks += [_check_chat_model(model) for model in models.all]
    if judge := open_judge_model(settings):
        checks.append(_check_chat_model(judge))
    if embeddings := open_embeddings(settings):
        role = ModelRole("EMBEDDING", settings.embedding_model or "")

        async def embed() -> None:
            with model_errors(role):
                async with asyncio.timeout(PROBE_TIMEOUT_S):
                    vectors = await embeddings.aembed_documents(PROBE_TEXTS)
                check_vectors(vectors, len(PROBE_TEXTS), role)

        checks.append(_run_check(role, embed()))
    return list(await asyncio.gather(*checks))


async def _check_chat_model(model: ChatModel) -> ModelCheck:
    async def probe() -> None:
        if not await probe_model(model):
            raise ModelOutputInvalid(
                f"{model.role.setting}: the model answered, but not in JSON as requested"
            )

    check = await _run_check(model.role, probe())
    return replace(check, output=next(iter(model.output_modes), ""))


async def _run_check(role: ModelRole, call: Awaitable[None]) -> ModelCheck:
    started = time.monotonic()
    problem: str | None = None
    try:
        await call
    except ModelError as error:
        message = error.provider_message
        problem = f"{error} ({message})" if message else str(error)
    return ModelCheck(role, problem, round((time.monotonic() - started) * 1000))


def print_checks(checks: list[ModelCheck]) -> None:
    """Print a table of models with the result of each check, on stdout."""
    console = Console(highlight=False)
    if not checks:
        console.print("no model is configured: questions are answered from the documents alone")
        return
    table = Table("for", "model", "ms", "output", "result", box=None, header_style="bold")
    for check in checks:
        purpose = check.role.purpose.lower().replace("_", " ")
        result = Text(check.problem, style="red") if check.problem else Text("ok", style="green")
        table.add_row(
            purpose, Text(check.role.model), str(check.milliseconds), check.output, result
        )
    console.print(table)


# --- trial of a platform.toml ---------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """The result of trying a platform.toml."""

    run: IngestionRun
    question: str | None
    """The question that was asked; None if no question can be suggested from the documents."""
    answer: Answer | None
    """The answer to `question`; None if there is no question."""


async def run_trial(settings: Settings, progress: "ProgressCallback") -> Trial:
    """Index the platform in `settings`, as `apidesk ingest` does, and ask a suggested question.

    Raises ApideskError, for example SourceError if no document was indexed.
    """
    from app.service.answer_service import connect_answer_service
    from app.service.ask_command import AskCommand
    from ingestion.job import run_in_thread

    answer_service = await asyncio.to_thread(connect_answer_service, settings)
    try:
        await _check_store(answer_service)
        run = await run_in_thread(
            answer_service.job, answer_service.job.new_run("command"), progress
        )
        if not any(source.documents for source in run.sources):
            raise SourceError("; ".join(run.refused) or "there was nothing to index")
        question = await asyncio.to_thread(_suggested_question, answer_service)
        answer = await answer_service.ask(AskCommand(question)) if question else None
    finally:
        answer_service.job.close()
        await asyncio.to_thread(answer_service.tracing.close)
    return Trial(run, question, answer)


async def _check_store(answer_service: "AnswerService") -> None:
    """Raise ConfigurationError if the store contains documents that the sources do not contain.

    Such documents usually belong to another platform. An ingestion run would delete them, or mix them with
    the documents of this platform.
    """
    from ingestion.job import run_in_thread
    from ingestion.sync import foreign_documents_error

    if not await asyncio.to_thread(answer_service.collection.exists):
        return
    job, settings = answer_service.job, answer_service.settings
    dry_run = job.new_run("command", IngestionOptions(dry_run=True))
    reports = (await run_in_thread(job, dry_run)).sources
    if foreign_sources := [report.name for report in reports if report.deleted or report.kept]:
        raise foreign_documents_error(foreign_sources, str(settings.platform))


def _suggested_question(answer_service: "AnswerService") -> str | None:
    from app.api.suggestions import SuggestedQuestions

    questions = SuggestedQuestions(answer_service.collection).get(
        answer_service.platform.platform.language
    )
    return next(iter(questions), None)
