"""Joins and names question groups of the same topic with one call of a chat model."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from app.analytics.insights.gaps import (
    MIN_GAP_SIZE,
    DetectedGap,
    GapQuestion,
    group_candidates,
    select_gaps,
)
from app.analytics.insights.grouping import TextGroup
from app.analytics.insights.terms import WordShares
from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts import escape_data, load_prompt
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import ChatModels
from runnables.models.context_window import TAG_TOKENS, reserved_output_tokens
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.retrieval.query_analysis import Glossary
from runnables.run_context import with_deadline
from schemas.errors import ModelError
from schemas.model_output import QuestionGroup, QuestionGroups
from schemas.platform import PlatformInfo

PROMPT_NAME = "same_topic"

MAX_GROUPS = 120
"""Maximum number of groups in the prompt; fewer if the context window is small."""

WORDINGS_PER_GROUP = 3

WORDING_TOKENS = 50
"""Longer wordings are truncated."""

TIMEOUT_S = 60.0
"""Long, because only the reader of a report waits for the call."""

_SCHEMA = json.dumps(QuestionGroups.model_json_schema(), ensure_ascii=False)

Wordings = Sequence[str]
"""Questions of one group, the representative one first."""

log = logging.getLogger(__name__)


class QuestionGrouper:
    """Asks the structure model, or else the chat model, which groups have the same topic."""

    def __init__(
        self, models: ChatModels, platform_info: PlatformInfo, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._model = models.extraction_models[0]
        self._platform_info = platform_info
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall(
            PROMPT_NAME, "same_topic", platform_info.language, QuestionGroups
        )

    async def find_topics(
        self, groups: Sequence[Wordings], config: RunnableConfig | None = None
    ) -> list[QuestionGroup]:
        """Return topics with the 1-based numbers of their groups; a group belongs to at most one topic.

        Never raises: returns an empty list if the model fails or exceeds the timeout.
        """
        try:
            fitting = self._fit_to_window(groups[:MAX_GROUPS])
            if len(fitting) < 2:
                return []
            run = with_deadline(config or {}, self._timeout_s)
            reply = await self._output.ask(self._model, self._variables(fitting), run)
        except Exception as error:  # without topics, the groups stay as they are
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: no groups are joined: %s", PROMPT_NAME, reason)
            return []
        return reply.value.assign(len(fitting))

    def _fit_to_window(self, groups: Sequence[Wordings]) -> list[list[str]]:
        """The first wordings of as many groups as fit into the context window."""
        texts = [
            [truncate_to_tokens(escape_data(w), WORDING_TOKENS) for w in group[:WORDINGS_PER_GROUP]]
            for group in groups
        ]
        free = _free_tokens(self._model, load_prompt(PROMPT_NAME, self._platform_info.language).render(
            schema=_SCHEMA, **self._variables([])
        ))  # fmt: skip
        fitting = []
        for wordings in texts:
            free -= TAG_TOKENS + sum(map(estimate_tokens, wordings))
            if free < 0:
                break
            fitting.append(wordings)
        return fitting

    def _variables(self, groups: Sequence[Wordings]) -> PromptVariables:
        return {"platform_info": self._platform_info, "groups": groups}


def _free_tokens(model: ChatModel, empty_prompt: str) -> int:
    """Tokens left in the model's window after the reply and the prompt without groups."""
    window = int(model.window / model.token_correction)
    reply = reserved_output_tokens(window)
    return int(window - reply - estimate_tokens(empty_prompt))


async def find_gaps_with_model(
    questions: Sequence[GapQuestion],
    grouper: QuestionGrouper | None,
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
    min_size: int = MIN_GAP_SIZE,
    config: RunnableConfig | None = None,
) -> list[DetectedGap]:
    """Like `find_gaps`, but lets a chat model join and name the groups first.

    Without a `grouper`, or if its model fails, the groups are based on words and vectors alone.
    """
    groups = await asyncio.to_thread(
        group_candidates, questions, vectors, documented=documented, glossary=glossary
    )
    if grouper:
        # The sort is stable: the largest groups stay first.
        groups.sort(key=lambda each: _is_off_topic(each, questions))
        topics = await grouper.find_topics([_wordings(each, questions) for each in groups], config)
        groups = join_groups(groups, topics)
    return select_gaps(groups, questions, documented=documented, min_size=min_size)


def join_groups(groups: Sequence[TextGroup], topics: Sequence[QuestionGroup]) -> list[TextGroup]:
    """Join and name `groups` according to `topics`, whose group numbers start at 1."""
    named = {number for topic in topics for number in topic.groups}
    rest = [each for number, each in enumerate(groups, 1) if number not in named]
    return [
        _join_parts([groups[n - 1] for n in topic.groups], topic.name) for topic in topics
    ] + rest


def _join_parts(parts: Sequence[TextGroup], name: str) -> TextGroup:
    """Join `parts` into one group named `name`."""
    largest = max(parts, key=lambda part: len(part.members))
    # The terms of a group with a single question are not shared by questions.
    shared = [part.undocumented for part in parts if len(part.members) > 1 or len(parts) == 1]
    return replace(
        largest,
        members=tuple(sorted(member for part in parts for member in part.members)),
        undocumented=tuple(dict.fromkeys(word for words in shared for word in words)),
        name=name,
    )


def _is_off_topic(group: TextGroup, questions: Sequence[GapQuestion]) -> bool:
    return all(questions[member].type == "unknown" for member in group.members)


def _wordings(group: TextGroup, questions: Sequence[GapQuestion]) -> list[str]:
    """Distinct texts of the group, the representative one first."""
    members = [group.representative, *group.members]
    return list(dict.fromkeys(questions[member].text for member in members))
