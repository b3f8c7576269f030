"""The pipeline that turns a question into an answer. Start reading here.

These are the runs of one question, in the order and with the names that a trace shows. Runs in
brackets depend on the question, on the settings or on the caller.

    ask
      [condense]               rewrites a follow-up as a standalone question
                               Small talk gets a fixed reply, which ends the run.
      structured-question      classifies the question, in parallel with `retrieve`
      retrieve                 finds the `k` best chunks; `k` is a field of the question
        [retrieve/rerank]
                               An off-topic question gets a fixed reply, which ends the run. If rules
                               estimate that it may still be on topic, the reply says instead that the
                               documents do not cover it, and names the nearest pages. Only `ground` runs
                               after this reply.
      [expand-query]           searches for the terms that the model wrote for the question
      boost-named-api          selects between versions of a page, then moves the chunks of the API that the
                               question names to the top
      [research]               in mode `tools`: a chat model looks up further chunks
      [web]                    with a chat model: adds pages from the web
                               With a chat model, the next best chunks are added, up to a total of
                               APIDESK_EVIDENCE_TOKENS.
      answer                   with a chat model: one call, or several if a second model structures the
                               answer or the chunks are read in parts;
                               without one, or if every model fails: quotes from the documents
                               If no model could classify the question either, rules classify it and
                               `boost-named-api` runs again before the quotes are chosen.
      ground                   checks citations, links and facts
        [ground/judge]

Each model call is a child run of its step, such as `answer/model`. Steps that would not help the reader of
a trace are not runs.

`runnables/factory.py` builds the steps from the settings.
"""

import asyncio
from dataclasses import dataclass

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.classification.topic_gate import CLEARLY_OFF_TOPIC
from runnables.conversation.small_talk import is_small_talk
from runnables.run_context import NamedStep
from runnables.state import (
    AnswerFunction,
    Classification,
    PipelineState,
    StateFunction,
    StateStep,
    mark_degraded,
)
from schemas.answer import Answer, DegradedReason
from schemas.document import RetrievedChunk
from schemas.errors import ModelError
from schemas.question import Question


@dataclass(frozen=True, kw_only=True)
class PipelineSteps:
    """All steps of the pipeline."""

    condense: Runnable[Question, Question]
    """Rewrites a follow-up as a standalone question, and marks small talk."""
    acknowledge: AnswerFunction[Question]
    """Returns the fixed reply to small talk."""
    classify: Runnable[Question, Classification]
    """Classifies the question, and extracts the API, parameters and errors that it names."""
    retrieve: Runnable[Question, list[RetrievedChunk]]
    """Returns the `k` best chunks (reranked if there is a reranker), followed by the next best ones."""
    refuse: AnswerFunction[PipelineState]
    """Returns the fixed reply to a question that is clearly off-topic."""
    expand_query: StateFunction
    """Adds the results of the search terms of the classification."""
    boost_named_api: StateStep
    """Sets `chunks`, starting with the chunks of the API that the question names."""
    research: StateStep | None = None
    """Lets a model look up more chunks with tools; None outside mode `tools` or without a chat model."""
    search_web: StateFunction | None = None
    """Adds pages from the web; None without web search or without a chat model."""
    add_evidence: StateFunction
    """Adds the next best chunks before a model writes the answer."""
    write: StateStep | None = None
    """Drafts an answer with a model; None without a chat model."""
    classify_by_rules: Runnable[Question, Classification] | None = None
    """Classifies by rules if no model could; None if the settings make a failure of all models an error."""
    quote: StateStep
    """Drafts an answer from quoted passages; used without a model, or if every model fails."""
    decline: StateFunction
    """Drafts the reply that the documents do not cover the question."""
    ground: Runnable[PipelineState, Answer]
    """Checks the citations, links and facts of the draft, and whether the cited chunks support it."""


def build_pipeline(steps: PipelineSteps) -> Runnable[Question, Answer]:
    """Return the runnable `ask`, which calls `steps` as shown at the top of this module."""
    draft_answer = _build_draft_answer(steps)

    async def ask(question: Question, config: RunnableConfig) -> Answer:
        if question.history:
            question = await steps.condense.ainvoke(question, config)
        if question.small_talk or is_small_talk(question.text):
            return await steps.acknowledge(question, config)
        classification, retrieved = await asyncio.gather(
            steps.classify.ainvoke(question, config),
            steps.retrieve.ainvoke(question, config),
            return_exceptions=True,  # wait for both: no run may end after its parent
        )
        if isinstance(classification, BaseException):
            raise classification
        if isinstance(retrieved, BaseException):
            raise retrieved
        state = PipelineState(
            question=question,
            classification=classification,
            retrieved=retrieved[: question.k],
            further=retrieved[question.k :],
        )
        if classification.structured.type == "unknown":
            return await _answer_off_topic(steps, state, config)
        state = await steps.expand_query(state, config)
        state = await steps.boost_named_api.ainvoke(state, config)
        if steps.research is not None:
            state = await steps.research.ainvoke(state, config)
        state = await draft_answer(state, config)
        return await steps.ground.ainvoke(state, config)

    return NamedStep(ask, "ask")


async def _answer_off_topic(
    steps: PipelineSteps, state: PipelineState, config: RunnableConfig
) -> Answer:
    """Return the reply to an off-topic question.

    The question is refused if its probability of being on topic is below `CLEARLY_OFF_TOPIC`. Otherwise,
    the reply says that the documents do not cover it, and names the nearest pages.
    """
    if (state["classification"].on_topic or 0.0) < CLEARLY_OFF_TOPIC:
        return await steps.refuse(state, config)
    state = await steps.decline({**state, "chunks": state["retrieved"]}, config)
    return await steps.ground.ainvoke(state, config)


def _build_draft_answer(steps: PipelineSteps) -> StateFunction:
    write, classify_by_rules = steps.write, steps.classify_by_rules
    if write is None:
        return steps.quote.ainvoke

    async def draft_answer(state: PipelineState, config: RunnableConfig) -> PipelineState:
        extended = state  # the fallback uses `state`, without the chunks that are added for a model
        try:
            if steps.search_web is not None:
                extended = await steps.search_web(extended, config)
            extended = await steps.add_evidence(extended, config)
            return await write.ainvoke(extended, config)
        except ModelError as error:
            if classify_by_rules is None:  # the settings make a failure of all models an error
                raise
            quoted = await _answer_without_model(steps, classify_by_rules, state, config)
            return mark_degraded(quoted, DegradedReason.from_error(error))

    return draft_answer


async def _answer_without_model(
    steps: PipelineSteps,
    classify_by_rules: Runnable[Question, Classification],
    state: PipelineState,
    config: RunnableConfig,
) -> PipelineState:
    """Return `state` with a draft from `quote`, because all models failed.

    If no model could classify the question either, rules classify it first. If they find it off-topic,
    `decline` drafts the answer instead. The reasons are in docs/decisions/0003-model-failure.md.
    """
    if (degraded := state["classification"].degraded) is not None:
        structured = (await classify_by_rules.ainvoke(state["question"], config)).structured
        if structured.type == "unknown":
            return await steps.decline(state, config)
        state = {**state, "classification": Classification(structured, degraded)}
        state = await steps.boost_named_api.ainvoke(state, config)
    return await steps.quote.ainvoke(state, config)
