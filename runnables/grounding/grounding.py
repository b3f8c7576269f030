"""A drafted answer -> the Answer: only what exists is cited, only what was retrieved is linked, and what
cannot be verified or is not borne out says so.
"""

import asyncio
from collections.abc import Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.text.language import detect_language
from ingestion.text.words import index_words, query_text
from prompts import load_prompt
from runnables.grounding.grounded_step import GroundedStep, Grounder, GroundingRules, judged
from runnables.grounding.judge import Judge
from runnables.grounding.support import coverage
from runnables.models.chat_models import EXTRACTIVE
from runnables.question.extract_details import extract_details
from runnables.run_context import named_step
from runnables.state import PipelineState, Research
from schemas.answer import Answer, Confidence, Page, Refused, Source
from schemas.document import RetrievedChunk
from schemas.platform import PlatformInfo

MOST_STEPS = 50
"""Steps of an answer beyond which a model has lost its way."""

NEAREST = 3
"""Pages that are offered when the documents do not answer."""

QUOTED_HIGH = 0.55
"""What is quoted without a model has this coverage for high confidence; docs/answers.md has the figures."""

QUOTED_LOW = 0.1
"""With less it speaks of something else."""


def build_ground(
    platform_info: PlatformInfo, rules: GroundingRules, judge: Judge | None
) -> Runnable[PipelineState, Answer]:
    """The step `ground`."""

    async def ground(drafted: PipelineState, config: RunnableConfig) -> Answer:
        written = drafted["draft"]
        grounder = Grounder(drafted["question"], drafted["chunks"], rules)
        quoted = written.answered_by == EXTRACTIVE
        check = grounder.quoted_step if quoted else grounder.step
        # In a thread: what a model writes can be long, and other callers wait.
        checked = await asyncio.to_thread(
            lambda: list(map(check, written.draft.answer[:MOST_STEPS]))
        )
        steps = [grounded for grounded in checked if grounded.text]
        if judge is not None and not quoted:
            steps = await _judged(steps, grounder, judge, config)
        answer = _frame(drafted, grounder, platform_info, _sum(checked))
        if any(grounded.likely for grounded in steps):
            return _covered(answer, steps, drafted)
        return _uncovered(answer, drafted["chunks"], platform_info)

    return named_step("ground", ground)


async def _judged(
    steps: list[GroundedStep], grounder: Grounder, judge: Judge, config: RunnableConfig
) -> list[GroundedStep]:
    stated = [(grounded.text, grounder.cited_by(grounded)) for grounded in steps]
    verdicts = await judge.judge(stated, config)
    return [judged(*pair) for pair in zip(steps, verdicts or [None] * len(steps), strict=True)]


def _frame(
    drafted: PipelineState, grounder: Grounder, platform_info: PlatformInfo, refused: Refused
) -> Answer:
    """The answer without its steps; of what the model says around them only what claims nothing."""
    asked, classified, written = drafted["question"], drafted["classification"], drafted["draft"]
    researched = drafted.get("research", Research())
    question, greeting = written.draft.question.strip(), written.draft.introduction
    if asked.said or not question or not grounder.holds(question):
        question = extract_details(asked.text).prose or asked.text
    if not greeting or not grounder.holds(greeting):
        greeting = platform_info.say(platform_info.greeting, asked.language)
    return Answer(
        id=str(asked.id),
        question=question,
        introduction=greeting,
        answer=[],
        related_url=[],
        type=classified.structured.type,
        structured=classified.structured,
        sources=[],
        confidence="low",
        refused=refused,
        language=asked.language,
        answered_by=written.answered_by,
        degraded=written.degraded or classified.degraded or researched.degraded,
        rounds=list(researched.rounds),
    )


def _uncovered(
    answer: Answer, chunks: Sequence[RetrievedChunk], platform_info: PlatformInfo
) -> Answer:
    """The documents do not answer the question: nothing is cited or linked, the nearest pages are named."""
    say = load_prompt("extractive", answer.language).module
    said = str(say.uncovered(platform_info.name))  # type: ignore[attr-defined]
    return answer.model_copy(update={"answer": [said], "nearest": _nearest(chunks)})


def _nearest(chunks: Sequence[RetrievedChunk]) -> list[Page]:
    pages = {r.chunk.page_url: Page(title=r.chunk.title, page_url=r.chunk.page_url) for r in chunks}
    return [page for url, page in pages.items() if url][:NEAREST]


def _covered(answer: Answer, steps: Sequence[GroundedStep], drafted: PipelineState) -> Answer:
    """The answer with its steps, the sources that they cite and the pages of these; where they cite
    nothing, no page is its, and the nearest are named.
    """
    chunks, written = drafted["chunks"], drafted["draft"]
    cited = sorted({number for grounded in steps for number in grounded.numbers})
    sources = [Source.of(number, chunks[number - 1]) for number in cited]
    asked_for = set(written.draft.related_url)
    pages = dict.fromkeys(r.chunk.page_url for r in chunks if r.chunk.page_url)
    wanted = asked_for | {source.page_url for source in sources} if sources else set()
    links = answer.refused.links + len(asked_for - pages.keys())
    return answer.model_copy(
        update={
            "answer": [grounded.text for grounded in steps],
            "sources": sources,
            "related_url": [page for page in pages if page in wanted],
            "nearest": [] if sources else _nearest(chunks),
            "unverified": list(dict.fromkeys(fact for s in steps for fact in s.unverified)),
            "unsupported": [number for number, s in enumerate(steps, 1) if not s.supported],
            "refused": answer.refused.model_copy(update={"links": links}),
            "confidence": _confidence(drafted, answer.question, sources, steps),
        }
    )


def _sum(steps: Sequence[GroundedStep]) -> Refused:
    return Refused(
        citations=sum(grounded.refused.citations for grounded in steps),
        links=sum(grounded.refused.links for grounded in steps),
    )


def _confidence(
    drafted: PipelineState, question: str, sources: Sequence[Source], steps: Sequence[GroundedStep]
) -> Confidence:
    """By evidence, not by the model's own word.

    `low`: the model gave no JSON, or half of the steps or more are not borne out or state what cannot
    be verified. `high`: none of them is, what is cited holds at least half of the question's telling
    words (or is in another language than the question), and nothing went wrong on the way. `medium`:
    the rest. What was quoted without a model is borne out by itself: there the question's words decide.
    """
    written = drafted["draft"]
    doubtful = sum(not grounded.supported or bool(grounded.unverified) for grounded in steps)
    if written.as_text or doubtful * 2 >= len(steps):
        return "low"
    sound = not doubtful and not written.degraded
    if written.answered_by == EXTRACTIVE:
        covered = coverage(drafted["question"].text, _text(sources))
        if covered < QUOTED_LOW:
            return "low"
        return "high" if sound and covered >= QUOTED_HIGH else "medium"
    return "high" if sound and _covers(question, sources) else "medium"


def _covers(question: str, sources: Sequence[Source]) -> bool:
    """Whether `sources` hold half of the question's telling words, as far as that can be seen."""
    text = _text(sources)
    if detect_language(question) != detect_language(text):
        return True
    asked, read = set(query_text(question).split()), set(index_words(text))
    return len(asked & read) >= len(asked) / 2


def _text(sources: Sequence[Source]) -> str:
    return " ".join(f"{s.title} {s.section} {s.text}" for s in sources)
