"""Groups of questions -> which of them ask for the same, by one call of a chat model."""

import json
import logging
from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig

from ingestion.language import estimate_tokens
from prompts import escape_data, load_prompt
from runnables.answer.context import MAX_OUTPUT_SHARE, OUTPUT_TOKENS, TAG_TOKENS
from runnables.deadline import with_deadline
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.retrieval.rerank_text import truncate_to_tokens
from schemas.errors import ModelError
from schemas.platform import PlatformInfo
from schemas.topics import QuestionGroup, QuestionGroups

NAME = "same_topic"

MOST_GROUPS = 120
"""Groups that a model is shown; fewer where its window is small."""

WORDINGS = 3
"""Wordings of each."""

WORDING_TOKENS = 50

SECONDS = 60.0
"""Nobody waits for it but who reads a report."""

_SCHEMA = json.dumps(QuestionGroups.model_json_schema(), ensure_ascii=False)

Wordings = Sequence[str]
"""Questions of one group, the most typical first."""

log = logging.getLogger(__name__)


class QuestionGrouper:
    """Asks the structure model, or else the chat model, which groups ask for the same."""

    def __init__(
        self, models: ChatModels, platform_info: PlatformInfo, seconds: float = SECONDS
    ) -> None:
        self._model = models.extraction_models[0]
        self._platform_info = platform_info
        self._seconds = seconds
        self._output = StructuredOutputCall(
            NAME, "same_topic", platform_info.language, QuestionGroups
        )

    async def topics(
        self, groups: Sequence[Wordings], config: RunnableConfig | None = None
    ) -> list[QuestionGroup]:
        """Topics with the numbers of their groups, counted from 1; each number stands in one at most.

        A number that no group has is left out, and nothing is said where the model fails or is late.
        Never raises.
        """
        try:
            shown = self._shown(groups[:MOST_GROUPS])
            if len(shown) < 2:
                return []
            run = with_deadline(config or {}, self._seconds)
            answered = await self._output.ask(self._model, self._variables(shown), run)
        except Exception as error:  # whatever it is, the groups stay as they are
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: no groups are joined: %s", NAME, reason)
            return []
        return answered.value.among(len(shown))

    def _shown(self, groups: Sequence[Wordings]) -> list[list[str]]:
        """The first wordings of as many of `groups` as the window holds."""
        texts = [
            [truncate_to_tokens(escape_data(w), WORDING_TOKENS) for w in group[:WORDINGS]]
            for group in groups
        ]
        room = _room(self._model, load_prompt(NAME, self._platform_info.language).render(
            schema=_SCHEMA, **self._variables([])
        ))  # fmt: skip
        shown = []
        for wordings in texts:
            room -= TAG_TOKENS + sum(map(estimate_tokens, wordings))
            if room < 0:
                break
            shown.append(wordings)
        return shown

    def _variables(self, groups: Sequence[Wordings]) -> PromptVariables:
        return {"platform_info": self._platform_info, "groups": groups}


def _room(model: ChatModel, bare: str) -> int:
    """Tokens of the model's window that are left beside its reply and the prompt without groups."""
    window = int(model.window / model.token_correction)
    reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
    return int(window - reply - estimate_tokens(bare))
