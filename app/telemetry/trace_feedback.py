"""Sends the ratings of answers to LangSmith, as feedback on their traces."""

import logging
from functools import cached_property
from uuid import UUID, uuid5

from langsmith import Client
from langsmith.utils import get_tracer_project

from schemas.insights import Feedback

FEEDBACK_KEY = "user_rating"
"""Name of the feedback: 1 is helpful, 0 is not helpful."""

log = logging.getLogger(__name__)


class FeedbackSender:
    """Sends ratings. A second rating of an answer replaces the first one."""

    def __init__(self, client: Client, with_comments: bool) -> None:
        self._client = client
        self._with_comments = with_comments

    def send(self, answer_id: UUID, feedback: Feedback) -> None:
        """Send a rating, or delete it if its score is 0. Blocks; a failure is only logged."""
        feedback_id = uuid5(answer_id, FEEDBACK_KEY)
        try:
            if feedback.score == 0:
                self._client.delete_feedback(feedback_id)
                return
            self._client.create_feedback(
                trace_id=answer_id,
                key=FEEDBACK_KEY,
                score=max(feedback.score, 0),
                comment=feedback.comment or None if self._with_comments else None,
                feedback_id=feedback_id,
                session_id=self._project_id,
            )
        except Exception as error:  # the rating itself is stored
            log.warning("a rating was not sent to LangSmith: %s", type(error).__name__)

    @cached_property
    def _project_id(self) -> UUID:
        project_id: UUID = self._client.read_project(project_name=get_tracer_project()).id
        return project_id
