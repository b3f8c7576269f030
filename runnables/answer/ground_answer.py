"""The pipeline step `ground`: checks a draft against the retrieved chunks and returns the final answer."""

import asyncio
from collections.abc import Callable, Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import NO_FILTERS
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import strip_anchor
from ingestion.text.words import index_words, query_words
from prompts.chat_prompts import load_quote_texts, unescape_data
from runnables.answer.confidence import confidence_of
from runnables.answer.fixed_answers import gap_opening, not_covered_sentence
from runnables.grounding.grounded_step import (
    GroundedStep,
    Grounder,
    GroundingRules,
    apply_verdict,
)
from runnables.grounding.judge import Judge
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.extract_details import details_of
from runnables.run_context import NamedStep, emit_answer
from runnables.state import PipelineState, Research, mark_degraded
from schemas.answer import Answer, Confidence, DegradedReason, Page, Refused, Source
from schemas.document import Chunk, RetrievedChunk
from schemas.platform import PlatformInfo

MAX_STEPS = 50
"""Maximum number of steps in an answer; further steps are dropped."""

MAX_INLINE_CHARS = 2_000
"""Maximum length of a draft that is checked on the event loop, in characters.

Checking takes about 5 ms per 1,000 characters. Longer drafts are checked in a thread, so that other
requests do not wait.
"""

MAX_NEAREST_PAGES = 3
"""Maximum number of pages to suggest if the documents do not answer the question."""


def build_ground(
    platform_info: PlatformInfo,
    rules: GroundingRules,
    judge: Judge | None,
    quote: Runnable[PipelineState, PipelineState] | None = None,
) -> Runnable[PipelineState, Answer]:
    """Return the pipeline step `ground`.

    The answer cites only existing chunks, contains only allowed links (see `LinkPolicy`), and lists
    unverified facts and unsupported steps. A step is supported if the chunks that it cites confirm it. If a
    model cited nothing, citations are inferred (see `Grounder.infer_citation`). A step that only names
    a part of the question that is not answered needs no citation (see `Grounder.mark_gap`).

    A model's draft without supported steps is replaced by quotes from `quote` if the quotes have high
    confidence. An answer without supported steps says that the documents do not answer the question.
    """

    async def ground(state: PipelineState, config: RunnableConfig) -> Answer:
        draft = state["draft"]
        grounder = Grounder(state["question"], state["chunks"], rules)
        is_quote = draft.answered_by == EXTRACTIVE
        check = grounder.check_quote if is_quote else grounder.check_step
        texts = draft.answer.answer[:MAX_STEPS]
        if list(map(str.strip, texts)) == [not_covered_sentence(platform_info, state["question"])]:
            texts = []  # the prompt dictates this sentence, so no citation may be inferred for it
        checked = await _check_steps(check, texts)
        steps = [step for step in checked if step.text]
        if not is_quote:
            steps = _complete_steps(steps, grounder, gap_opening(state["question"]))
        if judge is not None and not is_quote:
            steps = await _judge_steps(steps, grounder, judge, config)
        if quote and not is_quote and not any(step.supported for step in steps):
            # The chunks after the first `k` were added for the model, so drop them. Quotes may still come
            # from `further`.
            shortened: PipelineState = {**state, "chunks": state["chunks"][: state["question"].k]}
            quoted = await quote.ainvoke(shortened, config)
            if confidence_of(quoted["draft"].probability or 0) == "high":
                return await ground(
                    mark_degraded(quoted, DegradedReason.ANSWER_UNSUPPORTED), config
                )
        answer = _empty_answer(state, grounder, platform_info, _sum_refused(checked))
        if any(step.supported for step in steps):
            answer = _with_steps(answer, steps, state, platform_info)
        else:
            answer = _not_covered(answer, state, platform_info)
        await emit_answer(config, answer)
        return answer

    return NamedStep(ground, "ground")


async def _check_steps(
    check: Callable[[str], GroundedStep], texts: Sequence[str]
) -> list[GroundedStep]:
    if sum(map(len, texts)) <= MAX_INLINE_CHARS:
        return list(map(check, texts))
    return await asyncio.to_thread(lambda: list(map(check, texts)))


