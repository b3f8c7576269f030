"""Checks the chat, judge and embedding models with small calls, and prints the results."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingestion.embeddings import check_vectors, open_embeddings
from ingestion.providers import ModelRole, model_errors
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_chat_models, open_judge_model
from runnables.models.structured_output import PROBE_TIMEOUT_S, probe_model
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.settings import Settings

EMBEDDED_PROBES = ["ping", "a longer text that has more tokens"]
"""Texts to embed. Different lengths reveal a server that returns a vector per token."""


@dataclass(frozen=True)
class ModelCheck:
    """The result of checking one model."""

    role: ModelRole
    problem: str | None
    """An error message that names the setting to check; None if the check succeeded."""
    milliseconds: int
    output: str = ""
    """The output mode of a chat model; empty if it is not known, and for an embedding model."""


async def check_models(settings: Settings) -> list[ModelCheck]:
    """Check the chat, judge and embedding models concurrently. Returns an empty list if there are none.

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
                    vectors = await embeddings.aembed_documents(EMBEDDED_PROBES)
                check_vectors(vectors, len(EMBEDDED_PROBES), role)

        checks.append(_timed(role, embed()))
    return list(await asyncio.gather(*checks))


async def _check_chat_model(model: ChatModel) -> ModelCheck:
    async def probe() -> None:
        if not await probe_model(model):
            raise ModelOutputInvalid(
                f"{model.role.setting}: the model answered, but not in JSON as requested"
            )

    check = await _timed(model.role, probe())
    return replace(check, output=next(iter(model.output_modes), ""))


async def _timed(role: ModelRole, call: Awaitable[None]) -> ModelCheck:
    started = time.monotonic()
    problem: str | None = None
    try:
        await call
    except ModelError as error:
        problem = str(error)
    return ModelCheck(role, problem, round((time.monotonic() - started) * 1000))


def print_checks(checks: list[ModelCheck]) -> None:
    """Print a table of models with the result of each check, on stdout."""
    console = Console(highlight=False)
    if not checks:
        console.print("no model is configured: questions are answered from the documents alone")
        return
    table = Table("for", "model", "ms", "output", "result", box=None, header_style="bold")
    for check in checks:
        purpose = check.role.prefix.lower().replace("_", " ")
        result = Text(check.problem, style="red") if check.problem else Text("ok", style="green")
        table.add_row(purpose, check.role.model, str(check.milliseconds), check.output, result)
    console.print(table)
