"""Listwise reranking: the chat model reads all passages at once and writes their order.

Permutation generation of RankGPT (Sun et al., "Is ChatGPT Good at Search? Investigating Large Language
Models as Re-Ranking Agents", 2023, arXiv 2304.09542), without its sliding window: thirty passages, each
cut to the same length, fit into one prompt.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from ingestion.store.schema import embedded_text
from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts import escape_data, load_prompt
from runnables.models.chat_model import ChatModel
from runnables.models.context_window import TAG_TOKENS, reserved_output_tokens
from runnables.models.json_text import strip_thinking
from runnables.models.structured_output import (
    MAX_QUOTED_REPLY_CHARS,
    PromptVariables,
    StructuredOutputCall,
)
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.model_output import PassageOrder
from schemas.platform import PlatformInfo

MAX_QUESTION_TOKENS = 250
"""Tokens of the question; a longer one is cut and leaves room for the passages."""

MAX_PASSAGE_TOKENS = 300
"""Tokens of a passage, as in RankGPT; fewer in a small context window."""

MIN_PASSAGE_TOKENS = 40
"""Below this a passage says too little; fewer passages are shown instead."""

_SCHEMA = json.dumps(PassageOrder.model_json_schema(), ensure_ascii=False)
_NUMBER_SEQUENCE = re.compile(r"(?<![0-9])\[?[0-9]{1,3}\]?(?:[\s,>;，、；＞]+\[?[0-9]{1,3}\]?)+")
"""Numbers with only separators between them: `[2] > [1] > [3]`."""


class ListwiseReranker:
    """Asks the chat model for the order of the passages."""

    def __init__(self, step: str, model: ChatModel, platform_info: PlatformInfo) -> None:
        # A circuit breaker of its own: a model too slow to rerank in seconds may still answer.
        self._model = replace(model, output_modes=list(model.output_modes))
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            step, "rerank", platform_info.language, PassageOrder, parse_permutation
        )

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `chunks`, most relevant first, without scores. Raises ModelError."""
        question = _truncate(question, MAX_QUESTION_TOKENS)
        passages = self._passages(question, chunks)
        variables = self._variables(question, passages)
        permutation = (await self._output.ask(self._model, variables, config)).value
        indexes = [number - 1 for number in permutation.ranking if 1 <= number <= len(passages)]
        if not indexes:
            setting = self._model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply names no document of the list")
        return dict.fromkeys(indexes)

    def _passages(self, question: str, chunks: Sequence[RetrievedChunk]) -> list[str]:
        """As many chunks as the context window holds, cut to one length. Raises ModelError."""
        window = int(self._model.window / self._model.token_correction)
        prompt = load_prompt("rerank", self._platform_info.language).render(
            schema=_SCHEMA, **self._variables(question, [])
        )
        output_tokens = reserved_output_tokens(window)
        available = int(window - output_tokens - estimate_tokens(prompt))
        count = min(len(chunks), available // (MIN_PASSAGE_TOKENS + TAG_TOKENS))
        if count < 2:
            raise ModelError(f"{self._model.role.setting}: its window is too small to rerank")
        tokens = min(MAX_PASSAGE_TOKENS, available // count - TAG_TOKENS)
        return [_truncate(embedded_text(retrieved.chunk), tokens) for retrieved in chunks[:count]]

    def _variables(self, question: str, passages: list[str]) -> PromptVariables:
        return {"platform_info": self._platform_info, "question": question, "passages": passages}


def _truncate(text: str, tokens: int) -> str:
    """Truncate the escaped text, so that its length is the same in the prompt."""
    return truncate_to_tokens(escape_data(text), tokens)


def parse_permutation(text: str) -> PassageOrder | None:
    """Return the longest sequence of numbers in a reply without JSON; None if it has none."""
    sequences = [
        match[0]
        for match in _NUMBER_SEQUENCE.finditer(strip_thinking(text[:MAX_QUOTED_REPLY_CHARS]))
    ]
    if not sequences:
        return None
    return PassageOrder.model_validate({"ranking": max(sequences, key=len)})
