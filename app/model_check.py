"""One tiny call to each configured model: what works, and which setting to look at where not."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass

from langchain_core.messages import HumanMessage
from langsmith import tracing_context

from ingestion.embeddings import open_embeddings
from ingestion.model_errors import ModelRole, model_errors
from runnables.deadline import with_deadline
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_chat_models, open_judge_model
from schemas.errors import ModelError
from schemas.settings import Settings

CHECK_SECONDS = 15.0
"""How long a model may take to say anything."""


@dataclass(frozen=True)
class ModelCheck:
    """What became of one model's call."""

    role: ModelRole
    problem: str | None
    milliseconds: int


async def check_models(settings: Settings) -> list[ModelCheck]:
    """A check of every model that Settings name, all at once; an empty list for none.

    Raises ConfigurationError when a name or its provider cannot be used at all.
    """
    checks: list[Awaitable[ModelCheck]] = []
    if models := open_chat_models(settings):
        checks += [_timed(model.role, probe(model)) for model in models.all]
    if judge := open_judge_model(settings):
        checks.append(_timed(judge.role, probe(judge)))
    if embeddings := open_embeddings(settings):
        role = ModelRole("EMBEDDING", settings.embedding_model or "")

        async def embed() -> None:
            with model_errors(role):
                async with asyncio.timeout(CHECK_SECONDS):
                    await embeddings.aembed_query("ping")

        checks.append(_timed(role, embed()))
    return list(await asyncio.gather(*checks))


async def probe(model: ChatModel) -> None:
    """One tiny call. Raises ModelError; `model.problem` remembers it."""
    with tracing_context(enabled=False):
        await model.ask([HumanMessage("ping")], with_deadline({}, CHECK_SECONDS))


async def _timed(role: ModelRole, call: Awaitable[None]) -> ModelCheck:
    started = time.monotonic()
    problem: str | None = None
    try:
        await call
    except ModelError as error:
        problem = str(error)
    return ModelCheck(role, problem, round((time.monotonic() - started) * 1000))
