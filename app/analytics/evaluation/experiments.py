"""Logs the results of an evaluation to LangSmith.

A LangSmith dataset contains the questions. An experiment contains the results of one retrieval route, or
the answers of one run. LangSmith can compare the experiments of a dataset. Nothing is sent unless tracing
is enabled and an API key is set, for example with LANGSMITH_TRACING=true and LANGSMITH_API_KEY.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, TypeVar
from uuid import UUID

from langsmith import Client, aevaluate
from langsmith.utils import LangSmithError, get_api_key, tracing_is_enabled

from app.analytics.evaluation.dataset import EvaluationQuestion
from schemas.errors import ApideskError

T = TypeVar("T")

LANGSMITH_TIMEOUT_MS = 20_000
"""Milliseconds to wait for a response from LangSmith."""


@dataclass(frozen=True)
class LoggedResult(Generic[T]):
    """The result of one question, with the outputs and scores that LangSmith shows."""

    value: T
    outputs: dict[str, Any]
    scores: dict[str, float]


class ExperimentLog:
    """Runs experiments on a LangSmith dataset of the questions."""

    def __init__(
        self, client: Client, dataset: UUID, questions: Sequence[EvaluationQuestion]
    ) -> None:
        self.names: list[str] = []
        """Names of the finished experiments."""
        self._client = client
        self._dataset = dataset
        self._questions = questions

    @classmethod
    async def open(
        cls, platform: str, questions: Sequence[EvaluationQuestion]
    ) -> "ExperimentLog | None":
        """Open or create the dataset of `questions`. Returns None if LangSmith is not configured.

        Raises ApideskError if LangSmith fails.
        """
        if not (tracing_is_enabled() and get_api_key(None)):
            return None
        with _langsmith_errors():
            client = Client(timeout_ms=LANGSMITH_TIMEOUT_MS)
            dataset = await asyncio.to_thread(_open_dataset, client, platform, questions)
        return cls(client, dataset, questions)

    async def run(
        self,
        name: str,
        ask: Callable[[int], Awaitable[LoggedResult[T]]],
        metadata: dict[str, Any],
        concurrency: int = 1,
    ) -> list[T]:
        """Call `ask` with the index of each question, and log the results as the experiment `name`.

        Returns the results in the order of the questions. At most `concurrency` calls run at once. Raises
        the first error of `ask`, or ApideskError if LangSmith fails.
        """
        results: dict[int, LoggedResult[T]] = {}
        failures: list[Exception] = []

        async def target(inputs: dict[str, Any]) -> dict[str, Any]:
            number = int(inputs["number"])
            try:
                results[number] = await ask(number)
            except Exception as error:
                failures.append(error)
                raise
            return results[number].outputs

        def scores(inputs: dict[str, Any]) -> dict[str, Any]:
            result = results.get(int(inputs["number"]))
            scores = result.scores if result else {}
            return {"results": [{"key": key, "score": score} for key, score in scores.items()]}

        # `aevaluate` prints to stdout, which must contain only the report.
        with _langsmith_errors(), redirect_stdout(sys.stderr):
            experiment = await aevaluate(
                target,
                data=self._dataset,
                evaluators=[scores],
                experiment_prefix=f"apidesk {name}",
                metadata=metadata,
                max_concurrency=concurrency,
                client=self._client,
            )
            await asyncio.to_thread(self._client.flush)
        if failures:
            raise failures[0]
        self.names.append(experiment.experiment_name)
        return [results[number].value for number in range(len(self._questions))]


def _open_dataset(client: Client, platform: str, questions: Sequence[EvaluationQuestion]) -> UUID:
    """Open or create the dataset, whose name includes a hash of its content, and return its id.

    If an upload was interrupted, the missing examples are added.
    """
    examples = [
        {
            "inputs": {"number": number, "question": question.question},
            "reference_outputs": question.model_dump(
                mode="json", include={"gold", "facts"}, exclude_defaults=True
            ),
        }
        for number, question in enumerate(questions)
    ]
    content = json.dumps(examples, ensure_ascii=False, sort_keys=True).encode()
    name = f"apidesk {platform} {sha256(content).hexdigest()[:12]}"
    uploaded: set[int] = set()
    if client.has_dataset(dataset_name=name):
        dataset = client.read_dataset(dataset_name=name)
        uploaded = {
            int((example.inputs or {})["number"]) for example in client.list_examples(dataset.id)
        }
    else:
        dataset = client.create_dataset(name, description="Questions of `apidesk evaluate`.")
    dataset_id: UUID = dataset.id
    if missing := [example for number, example in enumerate(examples) if number not in uploaded]:
        client.create_examples(dataset_id=dataset_id, examples=missing)
    return dataset_id


@contextmanager
def _langsmith_errors() -> Iterator[None]:
    """Convert errors of the LangSmith client, and any OSError or ValueError, to ApideskError."""
    try:
        yield
    except (LangSmithError, OSError, ValueError) as error:
        message = str(error).strip() or type(error).__name__
        first_sentence = message.splitlines()[0].split(". ")[0]
        raise ApideskError(
            f"LangSmith failed: {first_sentence[:160]}: see LANGSMITH_ENDPOINT and LANGSMITH_API_KEY, "
            "or unset LANGSMITH_TRACING"
        ) from error
