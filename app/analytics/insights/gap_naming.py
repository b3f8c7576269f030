"""Groups of questions -> which of them ask for the same, by one call of a chat model.
Gaps with the help of a chat model: it joins what words alone keep apart, and names it.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from app.analytics.insights.gaps import SMALLEST, DetectedGap, GapQuestion, gaps_of, group_suspects
from app.analytics.insights.grouping import TextGroup
from app.analytics.insights.terms import WordShares
from ingestion.text.language import estimate_tokens
from prompts import escape_data, load_prompt
from runnables.answer.write_answer import MAX_OUTPUT_SHARE, OUTPUT_TOKENS, TAG_TOKENS
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import ChatModels
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.retrieval.query_analysis import Glossary
from runnables.retrieval.rerankers import truncate_to_tokens
from runnables.run_context import with_deadline
from schemas.errors import ModelError
from schemas.model_output import QuestionGroup, QuestionGroups
from schemas.platform import PlatformInfo

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


async def find_joined_gaps(
    questions: Sequence[GapQuestion],
    same_topic: QuestionGrouper | None,
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
    smallest: int = SMALLEST,
    config: RunnableConfig | None = None,
) -> list[DetectedGap]:
    """As `find_gaps`, after one call of a model that joins and names groups.

    Without `same_topic`, or where its model fails, the groups are those that words make.
    """
    groups = await asyncio.to_thread(
        group_suspects, questions, vectors, documented=documented, glossary=glossary
    )
    if same_topic:
        groups.sort(key=lambda each: _is_refused(each, questions))  # stable: the largest stay first
        topics = await same_topic.topics([_wordings(each, questions) for each in groups], config)
        groups = join(groups, topics)
    return gaps_of(groups, questions, documented=documented, smallest=smallest)


def join(groups: Sequence[TextGroup], topics: Sequence[QuestionGroup]) -> list[TextGroup]:
    """`groups`, joined and named as `topics` say, whose numbers count `groups` from 1, each once."""
    named = {number for topic in topics for number in topic.groups}
    rest = [each for number, each in enumerate(groups, 1) if number not in named]
    return [_joined([groups[n - 1] for n in topic.groups], topic.name) for topic in topics] + rest


def _joined(parts: Sequence[TextGroup], name: str) -> TextGroup:
    """One group of all `parts`. A word of a single question is not one that questions share."""
    largest = max(parts, key=lambda part: len(part.members))
    shared = [part.undocumented for part in parts if len(part.members) > 1 or len(parts) == 1]
    return replace(
        largest,
        members=tuple(sorted(member for part in parts for member in part.members)),
        undocumented=tuple(dict.fromkeys(word for words in shared for word in words)),
        name=name,
    )


def _is_refused(found: TextGroup, questions: Sequence[GapQuestion]) -> bool:
    return all(questions[member].type == "unknown" for member in found.members)


def _wordings(found: TextGroup, questions: Sequence[GapQuestion]) -> list[str]:
    """Its questions, each wording once, the typical one first."""
    members = [found.typical, *found.members]
    return list(dict.fromkeys(questions[member].text for member in members))
