"""Joins groups of questions that have the same topic, and names the topics, with a chat model."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from app.analytics.insights.grouping import TextGroup
from ingestion.text.language import estimate_tokens, truncate_to_tokens
from prompts.chat_prompts import escape_data
from runnables.models.chat_models import ChatModels
from runnables.models.context_window import TAG_TOKENS, count_prompt_tokens, reserved_output_tokens
from runnables.models.structured_output import PromptVariables, StructuredOutputCall
from runnables.run_context import with_deadline
from schemas.errors import ModelError
from schemas.model_output import QuestionTopic, QuestionTopics
from schemas.platform import PlatformInfo

PROMPT_NAME = "same_topic"

MAX_GROUPS = 120
"""Maximum number of groups in the prompt; fewer if the context window is small."""

WORDINGS_PER_GROUP = 3
"""Maximum number of wordings (texts of questions) per group in the prompt."""

WORDING_TOKENS = 50
"""Maximum length of a wording in the prompt, in tokens; longer wordings are truncated."""

TIMEOUT_S = 60.0
"""Seconds to wait for the model. A report may take longer than an answer."""

Wordings = Sequence[str]
"""The texts of one group's questions. The most typical one (`TextGroup.representative`) comes first."""

log = logging.getLogger(__name__)


class TopicFinder:
    """Asks a model which groups have the same topic.

    The model is APIDESK_STRUCTURE_MODEL if it is set, otherwise APIDESK_CHAT_MODEL.
    """

    def __init__(
        self, models: ChatModels, platform_info: PlatformInfo, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._model = models.extraction_models[0]
        self._platform_info = platform_info
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall(
            PROMPT_NAME, "same_topic", platform_info.language, QuestionTopics
        )

    async def find_topics(self, groups: Sequence[Wordings]) -> list[QuestionTopic]:
        """Return topics with the 1-based numbers of their groups; a group belongs to at most one topic.

        The list is empty if fewer than two groups fit into the prompt. It is also empty if the model fails
        or exceeds the timeout; the failure is only logged.
        """
        try:
            fitting = self._fit_to_window(groups[:MAX_GROUPS])
            if len(fitting) < 2:
                return []
            config = with_deadline({}, self._timeout_s)
            reply = await self._output.ask(self._model, self._variables(fitting), config)
        except Exception as error:  # without topics, the groups stay as they are
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: no groups are joined: %s", PROMPT_NAME, reason)
            return []
        return reply.value.assign(len(fitting))

    def _fit_to_window(self, groups: Sequence[Wordings]) -> list[list[str]]:
        """Return the first wordings of as many groups as fit into the context window."""
        texts = [
            [
                truncate_to_tokens(escape_data(wording), WORDING_TOKENS)
                for wording in group[:WORDINGS_PER_GROUP]
            ]
            for group in groups
        ]
        empty_prompt = self._output.messages(self._variables([]))
        window = int(self._model.window / self._model.token_correction)
        free = window - reserved_output_tokens(window) - count_prompt_tokens(empty_prompt)
        fitting = []
        for wordings in texts:
            free -= TAG_TOKENS + sum(map(estimate_tokens, wordings))
            if free < 0:
                break
            fitting.append(wordings)
        return fitting

    def _variables(self, groups: Sequence[Wordings]) -> PromptVariables:
        return {"platform_info": self._platform_info, "groups": groups}


def join_groups(groups: Sequence[TextGroup], topics: Sequence[QuestionTopic]) -> list[TextGroup]:
    """Join and name `groups` according to `topics`. Groups without a topic follow unchanged.

    The group numbers in `topics` start at 1.
    """
    named = {number for topic in topics for number in topic.groups}
    rest = [group for number, group in enumerate(groups, 1) if number not in named]
    joined = [
        _join([groups[number - 1] for number in topic.groups], topic.name) for topic in topics
    ]
    return joined + rest


def _join(groups: Sequence[TextGroup], name: str) -> TextGroup:
    largest = max(groups, key=lambda group: len(group.members))
    # `undocumented` contains the words that the questions of a group share. The words of a single question
    # are shared by no other question, so they are left out unless its group is the only one.
    shared = [g.undocumented for g in groups if len(g.members) > 1 or len(groups) == 1]
    return replace(
        largest,
        members=tuple(sorted(member for group in groups for member in group.members)),
        undocumented=tuple(dict.fromkeys(word for words in shared for word in words)),
        name=name,
    )
