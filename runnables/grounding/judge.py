"""An answer's statements and what each cites -> a verdict on each, by one call of the judge model."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from langchain_core.runnables import RunnableConfig

from ingestion.text.language import estimate_tokens
from prompts import escape_data, load_prompt
from runnables.answer.write_answer import MAX_OUTPUT_SHARE, OUTPUT_TOKENS, TAG_TOKENS
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_judge_model
from runnables.models.concurrency import ConcurrencyLimiter
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.retrieval.rerankers import truncate_to_tokens
from runnables.run_context import child_config, named_step, with_deadline
from schemas.document import Chunk
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.model_output import Verdicts
from schemas.platform import PlatformInfo
from schemas.settings import Settings

NAME = "ground/judge"

LEAST_TOKENS = 40
"""Of a chunk; where the window holds less of each beside the statements, nothing is judged."""

_SCHEMA = json.dumps(Verdicts.model_json_schema(), ensure_ascii=False)

Statement = tuple[str, Sequence[Chunk]]
"""What an answer says, and the chunks that it cites for it."""

log = logging.getLogger(__name__)


class JudgeInput(TypedDict):
    """What a trace shows as the input."""

    statements: list[Statement]


class JudgeOutput(TypedDict):
    """What a trace shows as the output."""

    verdicts: list[bool | None] | None
    skipped: str | None
    """Why nothing was judged; None when something was."""


@dataclass(frozen=True)
class _Passage:
    """A chunk as the judge reads it."""

    text: str
    whole: bool


class Judge:
    """Asks the judge model whether statements stand in what they cite, in the time of Settings."""

    def __init__(self, model: ChatModel, platform_info: PlatformInfo, seconds: float) -> None:
        self._model = model
        self._platform_info = platform_info
        self._seconds = seconds
        self._output = StructuredOutputCall(NAME, "judge", platform_info.language, Verdicts)
        self._step = named_step(NAME, self._judge)

    async def judge(
        self, statements: Sequence[Statement], config: RunnableConfig
    ) -> list[bool | None] | None:
        """A verdict for each statement in order, or None where the judge fails or is late. Never raises.

        A verdict is None where there is none: the statement cites nothing, the model left it out or
        contradicts itself, or it says no without having read all that is cited. None is returned as
        well where there is no verdict at all; without a citation no model is asked.
        """
        if not any(cited for _, cited in statements):
            return None
        judged = await self._step.ainvoke(
            JudgeInput(statements=list(statements)), child_config(config, NAME)
        )
        return judged["verdicts"]

    async def _judge(self, given: JudgeInput, config: RunnableConfig) -> JudgeOutput:
        try:
            verdicts = await self._ask(given["statements"], with_deadline(config, self._seconds))
            return JudgeOutput(verdicts=verdicts, skipped=None)
        except Exception as error:  # whatever it is, the answer goes out
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: nothing is judged: %s", NAME, reason)
            return JudgeOutput(verdicts=None, skipped=reason)

    async def _ask(
        self, statements: Sequence[Statement], config: RunnableConfig
    ) -> list[bool | None]:
        """The verdicts in the statements' order. Raises ModelError."""
        citing = [place for place, (_, cited) in enumerate(statements) if cited]
        chunks = list({c.id: c for _, cited in statements for c in cited}.values())
        numbers = {chunk.id: number for number, chunk in enumerate(chunks, 1)}
        shown = [_shown(*statements[place], numbers) for place in citing]
        passages = self._passages(chunks, shown)
        variables = self._variables(shown, [passage.text for passage in passages])
        answered = (await self._output.ask(self._model, variables, config)).value.by_number()
        whole = {c.id for c, passage in zip(chunks, passages, strict=True) if passage.whole}
        verdicts: list[bool | None] = [None] * len(statements)
        for number, place in enumerate(citing, 1):
            supported = answered.get(number)
            complete = all(chunk.id in whole for chunk in statements[place][1])
            verdicts[place] = supported if supported or complete else None
        if verdicts.count(None) == len(verdicts):
            raise ModelOutputInvalid(f"{self._model.role.setting}: the reply judges no statement")
        return verdicts

    def _passages(self, chunks: Sequence[Chunk], shown: list[PromptVariables]) -> list[_Passage]:
        """The chunks, the longest cut to one length, so that all fit. Raises ModelError.

        Statements are never cut: a verdict on a part of one is none.
        """
        window = int(self._model.window / self._model.token_correction)
        bare = load_prompt("judge", self._platform_info.language).render(
            schema=_SCHEMA, **self._variables(shown, [])
        )
        reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
        room = int(window - reply - estimate_tokens(bare)) - TAG_TOKENS * len(chunks)
        texts = [escape_data(chunk.text) for chunk in chunks]  # as long here as in the prompt
        lengths = [estimate_tokens(text) for text in texts]
        most = _share(room, lengths)
        if most < min(LEAST_TOKENS, max(lengths)):
            raise ModelError(f"{self._model.role.setting}: its window is too small to judge")
        cuts = [truncate_to_tokens(text, most) for text in texts]
        return [_Passage(c, whole=c == text) for c, text in zip(cuts, texts, strict=True)]

    def _variables(self, shown: list[PromptVariables], passages: list[str]) -> PromptVariables:
        return {"platform_info": self._platform_info, "statements": shown, "passages": passages}


def build_judge(
    settings: Settings, platform_info: PlatformInfo, slots: ConcurrencyLimiter | None = None
) -> Judge | None:
    """The judge as Settings name it, or None where they name no judge model; its calls take `slots`.

    Raises ConfigurationError when its name or its provider cannot be used.
    """
    model = open_judge_model(settings, slots)
    return Judge(model, platform_info, settings.judge_timeout) if model else None


def _shown(text: str, cited: Sequence[Chunk], numbers: dict[str, int]) -> PromptVariables:
    """A statement as the prompt takes it."""
    documents = sorted({numbers[chunk.id] for chunk in cited})
    return {"text": text, "documents": documents}


def _share(room: int, lengths: Sequence[int]) -> int:
    """The length that all may have, so that those cut to it and the shorter ones are worth `room`.

    The longest one's where all fit.
    """
    for place, length in enumerate(shortest_first := sorted(lengths)):
        share = room // (len(shortest_first) - place)
        if length > share:
            return share
        room -= length
    return max(lengths)
