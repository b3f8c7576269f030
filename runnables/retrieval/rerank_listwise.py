"""Reranking by the chat model, listwise: it reads all passages at once and writes their order.

The permutation generation of RankGPT (Sun et al., "Is ChatGPT Good at Search? Investigating Large
Language Models as Re-Ranking Agents", 2023, arXiv 2304.09542), without its sliding window: thirty
passages, each cut to the same length, fit one prompt.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from ingestion.collection_schema import embedded_text
from ingestion.language import estimate_tokens
from prompts import escape_data, load_prompt
from runnables.answer.context import MAX_OUTPUT_SHARE, OUTPUT_TOKENS, TAG_TOKENS
from runnables.models.chat_model import ChatModel
from runnables.models.json_text import without_thinking
from runnables.models.structured_output import SHOWN, PromptVariables, StructuredOutputCall
from runnables.retrieval.rerank_text import QUESTION_TOKENS, truncate_to_tokens
from schemas.document import RetrievedChunk
from schemas.errors import ModelError, ModelOutputInvalid
from schemas.platform import PlatformInfo
from schemas.rerank import PassageOrder

PASSAGE_TOKENS = 300
"""Of a chunk, as in RankGPT; fewer where the window is small."""

LEAST_TOKENS = 40
"""Below that a passage tells nothing; then fewer passages are shown instead."""

_SCHEMA = json.dumps(PassageOrder.model_json_schema(), ensure_ascii=False)
_RUN = re.compile(r"(?<![0-9])\[?[0-9]{1,3}\]?(?:[\s,>;，、；＞]+\[?[0-9]{1,3}\]?)+")
"""Numbers with nothing but separators between them: `[2] > [1] > [3]`."""


class ListwiseReranker:
    """Asks the chat model for the order of a question's passages."""

    def __init__(self, step: str, model: ChatModel, platform_info: PlatformInfo) -> None:
        # A circuit of its own: what is too slow to rerank in a few seconds may answer all the same.
        self._model = replace(model, modes=list(model.modes))
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            step, "rerank", platform_info.language, PassageOrder, permutation_of_text
        )

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Places in `chunks`, the most relevant first, without scores. Raises ModelError."""
        question = _beginning(question, QUESTION_TOKENS)
        passages = self._passages(question, chunks)
        variables = self._variables(question, passages)
        permutation = (await self._output.ask(self._model, variables, config)).value
        places = [number - 1 for number in permutation.ranking if 1 <= number <= len(passages)]
        if not places:
            setting = self._model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply names no document that there is")
        return dict.fromkeys(places)

    def _passages(self, question: str, chunks: Sequence[RetrievedChunk]) -> list[str]:
        """As many of `chunks` as the window holds, all cut to one length. Raises ModelError."""
        window = int(self._model.window / self._model.token_correction)
        bare = load_prompt("rerank", self._platform_info.language).render(
            schema=_SCHEMA, **self._variables(question, [])
        )
        reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
        room = int(window - reply - estimate_tokens(bare))
        shown = min(len(chunks), room // (LEAST_TOKENS + TAG_TOKENS))
        if shown < 2:
            raise ModelError(f"{self._model.role.setting}: its window is too small to rerank")
        tokens = min(PASSAGE_TOKENS, room // shown - TAG_TOKENS)
        return [_beginning(embedded_text(each.chunk), tokens) for each in chunks[:shown]]

    def _variables(self, question: str, passages: list[str]) -> PromptVariables:
        return {"platform_info": self._platform_info, "question": question, "passages": passages}


def _beginning(text: str, tokens: int) -> str:
    """The beginning of `text`, as long in the prompt as it is here: what `data` changes is longer."""
    return truncate_to_tokens(escape_data(text), tokens)


def permutation_of_text(text: str) -> PassageOrder | None:
    """The longest run of numbers in a reply without JSON; prose with numbers in it is none."""
    runs = [found[0] for found in _RUN.finditer(without_thinking(text[:SHOWN]))]
    return PassageOrder.model_validate({"ranking": max(runs, key=len)}) if runs else None
