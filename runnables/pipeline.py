"""The pipeline: how a question becomes an answer. Read this first."""

from typing import cast

from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableParallel,
    RunnablePassthrough,
)

from runnables.state import Classified, Drafted, Evidence, Understood
from schemas.answer import Answer
from schemas.document import RetrievedChunk
from schemas.question import Question


def build_pipeline(
    *,
    structured_question: Runnable[Question, Classified],
    retrieve: Runnable[Question, list[RetrievedChunk]],
    refuse: Runnable[Understood, Answer],
    widen: Runnable[Understood, Understood],
    focus: Runnable[Understood, Evidence],
    answer: Runnable[Evidence, Drafted],
    ground: Runnable[Drafted, Answer],
) -> Runnable[Question, Answer]:
    """Compose the steps. Retrieval runs beside classification; an off-topic question stops there."""
    understood = RunnableParallel(
        asked=RunnablePassthrough(), classified=structured_question, retrieved=retrieve
    ).with_config(run_name="understand")
    answered = widen | focus | answer | ground
    gated: Runnable[Understood, Answer] = RunnableBranch((is_off_topic, refuse), answered)
    return (cast(Runnable[Question, Understood], understood) | gated).with_config(run_name="ask")


def is_off_topic(understood: Understood) -> bool:
    """Whether the question is not about this platform."""
    return understood["classified"].structured.type == "unknown"
