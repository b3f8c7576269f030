"""The reasons for which an answer is degraded: made with less than the settings ask for."""

from enum import StrEnum

from schemas.errors import ModelError


class DegradedReason(StrEnum):
    """Why an answer is degraded. The value is the code in the answer's field `degraded`.

    The first five are the codes of the ModelError with which the first chat model failed;
    `answered_by` names the model, or the extractive method, that answered instead.
    """

    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_REFUSED = "model_refused"
    MODEL_TIMEOUT = "model_timeout"
    MODEL_BUSY = "model_busy"
    MODEL_OUTPUT_INVALID = "model_output_invalid"
    QUESTION_NOT_CLASSIFIED = "question_not_classified"
    """No model could classify the question: it was answered as a general one."""
    ANSWER_INCOMPLETE = "answer_incomplete"
    """A call that refines the answer with further chunks failed: the answer does without them."""
    RESEARCH_INCOMPLETE = "research_incomplete"
    """The research with tools stopped early: the answer uses what it had found."""
    TOOLS_UNSUPPORTED = "tools_unsupported"
    """Mode `tools`, but the chat model cannot call tools: one search took their place."""
    TOOLS_UNAVAILABLE = "tools_unavailable"
    """Mode `tools`, but no chat model is configured."""

    @classmethod
    def from_error(cls, error: ModelError) -> "DegradedReason":
        """The reason for an answer that the model did not write because of `error`."""
        try:
            return cls(error.code)
        except ValueError:
            return cls.MODEL_UNAVAILABLE