def _complete_steps(
    steps: Sequence[GroundedStep], grounder: Grounder, gap: str
) -> list[GroundedStep]:
    """Return the steps of a model, with marked gaps and, if it cited nothing, inferred citations."""
    marked = [grounder.mark_gap(step, gap) for step in steps]
    if any(step.numbers for step in marked):
        return marked
    return [step if step.names_gap else grounder.infer_citation(step) for step in marked]


async def _judge_steps(
    steps: list[GroundedStep], grounder: Grounder, judge: Judge, config: RunnableConfig
) -> list[GroundedStep]:
    statements = [(step.text, grounder.chunks_numbered(step.numbers)) for step in steps]
    verdicts = await judge.judge(statements, config) or [None] * len(steps)
    return [apply_verdict(step, verdict) for step, verdict in zip(steps, verdicts, strict=True)]


def _sum_refused(steps: Sequence[GroundedStep]) -> Refused:
    return Refused(
        citations=sum(step.refused.citations for step in steps),
        links=sum(step.refused.links for step in steps),
    )


def _empty_answer(
    state: PipelineState, grounder: Grounder, platform_info: PlatformInfo, refused: Refused
) -> Answer:
    """Return the answer without steps.

    The model's greeting and its wording of the question are used only if they are free of claims. If the
    question was condensed (see `Question.original_text`), the model's wording is not used at all.
    """
    question, classification, draft = state["question"], state["classification"], state["draft"]
    research = state.get("research", Research())
    restated = unescape_data(draft.answer.question.strip())
    greeting = unescape_data(draft.answer.introduction)
    if question.original_text or not restated or not grounder.is_free_of_claims(restated):
        restated = details_of(question).shown.strip()
    if not greeting or not grounder.is_free_of_claims(greeting):
        greeting = platform_info.greeting.in_language(question.language)
    return Answer(
        id=str(question.id),
        question=restated,
        introduction=greeting,
        answer=[],
        related_url=[],
        type=classification.structured.type,
        structured=classification.structured,
        sources=[],
        confidence="low",
        refused=refused,
        language=question.language,
        answered_by=draft.answered_by,
        degraded=draft.degraded or classification.degraded or research.degraded,
        rounds=list(research.rounds),
    )


def _not_covered(answer: Answer, state: PipelineState, platform_info: PlatformInfo) -> Answer:
    """Return `answer` with the statement that the documents do not answer the question, and nearest pages.

    If identifiers in the question occur in no document, the answer says this instead, and names similar
    identifiers.
    """
    sentences = _sentences_on_missing_identifiers(answer, state, platform_info)
    if not sentences:
        sentences = [not_covered_sentence(platform_info, state["question"])]
    pages: dict[tuple[str, str], Page] = {}
    for url, page in _pages(state["chunks"]).items():
        # The URL of an operation may have an anchor in one chunk and none in another.
        pages.setdefault((page.title, strip_anchor(url)), page)
    nearest = list(pages.values())[:MAX_NEAREST_PAGES]
    return answer.model_copy(update={"answer": sentences, "nearest": nearest})


def _sentences_on_missing_identifiers(
    answer: Answer, state: PipelineState, platform_info: PlatformInfo
) -> list[str]:
    """Return a sentence for each identifier in the question that occurs in no document."""
    texts, missing = load_quote_texts(answer.language), state.get("missing_identifiers", {})
    name = platform_info.name_in(answer.language)
    filtered = state["question"].filters != NO_FILTERS
    return [
        str(texts.missing(name, filtered, identifier, similar))
        for identifier, similar in missing.items()
    ]


def _link(chunk: Chunk) -> str:
    """Return the URL of the page that `chunk` belongs to.

    The anchor of a prose section is left out. The anchor of an API operation is kept, because one page may
    document many operations.
    """
    return strip_anchor(chunk.page_url) if chunk.kind == "prose" else chunk.page_url


