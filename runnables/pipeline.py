"""The pipeline that turns a question into an answer. Start reading here.

These are the runs of one question, in the order and with the names that a trace shows. Runs in
brackets are optional; the settings or the caller enable them.

    ask
      condense                     follow-up -> standalone question
      route-small-talk
        acknowledge                small talk gets a fixed reply, or:
        answer-question
          classify-and-retrieve    in parallel
            structured-question    what the question is about
            retrieve               the k best chunks
              [retrieve/rerank]
          route-off-topic
            refuse                 an off-topic question gets a fixed reply, or:
            respond
              expand-query         retrieve again with terms in the documents' language
              boost-named-api      chunks of the API that the question names come first
              [research]           mode `tools`: a model looks up more
              answer-or-quote
                write-answer
                  add-evidence     the next best chunks, up to a number of tokens
                  [web]            pages from the web
                  answer           one model call or, in parts, several
                                   if every model fails: classify by rules, boost, quote
              ground               citations, links and facts are checked
                [ground/judge]

Without a chat model, `structured-question` uses rules, and `answer` quotes passages instead of
`answer-or-quote`. `runnables/factory.py` builds the steps from the settings.
"""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
)

from runnables.answer.fixed_answers import build_answer_or_quote
from runnables.state import Classification, PipelineState
from schemas.answer import Answer
from schemas.document import RetrievedChunk
from schemas.question import Question

StateStep = Runnable[PipelineState, PipelineState]


@dataclass(frozen=True, kw_only=True)
class AnswerSteps:
    """The steps that draft an answer from the chunks."""

    quote: StateStep
    """Quotes passages; answers where there is no model, or where every model fails."""
    decline: StateStep
    """Drafts an answer that says that the documents do not answer the question; used by the fallback."""
    add_evidence: StateStep
    """Adds the next best chunks, which only a model reads."""
    search_web: StateStep | None = None
    """Adds pages from the web; None without web search."""
    write: StateStep | None = None
    """Lets a model write the answer; None without a chat model."""
    classify_by_rules: Runnable[Question, Classification] | None = None
    """Classifies without a model if all models failed; None if a model failure is an error."""


@dataclass(frozen=True, kw_only=True)
class PipelineSteps:
    """All steps of the pipeline."""

    condense: Runnable[Question, Question]
    """Rewrites a follow-up as a standalone question, and marks small talk."""
    acknowledge: Runnable[Question, Answer]
    """Replies to small talk."""
    classify: Runnable[Question, Classification]
    """Extracts what the question is about."""
    retrieve: Runnable[Question, list[RetrievedChunk]]
    """Returns the k best chunks, reranked if the settings name a reranker."""
    refuse: Runnable[PipelineState, Answer]
    """Replies to an off-topic question."""
    expand_query: StateStep
    """Retrieves again with search terms in the documents' language, where that helps."""
    boost_named_api: StateStep
    """Sets `chunks`, starting with the chunks of the API that the question names."""
    research: StateStep | None = None
    """Lets a model look up more chunks with tools; None outside mode `tools`."""
    answer: AnswerSteps
    """The steps that draft an answer from the chunks."""
    ground: Runnable[PipelineState, Answer]
    """Checks the citations, links and facts of the draft and, if the settings name a judge, its support."""


def build_pipeline(steps: PipelineSteps) -> Runnable[Question, Answer]:
    """Compose `steps` as shown at the top of this module."""
    classify_and_retrieve = RunnableParallel(
        question=RunnablePassthrough(name="question"),
        classification=steps.classify,
        retrieved=steps.retrieve,
    ).with_config(run_name="classify-and-retrieve")
    respond: Runnable[PipelineState, Answer] = _sequence(
        "respond",
        steps.expand_query,
        steps.boost_named_api,
        steps.research,
        _build_answer(steps),
        steps.ground,
    )
    route_off_topic: Runnable[PipelineState, Answer] = RunnableBranch(
        (is_off_topic, steps.refuse), respond
    ).with_config(run_name="route-off-topic")
    answer_question: Runnable[Question, Answer] = RunnableSequence(
        classify_and_retrieve, route_off_topic, name="answer-question"
    )
    route_small_talk: Runnable[Question, Answer] = RunnableBranch(
        (is_small_talk, steps.acknowledge), answer_question
    ).with_config(run_name="route-small-talk")
    return RunnableSequence(steps.condense, route_small_talk, name="ask")


def _build_answer(steps: PipelineSteps) -> StateStep:
    answer = steps.answer
    if answer.write is None:
        return answer.quote
    write_answer: StateStep = _sequence(
        "write-answer", answer.add_evidence, answer.search_web, answer.write
    )
    if answer.classify_by_rules is None:
        return write_answer
    return build_answer_or_quote(
        write_answer=write_answer,
        classify_by_rules=answer.classify_by_rules,
        boost_named_api=steps.boost_named_api,
        quote=answer.quote,
        decline=answer.decline,
    )


def _sequence(name: str, *steps: Runnable[Any, Any] | None) -> Runnable[Any, Any]:
    """Return the sequence of all `steps` that are not None."""
    return RunnableSequence(*(step for step in steps if step is not None), name=name)


# Asynchronous, because LangChain would run a plain function in a thread.
async def is_small_talk(question: Question) -> bool:
    """Return whether the question is small talk, such as thanks or a greeting."""
    return question.small_talk


async def is_off_topic(state: PipelineState) -> bool:
    """Return whether the question is not about this platform."""
    return state["classification"].structured.type == "unknown"
