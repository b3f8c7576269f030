"""The judge: asks a model, in one call, which statements are supported by the chunks that they cite."""

import logging
from collections.abc import Sequence
from typing import TypedDict

from langchain_core.runnables import RunnableConfig

from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts.chat_prompts import escape_data
from runnables.models.chat_model import ChatModel, ConcurrencyLimiter
from runnables.models.chat_models import open_judge_model
from runnables.models.context_window import TAG_TOKENS, count_prompt_tokens, reserved_output_tokens
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.run_context import NamedStep, child_config, with_deadline
from schemas.document import Chunk
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.model_output import Verdicts
from schemas.platform import PlatformInfo
from schemas.settings import Settings

RUN_NAME = "ground/judge"

MIN_PASSAGE_TOKENS = 40
"""Minimum number of tokens to which chunks are truncated.

If the prompt is still too long, nothing is judged.
"""

Statement = tuple[str, Sequence[Chunk]]
"""A statement of an answer and the chunks that it cites."""

log = logging.getLogger(__name__)


class JudgeInput(TypedDict):
    """Input of the judge, as traces show it."""

    statements: list[Statement]


class JudgeOutput(TypedDict):
    """Output of the judge, as traces show it."""

    verdicts: list[bool | None] | None
    skipped: str | None
    """Why there are no verdicts; None if there are any."""


class Judge:
    """Asks the judge model, within a timeout, whether statements follow from the chunks that they cite."""

    def __init__(self, model: ChatModel, platform_info: PlatformInfo, timeout_s: float) -> None:
        self._model = model
        self._platform_info = platform_info
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall(RUN_NAME, "judge", platform_info.language, Verdicts)
        self._step = NamedStep(self._run, RUN_NAME)

    async def judge(
        self, statements: Sequence[Statement], config: RunnableConfig
    ) -> list[bool | None] | None:
        """Return a verdict for each statement, or None if the judge fails or times out. Never raises.

        A verdict is true if the cited chunks support the statement, and None if the statement cannot be
        judged, for example because it cites nothing. If no statement cites anything, the result is None,
        and the model is not called.
        """
        if not any(cited for _, cited in statements):
            return None
        output = await self._step.ainvoke(
            JudgeInput(statements=list(statements)), child_config(config, RUN_NAME)
        )
        return output["verdicts"]

    async def _run(self, step_input: JudgeInput, config: RunnableConfig) -> JudgeOutput:
        try:
            verdicts = await self._ask(
                step_input["statements"], with_deadline(config, self._timeout_s)
            )
            return JudgeOutput(verdicts=verdicts, skipped=None)
        except Exception as error:  # the answer is returned without verdicts
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: no verdicts: %s", RUN_NAME, reason)
            return JudgeOutput(verdicts=None, skipped=reason)

    async def _ask(
        self, statements: Sequence[Statement], config: RunnableConfig
    ) -> list[bool | None]:
        """Return the verdicts in the order of the statements. Raises ModelError."""
        with_citations = [index for index, (_, cited) in enumerate(statements) if cited]
        chunks = list({chunk.id: chunk for _, cited in statements for chunk in cited}.values())
        numbers = {chunk.id: number for number, chunk in enumerate(chunks, 1)}
        prompt_statements: list[PromptVariables] = [
            {"text": text, "documents": sorted({numbers[chunk.id] for chunk in cited})}
            for text, cited in statements
            if cited
        ]
        passages = self._passages(chunks, prompt_statements)
        variables = self._variables(prompt_statements, list(passages.values()))
        output = await self._output.ask(self._model, variables, config)
        supported_by_number = output.value.by_number()
        verdicts: list[bool | None] = [None] * len(statements)
        for number, index in enumerate(with_citations, 1):
            supported = supported_by_number.get(number)
            is_fully_shown = all(
                passages[chunk.id] == escape_data(chunk.text) for chunk in statements[index][1]
            )
            # A rejection counts only if the model has seen all cited text.
            verdicts[index] = supported if supported or is_fully_shown else None
        if verdicts.count(None) == len(verdicts):
            raise ModelOutputInvalid(
                f"{self._model.role.setting}: the reply contains no usable verdict"
            )
        return verdicts

    def _passages(
        self, chunks: Sequence[Chunk], prompt_statements: list[PromptVariables]
    ) -> dict[str, str]:
        """Return the escaped texts by chunk id; the longest are truncated to fit the window.

        Raises ModelError if texts would have to be truncated to fewer than `MIN_PASSAGE_TOKENS` tokens.
        Statements are never truncated, because a verdict on part of a statement would be meaningless.
        """
        window = int(self._model.window / self._model.token_correction)
        prompt = self._output.messages(self._variables(prompt_statements, []))
        output_tokens = reserved_output_tokens(window)
        overhead = count_prompt_tokens(prompt) + TAG_TOKENS * len(chunks)
        # Escape before measuring, because escaping changes the length.
        texts = [escape_data(chunk.text) for chunk in chunks]
        lengths = [estimate_tokens(text) for text in texts]
        max_tokens = _max_length_per_text(int(window - output_tokens - overhead), lengths)
        if max_tokens < min(MIN_PASSAGE_TOKENS, max(lengths)):
            raise ModelError(
                f"{self._model.role.setting}: its context window is too small to judge the answer"
            )
        return {
            chunk.id: truncate_to_tokens(text, max_tokens)
            for chunk, text in zip(chunks, texts, strict=True)
        }

    def _variables(
        self, prompt_statements: list[PromptVariables], passages: list[str]
    ) -> PromptVariables:
        return {
            "platform_info": self._platform_info,
            "statements": prompt_statements,
            "passages": passages,
        }


def build_judge(
    settings: Settings, platform_info: PlatformInfo, limiter: ConcurrencyLimiter | None = None
) -> Judge | None:
    """Return the judge that `settings` configure, or None if they name no judge model.

    `limiter` limits the concurrent calls to the judge model. Raises ConfigurationError if the model's name
    or provider is invalid.
    """
    model = open_judge_model(settings, limiter)
    return Judge(model, platform_info, settings.judge_timeout) if model else None


def _max_length_per_text(available: int, lengths: Sequence[int]) -> int:
    """Return the largest length to which texts can be truncated so that their total fits `available`.

    `lengths` are the lengths of the texts. If all texts fit, the result is the length of the longest text.
    """
    ascending = sorted(lengths)
    for index, length in enumerate(ascending):
        share = available // (len(ascending) - index)
        if length > share:
            return share
        available -= length
    return max(lengths)
