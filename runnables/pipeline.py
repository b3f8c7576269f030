"""The pipeline: how a question becomes an answer. Read this first."""

from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
)

from runnables.state import Classification, PipelineState
from schemas.answer import Answer
from schemas.document import RetrievedChunk
from schemas.question import Question


def build_pipeline(
    *,
    condense: Runnable[Question, Question],
    acknowledge: Runnable[Question, Answer],
    structured_question: Runnable[Question, Classification],
    retrieve: Runnable[Question, list[RetrievedChunk]],
    refuse: Runnable[PipelineState, Answer],
    gather: Runnable[PipelineState, PipelineState],
    answer: Runnable[PipelineState, PipelineState],
    ground: Runnable[PipelineState, Answer],
) -> Runnable[Question, Answer]:
    """Compose the steps.

    A follow-up is condensed into a question that stands by itself. Retrieval runs beside
    classification; an off-topic question stops there. What else the answer may rest on is gathered
    by rules or, where a caller asks for it, by a model with tools.
    """
    understood = RunnableParallel(
        question=RunnablePassthrough(name="question"),
        classification=structured_question,
        retrieved=retrieve,
    ).with_config(run_name="understand")
    respond: Runnable[PipelineState, Answer] = RunnableSequence(
        gather, answer, ground, name="respond"
    )
    gate: Runnable[PipelineState, Answer] = RunnableBranch((is_off_topic, refuse), respond)
    inquiry: Runnable[Question, Answer] = RunnableSequence(
        understood, gate.with_config(run_name="gate"), name="inquiry"
    )
    turn: Runnable[Question, Answer] = RunnableBranch((is_small_talk, acknowledge), inquiry)
    return RunnableSequence(condense, turn.with_config(run_name="turn"), name="ask")


# What is asynchronous runs on the loop; LangChain would send a plain function to a thread.
async def is_small_talk(question: Question) -> bool:
    """Whether a follow-up asks nothing."""
    return question.small_talk


async def is_off_topic(understood: PipelineState) -> bool:
    """Whether the question is not about this platform."""
    return understood["classification"].structured.type == "unknown"
