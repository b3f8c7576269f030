"""A drafted answer -> the Answer: only chunks that exist are cited, only their pages are linked."""

import re
import uuid

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.language import detect_language
from ingestion.words import index_words, query_text
from runnables.pasted import read_pasted
from runnables.state import Drafted, Understood, Written
from runnables.steps import step
from schemas.answer import Answer, Confidence, Source
from schemas.document import RetrievedChunk
from schemas.platform import Voice

_CITATION = re.compile(r"`[^`]*`|\[(?P<number>\d{1,3})\]")


def build_ground(voice: Voice) -> Runnable[Drafted, Answer]:
    """The step `ground`."""

    async def ground(drafted: Drafted, config: RunnableConfig) -> Answer:
        chunks, asked, classified = drafted["chunks"], drafted["asked"], drafted["classified"]
        written, draft = drafted["written"], drafted["written"].draft
        steps, cited = _renumbered([text for text in draft.answer if text.strip()], len(chunks))
        question = draft.question.strip() or read_pasted(asked.text).prose or asked.text
        sources = [Source.of(i, chunks[n - 1]) for i, n in enumerate(cited, 1)]
        return Answer(
            id=uuid.uuid4().hex,
            question=question,
            introduction=draft.introduction or voice.say(voice.greeting, asked.language),
            answer=steps,
            related_url=_closed_links(draft.related_url, chunks, cited),
            type=classified.structured.type,
            structured=classified.structured,
            sources=sources,
            confidence=_confidence(question, written, steps, sources),
            language=asked.language,
            answered_by=written.answered_by,
            degraded=written.degraded or classified.degraded,
        )

    return step("ground", ground)


def build_refuse(voice: Voice, answered_by: str) -> Runnable[Understood, Answer]:
    """The step `refuse`: what an off-topic question is told."""

    async def refuse(understood: Understood, config: RunnableConfig) -> Answer:
        asked = understood["asked"]
        return Answer(
            id=uuid.uuid4().hex,
            question=asked.text,
            introduction=voice.say(voice.greeting, asked.language),
            answer=[voice.say(voice.refusal, asked.language)],
            related_url=[],
            type="unknown",
            structured=understood["classified"].structured,
            sources=[],
            confidence="high",
            language=asked.language,
            answered_by=answered_by,
        )

    return step("refuse", refuse)


def _renumbered(steps: list[str], count: int) -> tuple[list[str], list[int]]:
    """The steps with their citations numbered from 1 as they come, and the chunk numbers behind them.

    Citations that name no chunk go; brackets inside code spans are no citations.
    """
    cited: dict[int, int] = {}

    def renumber(match: re.Match[str]) -> str:
        if match["number"] is None:
            return match[0]
        number = int(match["number"])
        return f"[{cited.setdefault(number, len(cited) + 1)}]" if 1 <= number <= count else ""

    return [_CITATION.sub(renumber, text).strip() for text in steps], list(cited)


def _closed_links(urls: list[str], chunks: list[RetrievedChunk], cited: list[int]) -> list[str]:
    """The cited pages and those of `urls` that were retrieved, in the chunks' order."""
    if not cited:
        return []
    wanted = set(urls) | {chunks[n - 1].chunk.page_url for n in cited}
    pages = dict.fromkeys(r.chunk.page_url for r in chunks if r.chunk.page_url)
    return [page for page in pages if page in wanted]


def _confidence(
    question: str, written: Written, steps: list[str], sources: list[Source]
) -> Confidence:
    """By evidence, not by the model's own word.

    `low`: nothing is cited, or the model gave no JSON. `high`: every step is cited, what is cited
    holds at least half of the question's telling words (or is in another language than the question),
    and nothing went wrong on the way. `medium`: the rest.
    """
    if not sources or written.as_text:
        return "low"
    cited_steps = sum(any(m["number"] for m in _CITATION.finditer(text)) for text in steps)
    every_step = cited_steps == len(steps)
    return (
        "high" if every_step and not written.degraded and _covered(question, sources) else "medium"
    )


def _covered(question: str, sources: list[Source]) -> bool:
    """Whether `sources` hold half of the question's telling words, as far as that can be seen."""
    text = " ".join(f"{s.title} {s.section} {s.text}" for s in sources)
    if detect_language(question) != detect_language(text):
        return True
    asked, read = set(query_text(question).split()), set(index_words(text))
    return len(asked & read) >= len(asked) / 2
