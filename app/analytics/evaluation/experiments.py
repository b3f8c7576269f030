"""The run as a dataset and an experiment a route in LangSmith, where its own variables ask for that.

Without LANGSMITH_TRACING=true and LANGSMITH_API_KEY nothing is sent anywhere.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from typing import Any
from uuid import UUID

from langsmith import Client, aevaluate
from langsmith.utils import LangSmithError, get_api_key, tracing_is_enabled

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.measures import GoldDocuments
from app.analytics.evaluation.retrieval_probe import RetrievalProbe
from app.analytics.evaluation.scoring import ProbeResult, best_chunks, scores
from schemas.errors import ApideskError

TIMEOUT_MS = 20_000


class ExperimentLog:
    """A dataset of the questions, and the experiments over it."""

    def __init__(
        self, client: Client, dataset: UUID, questions: Sequence[EvaluationQuestion]
    ) -> None:
        self.names: list[str] = []
        self._client = client
        self._dataset = dataset
        self._questions = questions

    @classmethod
    async def open(
        cls, platform: str, questions: Sequence[EvaluationQuestion]
    ) -> "ExperimentLog | None":
        """The dataset of these questions, made if need be; None where LangSmith is not configured.

        Raises ApideskError when it is configured and fails.
        """
        if not (tracing_is_enabled() and get_api_key(None)):
            return None
        with _langsmith_errors():
            client = Client(timeout_ms=TIMEOUT_MS)
            dataset = await asyncio.to_thread(_dataset, client, platform, questions)
        return cls(client, dataset, questions)

    async def run(
        self, probe: RetrievalProbe, golds: Sequence[GoldDocuments], k: int
    ) -> list[ProbeResult]:
        """What `probe` finds for each question, asked and logged by LangSmith's own evaluation.

        Raises ApideskError as `probe` does, and when LangSmith fails.
        """
        found: dict[int, ProbeResult] = {}
        failures: list[ApideskError] = []

        async def retrieve(inputs: dict[str, Any]) -> dict[str, Any]:
            number = int(inputs["number"])
            try:
                found[number] = await probe.ask(self._questions[number])
            except ApideskError as error:
                failures.append(error)
                raise
            best = best_chunks(found[number], golds[number], k)
            return {"documents": [each.model_dump(by_alias=True) for each in best]}

        def judge(inputs: dict[str, Any]) -> dict[str, Any]:
            number = int(inputs["number"])
            if number not in found:
                return {"results": []}
            figures = scores(found[number], golds[number], k)
            return {"results": [{"key": key, "score": score} for key, score in figures.items()]}

        with _langsmith_errors(), redirect_stdout(sys.stderr):
            results = await aevaluate(
                retrieve,
                data=self._dataset,
                evaluators=[judge],
                experiment_prefix=f"apidesk {probe.mode}",
                metadata={"mode": probe.mode, "k": k},
                client=self._client,
            )
            await asyncio.to_thread(self._client.flush)
        if failures:
            raise failures[0]
        self.names.append(results.experiment_name)
        return [found[number] for number in range(len(self._questions))]


def _dataset(client: Client, platform: str, questions: Sequence[EvaluationQuestion]) -> UUID:
    """The dataset named for what it holds; what an interrupted upload left out is added."""
    examples = [
        {
            "inputs": {"number": n, "question": q.question},
            "reference_outputs": {"gold": list(q.gold)},
        }
        for n, q in enumerate(questions)
    ]
    held = json.dumps(examples, ensure_ascii=False, sort_keys=True).encode()
    name = f"apidesk {platform} {sha256(held).hexdigest()[:12]}"
    there: set[int] = set()
    if client.has_dataset(dataset_name=name):
        dataset = client.read_dataset(dataset_name=name)
        there = {int((e.inputs or {})["number"]) for e in client.list_examples(dataset.id)}
    else:
        dataset = client.create_dataset(name, description="Questions of `apidesk evaluate`.")
    found: UUID = dataset.id
    if missing := [e for n, e in enumerate(examples) if n not in there]:
        client.create_examples(dataset_id=found, examples=missing)
    return found


@contextmanager
def _langsmith_errors() -> Iterator[None]:
    """What LangSmith's client raises, as ApideskError."""
    try:
        yield
    except (LangSmithError, OSError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
        raise ApideskError(
            f"LangSmith failed: {first[:160]}: see LANGSMITH_ENDPOINT and LANGSMITH_API_KEY, "
            "or unset LANGSMITH_TRACING"
        ) from error
