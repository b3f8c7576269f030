"""What travels from step to step: each step takes one of these and adds to it."""

from typing import TypedDict

from schemas.answer import AnswerDraft
from schemas.document import RetrievedChunk
from schemas.question import Question, StructuredQuestion


class Understood(TypedDict):
    """A question, what it is about, and what was found for it."""

    asked: Question
    structured: StructuredQuestion
    retrieved: list[RetrievedChunk]


class Evidence(Understood):
    """With the chunks that the answer may rest on; the first is number 1."""

    chunks: list[RetrievedChunk]


class Drafted(Evidence):
    """With an answer that nobody has checked yet."""

    draft: AnswerDraft
    answered_by: str