def _pages(chunks: Sequence[RetrievedChunk]) -> dict[str, Page]:
    """Return the pages of `chunks` by their URLs, best first."""
    pages: dict[str, Page] = {}
    for retrieved in chunks:
        if url := _link(retrieved.chunk):
            pages.setdefault(url, Page(title=retrieved.chunk.title, page_url=url))
    return pages


def _with_steps(
    answer: Answer,
    steps: Sequence[GroundedStep],
    state: PipelineState,
    platform_info: PlatformInfo,
) -> Answer:
    """Return the answer with its steps, the sources that they cite, and related pages.

    If the steps are quotes and the confidence is low, the introduction warns that the quotes may not answer
    the question.
    """
    chunks, draft = state["chunks"], state["draft"]
    cited = sorted({number for step in steps for number in step.numbers})
    sources = [Source.from_chunk(number, chunks[number - 1]) for number in cited]
    pages = _pages(chunks)
    suggested = {url if url in pages else strip_anchor(url) for url in draft.answer.related_url}
    cited_pages = {_link(chunks[number - 1].chunk) for number in cited}
    related = suggested | cited_pages
    refused_links = answer.refused.links + len(suggested - pages.keys())
    confidence = _confidence(state, answer.question, sources, steps)
    introduction = answer.introduction
    if draft.answered_by == EXTRACTIVE and confidence == "low":
        uncertain = str(load_quote_texts(answer.language).uncertain(introduction)).strip()
        introduction = "\n\n".join(
            [uncertain, *_sentences_on_missing_identifiers(answer, state, platform_info)]
        )
    return answer.model_copy(
        update={
            "introduction": introduction,
            "answer": [step.text for step in steps],
            "sources": sources,
            "related_url": [url for url in pages if url in related],
            "related_pages": [pages[url] for url in pages if url in related - cited_pages],
            "unverified": list(dict.fromkeys(fact for step in steps for fact in step.unverified)),
            "unsupported": [
                number
                for number, step in enumerate(steps, 1)
                if not (step.supported or step.names_gap)
            ],
            "refused": answer.refused.model_copy(update={"links": refused_links}),
            "confidence": confidence,
        }
    )


def _confidence(
    state: PipelineState, question: str, sources: Sequence[Source], steps: Sequence[GroundedStep]
) -> Confidence:
    """Return the confidence of an answer.

    The confidence of quotes follows from the probability that they answer the question. The confidence of a
    model's answer depends on its sources (see `_covers`). Unsupported steps, unverified facts, inferred
    citations, gaps and degraded drafts can lower the confidence. It is always low if the draft is plain
    text, or if at least half of the steps are unsupported or contain unverified facts.
    """
    draft = state["draft"]
    doubtful = sum(
        not (step.supported or step.names_gap) or bool(step.unverified) for step in steps
    )
    if draft.is_plain_text or doubtful * 2 >= len(steps):
        return "low"
    is_sound = not (
        doubtful or draft.degraded or any(step.is_inferred or step.names_gap for step in steps)
    )
    if draft.probability is not None:
        quoted = confidence_of(draft.probability)
        return "medium" if quoted == "high" and not is_sound else quoted
    terms = state["classification"].structured.search_terms
    return "high" if is_sound and _covers(question, terms, sources) else "medium"


def _covers(question: str, terms: Sequence[str], sources: Sequence[Source]) -> bool:
    """Return whether `sources` contain half of the content words of `question`, or of `terms` together.

    The terms are the model's wording of the question before it read the sources; documents rarely contain
    the words of a colloquial question. Terms in another language than the sources are ignored. True if the
    sources are in another language than the question.
    """
    text = " ".join(f"{source.title} {source.section} {source.text}" for source in sources)
    language, words = detect_language(text), index_words(text)
    if detect_language(question) != language:
        return True
    comparable = " ".join(term for term in terms if detect_language(term) == language)
    wordings = [set(query_words(wording)) for wording in (question, comparable or question)]
    return any(len(wording & words) >= len(wording) / 2 for wording in wordings)
